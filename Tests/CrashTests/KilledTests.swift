import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

@Suite("A process killed at each step of its work on disk")
struct KilledTests {
  @Test("while it provisions: the account gets one area, and no other changes")
  func provision() async throws {
    try await CrashStory("provision").killAtEach(atLeast: 15, OwnershipChecks.provision)
  }

  @Test("while it binds: the area is the account's or nobody's, for ever, and its data is whole")
  func bind() async throws {
    try await CrashStory("bind").killAtEach(atLeast: 8, OwnershipChecks.bind)
  }

  @Test("while it adopts: all of the guest's data is taken over or nothing, then all of it once")
  func adopt() async throws {
    try await CrashStory("adopt").killAtEach(atLeast: 12, OwnershipChecks.adopt)
  }

  @Test("while it erases: not begun, or finished, and no file of it is left")
  func erase() async throws {
    try await CrashStory("erase").killAtEach(atLeast: 12, OwnershipChecks.erase)
  }

  @Test("while it makes a lost registry again: every area is found, and stays whose it is")
  func rebuild() async throws {
    try await CrashStory("rebuild").killAtEach(atLeast: 8, OwnershipChecks.rebuild)
  }

  @Test("while it enqueues: what was said to be stored is there once, the rest once or not at all")
  func enqueue() async throws {
    try await CrashStory("enqueue").killAtEach(atLeast: 15, OutboxChecks.enqueue)
  }

  @Test("while the map grows: what was said to be stored is there, and more fits in")
  func growth() async throws {
    try await CrashStory("growth").killAtEach(atLeast: 4, OutboxChecks.growth)
  }
}
