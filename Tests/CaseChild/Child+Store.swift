import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

extension Child {
  /// `readers COUNT`: so many threads look at the area and never end; waits to be killed.
  func holdReaders() async throws {
    let profile = try await signIn().profile
    let held = DispatchSemaphore(value: 0)
    let count = try number(0)
    for _ in 0..<count {
      let thread = Thread {
        do {
          try profile.area.read { _ in
            held.signal()
            while true { pause() }
          }
        } catch {
          say("failed \(error)")
          exit(1)
        }
      }
      thread.stackSize = 64 << 10
      thread.start()
    }
    for _ in 0..<count { Self.wait(for: held) }
    say("held \(count)")
    while true { try await Task.sleep(for: .seconds(3_600)) }
  }

  /// This process has nothing else to do.
  private static func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

  /// `inspect`: looks at the whole store again and again until its input ends, and says how often.
  func inspect() throws {
    var count = 0
    say("begun")
    while readLine() != nil {
      let inspector = try StoreInspector(directory: directory)
      for info in try inspector.profiles() {
        if let failure = info.failure { throw failure }
        _ = try inspector.outbox(info.area)
      }
      count += 1
      say("looked \(count)")
    }
  }

  /// `step NAME erase|adopt|bind`: erases the account's profile, or takes the signed-out area's data
  /// over, and is killed at a step of it.
  func endAtStep() async throws {
    guard let step = word(0).flatMap({ OwnershipStep(rawValue: $0) }) else { throw BadWords() }
    let (registry, account) = try await openStore(onStep: { if $0 == step { endHere() } })
    switch word(1) {
    case "erase": try await registry.erase(account, discardingPending: true)
    case "adopt", "bind":
      // An account that has an area already adopts, one that has none binds.
      let guest = try await registry.profiles().first { $0.state == .unowned }
      guard let guest else { throw BadWords() }
      _ = try await registry.adopt(guest.area, by: account)
    default: throw BadWords()
    }
    say("done")
  }
}
