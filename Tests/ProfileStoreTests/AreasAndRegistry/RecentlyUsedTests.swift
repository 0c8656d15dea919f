import Testing

@testable import ProfileStore

extension AreasAndRegistry {
  @Suite("a bounded number of values, by last use")
  struct RecentlyUsedValues {
    private enum Step: CustomStringConvertible {
      case keep(Int)
      case use(Int)
      case remove(Int)
      case removeOldest

      var description: String {
        switch self {
        case .keep(let key): "keep \(key)"
        case .use(let key): "use \(key)"
        case .remove(let key): "remove \(key)"
        case .removeOldest: "remove the oldest"
        }
      }
    }

    @Test("keeps what was used last, and gives back what makes room")
    func table() {
      var kept = RecentlyUsed<Int, String>(countMax: 3)
      let rows: [(step: Step, given: String?, order: [Int])] = [
        (.use(1), nil, []), (.removeOldest, nil, []), (.remove(1), nil, []),
        (.keep(1), nil, [1]), (.keep(2), nil, [2, 1]), (.keep(3), nil, [3, 2, 1]),
        (.use(1), "1", [1, 3, 2]), (.use(1), "1", [1, 3, 2]), (.use(3), "3", [3, 1, 2]),
        (.keep(4), "2", [4, 3, 1]), (.use(2), nil, [4, 3, 1]),
        (.keep(3), "3", [3, 4, 1]), (.remove(4), "4", [3, 1]), (.keep(5), nil, [5, 3, 1]),
        (.keep(6), "1", [6, 5, 3]), (.removeOldest, "3", [6, 5]), (.removeOldest, "5", [6]),
        (.removeOldest, "6", []), (.keep(7), nil, [7]), (.use(7), "7", [7]),
      ]
      for (step, given, order) in rows {
        let result: String?
        switch step {
        case .keep(let key): result = kept.keep("\(key)", for: key)
        case .use(let key): result = kept.use(key)
        case .remove(let key): result = kept.remove(key)
        case .removeOldest: result = kept.removeOldest()
        }
        #expect(result == given, "\(step)")
        #expect(kept.entries.map(\.key) == order, "\(step)")
        #expect(kept.count == order.count, "\(step)")
      }
    }

    @Test("with no room keeps nothing")
    func noRoom() {
      var kept = RecentlyUsed<Int, String>(countMax: 0)
      #expect(kept.keep("a", for: 1) == "a")
      #expect(kept.use(1) == nil)
      #expect(kept.count == 0)
    }

    @Test("is right for thousands of random steps beside a plain list")
    func model() {
      var generator = SystemRandomNumberGenerator()
      var kept = RecentlyUsed<Int, Int>(countMax: 8)
      var list: [Int] = []
      for _ in 0..<20_000 {
        let key = Int.random(in: 0..<16, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          #expect(kept.use(key) == (list.contains(key) ? key : nil))
          if list.contains(key) { list = [key] + list.filter { $0 != key } }
        case 1:
          #expect(kept.remove(key) == (list.contains(key) ? key : nil))
          list.removeAll { $0 == key }
        default:
          _ = kept.keep(key, for: key)
          list = Array(([key] + list.filter { $0 != key }).prefix(8))
        }
        #expect(kept.entries.map(\.key) == list)
      }
    }
  }
}
