import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import Testing

@Suite("What another device writes into the hub in memory", .timeLimit(.minutes(1)))
struct MemoryHubWritingTests {
  private let payload = Data("payload".utf8)

  @Test("comes to this device like any change, more than fit into one push too")
  func writes() async throws {
    let seat = try Seat()
    let (ada, profile) = try await seat.signIn("ada")
    seat.hub.forgetRequests()
    try await seat.hub.write(
      (0..<501).map { ("r\($0)", payload) } + [("r0", nil), ("r1", Data())], of: "ada")
    #expect(seat.hub.requests == [])
    try await profile.synchronize(account: ada)
    #expect(try profile.records().count == 500)
    #expect(try profile.record("r0") == nil)
    #expect(try profile.record("r1")?.payload == Data())
    #expect(seat.hub.highWater(of: "ada") == 503)
  }

  @Test("meets no fault, and the account alone that it names")
  func faults() async throws {
    let hub = MemoryHub()
    hub.fail(.outage, times: nil)
    try await hub.write([("r", payload)], of: "ada")
    #expect(hub.records(of: "ada").map(\.payload) == [payload])
    #expect(hub.accounts == ["ada"])
  }

  @Test("is refused by the hub's limits, and for an account that it does not serve")
  func refused() async throws {
    var configuration = MemoryHub.Configuration()
    configuration.limits.payloadBytes = 3
    let hub = MemoryHub(configuration)
    await #expect(throws: MemoryHubRefusal.self) {
      try await hub.write([("r", payload)], of: "ada")
    }
    hub.setDisabled(true, "ada")
    await #expect(throws: MemoryHubRefusal.self) { try await hub.write([("r", Data())], of: "ada") }
    #expect(hub.records(of: "ada") == [])
  }
}
