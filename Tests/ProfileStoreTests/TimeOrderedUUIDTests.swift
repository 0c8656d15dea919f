import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("Mutation UUIDs that the store makes")
struct TimeOrderedUUIDTests {
  @Test("grow, are of version 7, and are all different")
  func growing() {
    let mutations = (0..<2_000).map { _ in Mutation.delete("record").id }
    let texts = mutations.map(\.uuidString)
    #expect(texts == texts.sorted())
    #expect(Set(texts).count == texts.count)
    for uuid in mutations {
      #expect(uuid.uuid.6 >> 4 == 7)
      #expect(uuid.uuid.8 >> 6 == 2)
    }
  }
}
