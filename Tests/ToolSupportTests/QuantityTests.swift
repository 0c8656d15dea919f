import Testing

@testable import ToolSupport

@Suite("A number for a person")
struct QuantityTests {
  static let counts: [(number: Int, text: String)] = [
    (0, "0"), (7, "7"), (999, "999"), (1000, "1,000"), (13_000, "13,000"), (-1, "-1"),
    (-123_456, "-123,456"), (1_234_567, "1,234,567"), (.min, "-9,223,372,036,854,775,808"),
  ]

  @Test("has its digits in groups of three", arguments: counts)
  func count(number: Int, text: String) {
    #expect(Quantity.count(number) == text)
  }

  static let sizes: [(number: Int, text: String)] = [
    (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536, "1.5 KiB"),
    (1_048_575, "1.0 MiB"), (1_048_576, "1.0 MiB"), (5 << 30, "5.0 GiB"),
    (5000 << 40, "5000.0 TiB"), (-2048, "-2.0 KiB"),
  ]

  @Test("of bytes is in the unit that keeps it short", arguments: sizes)
  func bytes(number: Int, text: String) {
    #expect(Quantity.bytes(number) == text)
  }

  static let durations: [(duration: Duration, text: String)] = [
    (.zero, "0.00 ms"), (.microseconds(420), "0.42 ms"), (.milliseconds(99), "99.00 ms"),
    (.milliseconds(250), "250 ms"), (.microseconds(999_400), "999 ms"),
    (.microseconds(999_600), "1.00 s"), (.milliseconds(1250), "1.25 s"),
    (.microseconds(59_996_000), "1 min 00 s"), (.seconds(185), "3 min 05 s"),
    (.seconds(7620), "2 h 07 min"),
  ]

  @Test("of seconds is in the unit that keeps it short", arguments: durations)
  func duration(duration: Duration, text: String) {
    #expect(Quantity.duration(duration) == text)
  }

  @Test("per second is rounded, and a dash where no time passed")
  func rate() {
    #expect(Quantity.rate(12_500, over: .milliseconds(400)) == "31,250/s")
    #expect(Quantity.rate(0, over: .seconds(1)) == "0/s")
    #expect(Quantity.rate(5, over: .zero) == "-")
    #expect(Quantity.rate(.max, over: .nanoseconds(1)) == "-")
  }
}
