import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Synchronize: the store is suspended meanwhile")
struct SynchronizeSuspensionTests {
  @Test("a pass that waits for the hub is stopped, loses nothing, and the next one goes on")
  func stopped() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let registry = person.profile.registry
      for call in [Call.session, .mutations, .changes] {
        try await person.write(["b"], "before \(call)")
        let isThere = Gate()
        person.device.wire.before { _, request throws(TransportError) in
          guard request.call == call else { return nil }
          isThere.open()
          do {
            // Far longer than any test: only its end is what is looked at.
            try await Task.sleep(for: .seconds(3_600))
          } catch {
            throw TransportError(code: .cancelled, description: "cancelled")
          }
          return nil
        }
        let pass = Task { try await person.profile.synchronize(account: person.account) }
        await isThere.wait()
        try await registry.suspend()
        let error = await #expect(throws: StoreError.self) { _ = try await pass.value }
        #expect(error?.code == .suspended)
        #expect(person.profile.area.passes.count == 0)
        let refused = await #expect(throws: StoreError.self) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(refused?.code == .suspended)
        person.device.wire.clear()
        try await registry.resume()
        try await person.profile.synchronize(account: person.account)
        #expect(try person.profile.pendingSummary().isEmpty)
        #expect(try person.texts() == ["a": "first", "b": "before \(call)"])
      }
    }
  }
}
