import Simulation
import Testing

@Suite("A canary")
struct CanaryTests {
  @Test("has a text of its own, in two digits")
  func text() {
    #expect(Canary(0).text == "~kanarie~00~")
    #expect(Canary(255).text == "~kanarie~ff~")
    #expect(Set((0..<Canary.countMax).map { Canary($0).text }).count == Canary.countMax)
  }

  @Test("a set keeps each of them apart")
  func sets() {
    for number in [0, 1, 63, 64, 127, 128, 200, 255] {
      let set = CanarySet([Canary(number)])
      #expect(set.members == [Canary(number)])
      #expect(set.contains(Canary(number)))
      #expect(!set.contains(Canary((number + 1) % 256)))
      #expect(set.subtracting(set).isEmpty)
      var all = CanarySet([Canary(7)])
      all.formUnion(set)
      #expect(all.subtracting(CanarySet([Canary(7)])) == set)
    }
    #expect(CanarySet(words: SIMD4(1, 2, 0, 0)).members == [Canary(0), Canary(65)])
  }
}
