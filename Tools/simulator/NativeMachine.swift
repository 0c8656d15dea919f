import CMachine
import Foundation
import Simulation

/// The machine of this program; see `machine.h`. There is one.
final class NativeMachine: Machine {
  init(seed: UInt64) { machine_start(seed) }

  func readyCount() -> Int { machine_ready_count() }
  func run(_ index: Int) { machine_run(index) }
  func wake() -> Bool { machine_wake() }
  var now: UInt64 { machine_now() }

  func addDevice(_ device: Int, directory: String) {
    machine_add_device(Int32(device), directory)
  }

  func planDeath(of device: Int, atStep step: UInt64, after: Bool) {
    machine_plan_death(Int32(device), step, after)
  }

  func kill(_ device: Int) { machine_kill(Int32(device)) }
  func isDead(_ device: Int) -> Bool { machine_is_dead(Int32(device)) }
  func lastStep(of device: Int) -> String { String(cString: machine_last_step(Int32(device))) }
  func openCount(of device: Int) -> Int { Int(machine_open_count(Int32(device))) }
  func revive(_ device: Int) { machine_revive(Int32(device)) }
  var commitCount: UInt64 { machine_commit_count() }

  func looking<R>(_ body: () throws -> R) rethrows -> R {
    machine_look(true)
    defer { machine_look(false) }
    return try body()
  }

  func canaries(in bytes: UnsafeRawBufferPointer) -> CanarySet {
    guard let address = bytes.baseAddress else { return CanarySet() }
    return CanarySet(machine_find_canaries(address, bytes.count))
  }

  func nextWrites() -> (directory: String, found: CanarySet)? {
    var directory: UnsafePointer<CChar>?
    var found = machine_canaries()
    guard machine_next_writes(&directory, &found), let directory else { return nil }
    return (String(cString: directory), CanarySet(found))
  }
}

extension CanarySet {
  init(_ found: machine_canaries) {
    let words = found.words
    self.init(words: SIMD4(words.0, words.1, words.2, words.3))
  }
}
