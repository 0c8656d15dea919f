import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync

/// A simulated world: devices with the product's own stores and passes, one hub, one thread.
///
/// SAFETY of `@unchecked Sendable`: everything in it runs on the machine's only thread, one job after
/// the other.
package final class World: @unchecked Sendable {
  /// What the seed says.
  let plan: Plan
  let machine: any Machine
  let hub: MemoryHub
  let people: [Person]
  var devices: [Device] = []
  var guests: [AreaID: Guest] = [:]
  var ledger = Ledger()
  var log: EventLog
  /// Decides what comes next wherever two things could, and what the network does.
  var random: SeededRandom
  var counts = Counts()
  var violations: [Violation] = []
  /// The hub's backups, with each account's high water.
  var backups: [(content: MemoryHub.Backup, highWaters: [UInt64])] = []
  /// Which account the hub gave each token to.
  var tokens: [String: Int] = [:]
  /// Numbers of operations, payloads and guests that were given.
  var lastOperation = 0
  var lastSerial = 0
  var stepIndex = -1
  /// No more faults: the world comes to rest.
  var isSettling = false

  /// What happened, in numbers.
  package struct Counts: Sendable, Codable, Hashable {
    /// Steps that were taken.
    package var steps = 0
    /// Sign-ins and sign-outs.
    package var switches = 0
    /// Faults: of the network, of the hub, of devices.
    package var faults = 0
    /// Devices that died.
    package var kills = 0
    /// Commits of all devices.
    package var commits = 0
    /// Requests that were sent.
    package var requests = 0
    /// Mutations that were accepted.
    package var mutations = 0

    /// All 0.
    package init() {}
  }

  /// - Parameters:
  ///   - directory: an empty one, for the devices' files.
  ///   - keepsLog: whether ``Outcome/log`` has all lines.
  package init(_ plan: Plan, on machine: any Machine, in directory: String, keepsLog: Bool) {
    self.plan = plan
    self.machine = machine
    log = EventLog(isKept: keepsLog)
    random = SeededRandom(seed: plan.seed)
    var configuration = MemoryHub.Configuration()
    configuration.seed = plan.seed
    configuration.limits.pullRecords = 7
    configuration.limits.pushMutations = 9
    hub = MemoryHub(configuration)
    people = (0..<plan.accountCount).map { Person($0) }
    devices = (0..<plan.deviceCount).map { number in
      let path = "\(directory)/device-\(number)"
      machine.addDevice(number, directory: path)
      return Device(number: number, directory: path, keepsRecords: plan.keepsRecords[number])
    }
  }

  /// Takes the plan's steps, lets the world come to rest, and looks at all of it.
  /// - Parameter isTaken: which steps are taken, by their index.
  package func run(taking isTaken: (Int) -> Bool = { _ in true }) -> Outcome {
    for device in devices { start(device) }
    for (index, step) in plan.steps.enumerated() where isTaken(index) && violations.isEmpty {
      stepIndex = index
      // The same choices, whatever was left out before.
      random = SeededRandom(seed: plan.seed &+ UInt64(index + 1) &* 0x9e37_79b9)
      note("step \(index) \(step)")
      counts.steps += 1
      take(step)
      buryTheDead()
      runJobs(random.number(from: 0, through: plan.jobCountMax))
      look()
      if index % 40 == 39 { lookDeep() }
    }
    stepIndex = plan.steps.count
    if violations.isEmpty { settle() }
    counts.commits = Int(machine.commitCount)
    note("end \(counts.commits) commits, \(machine.now) ns")
    return Outcome(
      seed: plan.seed, counts: counts, violations: violations, digest: log.digest,
      lineCount: log.count)
  }

  /// The log's lines, if they are kept.
  package var lines: [String] { log.lines }

  func note(_ line: String) { log.note("\(machine.now / 1_000) \(line)") }

  func violate(_ found: [Violation]) {
    for violation in found where !violations.contains(violation) {
      note("VIOLATION \(violation)")
      violations.append(violation)
    }
  }

  func device(_ number: Int) -> Device { devices[number % devices.count] }

  // MARK: Jobs

  /// Runs so many jobs, fewer when there are no more; where all wait, time passes.
  func runJobs(_ count: Int) {
    for _ in 0..<count {
      guard runJob() else { return }
    }
  }

  /// - Returns: false when there was nothing to do and no alarm to wait for.
  func runJob() -> Bool {
    var ready = machine.readyCount()
    if ready == 0 {
      guard machine.wake() else { return false }
      ready = machine.readyCount()
      guard ready > 0 else { return false }
    }
    machine.run(random.number(below: ready))
    buryTheDead()
    return true
  }

  /// Ends the processes of devices that have died.
  func buryTheDead() {
    for device in devices where machine.isDead(device.number) { bury(device) }
  }

  private func bury(_ device: Device) {
    guard let life = device.life else { return }
    counts.kills += 1
    counts.faults += 1
    note("device \(device.number) died at \(machine.lastStep(of: device.number))")
    device.life = nil
    device.dying = life
    life.die()
  }

  // MARK: Operations

  /// Begins something that goes on beside the next steps.
  @discardableResult
  func begin(
    _ name: String, _ life: Life, _ body: @escaping @Sendable (Life) async throws -> String
  ) -> Int {
    lastOperation += 1
    let number = lastOperation
    note("begin \(number) \(name) on \(life.device.number)")
    life.tasks[number] = Task { [self] in
      var result: String
      do {
        result = try await body(life)
      } catch {
        result = "throws \(Failure.name(error))"
        if isLiving(life), Failure.isAlarming(error, mayLie: plan.mayLie) {
          violate([Violation(.failing, "\(name) \(result)")])
        }
      }
      life.tasks[number] = nil
      if isLiving(life) { note("done \(number) \(name): \(result)") }
    }
    return number
  }

  /// Whether what a process is told still counts.
  func isLiving(_ life: Life) -> Bool {
    !life.isDead && !machine.isDead(life.device.number)
  }
}
