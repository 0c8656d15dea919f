import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("J: a store that lets go before its process is stopped")
struct SuspensionTests {
  @Test("J2: suspended it holds no file and no lock, refuses at once, and goes on when resumed")
  func suspended() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.send(["a"], "1")
      try await alice.write(["waits"], "2")
      let path = device.directory.url.resolvingSymlinksInPath().path
      #expect(try Self.openFiles(under: path) > 0)
      try await device.registry.suspend()
      #expect(try Self.openFiles(under: path) == 0)
      await expect(.suspended) { try await alice.write(["b"], "3") }
      await expect(.suspended) { _ = try alice.profile.records() }
      await expect(.suspended) { _ = try await device.registry.profile(for: alice.account) }
      await #expect(throws: (any Error).self) { try await alice.sync() }
      // Meanwhile another process has the store for itself.
      let child = try await CaseChild.run(
        "enqueue", hub, device.directory.url, as: "alice", ["3", "child", "go"])
      #expect(child.ending == .exited(0), "\(child.lines)")
      try await device.registry.resume()
      #expect(try alice.profile.outbox().count == 4)
      try await alice.write(["b"], "3")
      try await alice.sync()
      #expect(try await hub.records(of: "alice").count == 6)
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  @Test("J2: a pass that waits for the hub ends, and the next one goes on where it was")
  func withinPass() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.sync()
      try await alice.write(["a"], "1")
      let held = Gate()
      device.wire.before { _, request throws(TransportError) in
        if request.call == .mutations {
          request.headers.append(HeaderField(HubHeader.fault, "delay=600000"))
          held.open()
        }
        return nil
      }
      let pass = Task { try await alice.sync() }
      await held.wait()
      try await device.registry.suspend()
      #expect(try Self.openFiles(under: device.directory.url.resolvingSymlinksInPath().path) == 0)
      await #expect(throws: (any Error).self) { try await pass.value }
      try await device.registry.resume()
      device.wire.clear()
      try await alice.sync()
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  /// Files that this process has open: without one there is no lock either.
  private static func openFiles(under path: String) throws -> Int {
    var count = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      var buffer = [CChar](repeating: 0, count: 4_096)
      let length = readlink("/proc/self/fd/" + name, &buffer, buffer.count)
      // The one that lists the directory is gone by now.
      guard length > 0 else { continue }
      let target = String(
        decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if target.hasPrefix(path) { count += 1 }
    }
    return count
  }
}
