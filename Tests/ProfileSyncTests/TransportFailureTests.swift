import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Synchronize: no answer from the hub")
struct TransportFailureTests {
  private static let failures: [(TransportError.Code, SyncError.Code)] = [
    (.unreachable, .hubUnreachable), (.timedOut, .hubUnreachable),
    (.connectionLost, .hubUnreachable), (.tlsFailed, .hubNotTrusted), (.other, .hubUnreachable),
    (.answerTooLarge, .badAnswer), (.invalidRequest, .needsAuthentication),
  ]

  @Test(
    "a hub that stalls, drops the connection or says too much stops the pass; nothing is lost",
    arguments: failures.indices)
  func stops(index: Int) async throws {
    let (failure, code) = Self.failures[index]
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      for call in [Call.session, .mutations, .changes] {
        person.device.wire.clear()
        person.device.wire.before { _, request throws(TransportError) in
          guard request.call == call else { return nil }
          throw TransportError(code: failure, description: "made by a test")
        }
        let error = await expect(code) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(error?.cause?.code == failure)
        #expect(person.device.wire.calls.last == call)
      }
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts() == ["a": "first", "b": "second"])
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a cancelled pass throws CancellationError and is not noted as a failure")
  func cancelled() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      for call in [Call.session, .mutations, .changes] {
        let (isThere, mayGoOn) = (Gate(), Gate())
        person.device.wire.before { _, request throws(TransportError) in
          guard request.call == call else { return nil }
          isThere.open()
          await mayGoOn.wait()
          return nil
        }
        let pass = Task { try await person.profile.synchronize(account: person.account) }
        await isThere.wait()
        pass.cancel()
        mayGoOn.open()
        await #expect(throws: CancellationError.self) { _ = try await pass.value }
      }
      #expect(person.profile.area.passes.count == 0)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("the cursor never moves backwards, whatever a page says of its end")
  func cursor() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...5))
      let before = try person.profile.cursor()
      for (next, highWater) in [(0, 5), (4, 5), (0, 0), (4, 4), (6, 5)] as [(UInt64, UInt64)] {
        person.device.wire.clear()
        person.device.wire.after { _, request, response throws(TransportError) in
          guard request.call == .changes else { return }
          response.change(ChangesPage.self) { page in
            page.next = next
            page.highWater = highWater
          }
        }
        for replay in [false, true] {
          await #expect(throws: SyncError.self) {
            try await person.profile.synchronize(
              account: person.account, replayFromStart: replay)
          }
          #expect(try person.profile.cursor() == before)
        }
      }
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      #expect(try person.profile.cursor() == before)
      #expect(try person.texts().count == 5)
    }
  }
}

@Suite("The pause before the next pass")
struct RetryPauseTests {
  /// Always the same number.
  private struct Constant: RandomNumberGenerator {
    var number: UInt64
    mutating func next() -> UInt64 { number }
  }

  /// An error as a pass throws it.
  private static func error(_ status: Int, retryAfter: String? = nil) async throws -> SyncError {
    let error = Log<SyncError>()
    try await TestHub.run { hub in
      let device = try Device(hub)
      device.wire.before { _, _ throws(TransportError) in .made(status, retryAfter: retryAfter) }
      let thrown = await expect(status == 404 ? .badAnswer : .hubUnavailable) {
        _ = try await device.registry.verify(token: "token")
      }
      error.add(try #require(thrown))
    }
    return error.entries[0]
  }

  @Test("is what the hub asked for, up to 5 minutes")
  func asked() async throws {
    for (text, seconds) in [("0", 0), ("7", 7), ("300", 300), ("3600", 300)] {
      let error = try await Self.error(503, retryAfter: text)
      #expect(RetryPause.after(error, failureCount: 9) == .seconds(seconds))
    }
  }

  @Test("else grows from 1 second to 5 minutes, with full jitter")
  func jitter() async throws {
    let error = try await Self.error(500)
    for (count, seconds) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (1_000, 300), (0, 1)] {
      var (least, most) = (Constant(number: 0), Constant(number: .max))
      #expect(RetryPause.after(error, failureCount: count, using: &least) == .zero)
      let longest = try #require(RetryPause.after(error, failureCount: count, using: &most))
      #expect(longest <= .seconds(seconds) && longest > .seconds(seconds) * 0.99)
    }
  }

  @Test("is none where trying again does not help by itself")
  func none() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      for fault in ["other-account-body", "throttle=1"] {
        device.wire.clear()
        device.wire.ask(for: fault)
        let isLater = fault == "throttle=1"
        let error = try #require(
          await expect(isLater ? .hubUnavailable : .accountMismatch) {
            _ = try await device.registry.verify(token: try hub.token(for: "alice"))
          })
        #expect((RetryPause.after(error, failureCount: 1) != nil) == isLater)
      }
    }
  }
}
