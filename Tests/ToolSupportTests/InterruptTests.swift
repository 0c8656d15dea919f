import Foundation
import Synchronization
import Testing

@testable import ToolSupport

@Suite("The plan for interrupts")
struct InterruptPlanTests {
  private final class Record: Sendable {
    let events = Mutex<[String]>([])
    func add(_ event: String) { events.withLock { $0.append(event) } }
    var all: [String] { events.withLock { $0 } }
  }

  private func perform(_ decision: InterruptPlan.Decision, _ record: Record) {
    switch decision {
    case .resume(let waiters):
      for resume in waiters { resume(.terminate) }
    case .end(let cleanups):
      for cleanup in cleanups { cleanup(.terminate) }
      record.add("end")
    }
  }

  @Test("ends the process where nothing is registered")
  func nothing() {
    let record = Record()
    var plan = InterruptPlan()
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["end"])
  }

  @Test("runs the cleanups once, the newest first, then ends")
  func cleanups() {
    let record = Record()
    var plan = InterruptPlan()
    for name in ["a", "b", "c"] { _ = plan.addCleanup { record.add("\(name) \($0.name)") } }
    perform(plan.arrived(.terminate), record)
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["c SIGTERM", "b SIGTERM", "a SIGTERM", "end", "end"])
  }

  @Test("leaves out a cleanup that was taken back, and knows whether that came in time")
  func cancelled() {
    let record = Record()
    var plan = InterruptPlan()
    let first = plan.addCleanup { _ in record.add("a") }
    let second = plan.addCleanup { _ in record.add("b") }
    let answers = [plan.removeCleanup(second), plan.removeCleanup(second)]
    perform(plan.arrived(.terminate), record)
    #expect(answers + [plan.removeCleanup(first)] == [true, false, false])
    #expect(record.all == ["a", "end"])
  }

  @Test("tells those who wait first; the next signal runs the cleanups and ends")
  func waiters() {
    let record = Record()
    var plan = InterruptPlan()
    _ = plan.addCleanup { _ in record.add("cleanup") }
    _ = plan.addWaiter { record.add("told \($0?.name ?? "nothing")") }
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["told SIGTERM"])
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["told SIGTERM", "cleanup", "end"])
  }

  @Test("keeps the first signal for who waits later, once, if it was told to listen")
  func kept() {
    let record = Record()
    var plan = InterruptPlan()
    _ = plan.addCleanup { record.add("cleanup \($0.name)") }
    plan.listen()
    perform(plan.arrived(.hangup), record)
    #expect(record.all.isEmpty)
    #expect(plan.takeKept() == .hangup)
    #expect(plan.takeKept() == nil)
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["cleanup SIGTERM", "end"])
  }

  @Test("ends at the second signal although nobody has waited for the first")
  func keptTwice() {
    let record = Record()
    var plan = InterruptPlan()
    plan.listen()
    for _ in 1...2 { perform(plan.arrived(.terminate), record) }
    #expect(record.all == ["end"])
  }

  @Test("gives a waiter back that waits no more, once")
  func removedWaiter() {
    let record = Record()
    var plan = InterruptPlan()
    let id = plan.addWaiter { record.add("told \($0?.name ?? "nothing")") }
    for _ in 1...2 { plan.removeWaiter(id)?(nil) }
    perform(plan.arrived(.terminate), record)
    #expect(record.all == ["told nothing", "end"])
  }
}

@Suite("A process that is interrupted")
struct InterruptTests {
  @Test("cleans up once and then ends by the signal")
  func cleanup() async throws {
    let result = try await #require(
      processExitsWith: .signal(SIGTERM), observing: [\.standardErrorContent]
    ) {
      _ = Interrupts.onInterrupt { _ in Console.standard().note("first") }
      _ = Interrupts.onInterrupt { Console.standard().note("second \($0.name)") }
      kill(getpid(), SIGTERM)
      while true { pause() }
    }
    #expect(result.standardErrorContent == Array("second SIGTERM\nfirst\n".utf8))
  }

  @Test("can be ended by a second signal while a cleanup hangs")
  func hangingCleanup() async {
    await #expect(processExitsWith: .signal(SIGHUP)) {
      InterruptListener.unblockSignals()
      _ = Interrupts.onInterrupt { _ in
        kill(getpid(), SIGHUP)
        while true { pause() }
      }
      kill(getpid(), SIGINT)
      while true { pause() }
    }
  }

  @Test("and waits for it goes on, and ends as it likes")
  func waiting() async {
    await #expect(processExitsWith: .exitCode(42)) {
      let signal = await Interrupts.next { kill(getpid(), SIGINT) }
      exit(signal == .interrupt ? 42 : 1)
    }
  }

  @Test("before it waits, but listens, is told once it waits")
  func listening() async {
    await #expect(processExitsWith: .exitCode(42)) {
      Interrupts.listen()
      kill(getpid(), SIGTERM)
      exit(await Interrupts.next() == .terminate ? 42 : 1)
    }
  }

  @Test("hears of it although it was started deaf")
  func blockedSignals() async {
    await #expect(processExitsWith: .signal(SIGTERM)) {
      var all = sigset_t()
      // SAFETY: the set is filled by the first call and read by the second.
      sigfillset(&all)
      pthread_sigmask(SIG_BLOCK, &all, nil)
      InterruptListener.unblockSignals()
      raise(SIGTERM)
      exit(1)
    }
  }

  @Test("whose waiting was cancelled waits no more")
  func cancelledWaiting() async {
    await #expect(processExitsWith: .exitCode(42)) {
      let task = Task { await Interrupts.next() }
      task.cancel()
      exit(await task.value == nil ? 42 : 1)
    }
  }

  @Test("by a signal that it was told to ignore is not")
  func ignored() async {
    await #expect(processExitsWith: .exitCode(42)) {
      signal(SIGHUP, SIG_IGN)
      _ = Interrupts.onInterrupt { exit($0 == .terminate ? 42 : 1) }
      kill(getpid(), SIGHUP)
      kill(getpid(), SIGTERM)
      while true { pause() }
    }
  }
}
