import HubProtocol
import Synchronization
import Testing

@Suite("Tests of the protocol")
struct TestedHubTests {
  @Test("meet the real hub and the one in memory")
  func both() async throws {
    let met = Mutex<[TestedHub.Kind]>([])
    try await ForEachHub().provideScope(
      for: try #require(Test.current), testCase: Test.Case.current
    ) {
      met.withLock { $0.append(TestedHub.Kind.current) }
      try await withHub { hub in
        let session = try await TestClient(hub).session()
        #expect(session.hub == hub.hubID)
      }
    }
    #expect(met.withLock { $0 } == TestedHub.Kind.allCases)
  }
}
