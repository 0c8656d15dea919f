import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

@Suite(
  "A disk that runs full at each step, or may only be read",
  .enabled(if: SmallDisk.isPermitted, SmallDisk.reason))
struct FullDiskTests {
  private func fill(
    _ name: String, atLeast: Int, refuses: Bool = true,
    _ check: (CrashStory.Telling) async throws -> Void
  ) async throws {
    let disk = try SmallDisk(byteCount: 8 << 20)
    try await CrashStory(name).fillAtEach(
      disk, atLeast: atLeast, refuses: refuses, check)
  }

  @Test("while it provisions: refused as a full disk or done, and done once there is room")
  func provision() async throws {
    try await fill("provision", atLeast: 15, OwnershipChecks.provision)
  }

  @Test("while it binds: the room kept ready in the file suffices")
  func bind() async throws {
    try await fill("bind", atLeast: 8, refuses: false, OwnershipChecks.bind)
  }

  @Test("while it adopts: the room kept ready in the file suffices")
  func adopt() async throws {
    try await fill("adopt", atLeast: 12, refuses: false, OwnershipChecks.adopt)
  }

  @Test("while it erases: the room kept ready in the file suffices, and nothing is left")
  func erase() async throws {
    try await fill("erase", atLeast: 12, refuses: false, OwnershipChecks.erase)
  }

  @Test("while it makes a lost registry again: every area is found once there is room")
  func rebuild() async throws { try await fill("rebuild", atLeast: 8, OwnershipChecks.rebuild) }

  @Test(
    "while it enqueues: what was said to be stored is there once, what was refused is not there")
  func enqueue() async throws { try await fill("enqueue", atLeast: 15, OutboxChecks.enqueue) }

  @Test(
    "a store on a disk that may only be read is refused, can be looked at, and comes to no harm")
  func readOnly() async throws {
    let disk = try SmallDisk(byteCount: 8 << 20)
    let telling = try await CrashStory("adopt").tell(.count, on: disk)
    try #require(telling.isDone)
    let before = try contents(of: telling.directory.store.path)
    try disk.setReadOnly(true)
    #expect(throws: StoreError.self) { try telling.registry() }
    let inspector = try StoreInspector(directory: telling.directory.store)
    let infos = try inspector.profiles()
    #expect(infos.count == 2)
    #expect(infos.contains { $0.owner?.id.text == "ada" && $0.pending.count == 3 })
    #expect(infos.allSatisfy { $0.failure == nil }, "\(infos.map(\.problem))")
    try disk.setReadOnly(false)
    #expect(try contents(of: telling.directory.store.path) == before)
  }
}
