import Testing

@testable import ToolSupport

@Suite("The text of a value")
struct ValueFormatTests {
  static let integers: [(text: String, value: Int?)] = [
    ("0", 0), ("10", 10), ("-3", -3), ("007", 7), ("11", nil), ("-4", nil), ("+5", nil),
    ("", nil), (" 5", nil), ("5 ", nil), ("1,0", nil), ("0x5", nil), ("5.0", nil), ("٥", nil),
    ("9223372036854775808", nil),
  ]

  @Test("as a whole number is read within its range only", arguments: integers)
  func integer(text: String, value: Int?) {
    #expect(ValueFormat.integer(in: -3...10).read(text) == value)
  }

  static let durations: [(text: String, value: Duration?, shown: String?)] = [
    ("500ms", .milliseconds(500), "500ms"), ("30s", .seconds(30), "30s"),
    ("10m", .seconds(600), "10m"), ("2h", .seconds(7200), "2h"),
    ("7d", .seconds(604_800), "7d"), ("0s", .zero, "0ms"),
    ("1500ms", .milliseconds(1500), "1500ms"),
    ("60s", .seconds(60), "1m"), ("24h", .seconds(86_400), "1d"), ("30", nil, nil), ("s", nil, nil),
    ("-1s", nil, nil), ("1.5s", nil, nil), ("1 s", nil, nil), ("1S", nil, nil), ("", nil, nil),
    ("٣s", nil, nil), ("9223372036854775807d", nil, nil),
  ]

  @Test("as a length of time needs a unit", arguments: durations)
  func duration(text: String, value: Duration?, shown: String?) {
    #expect(ValueFormat.duration.read(text) == value)
    #expect(value.map(ValueFormat.duration.write) == shown)
  }

  @Test("as a path is never empty and never changed")
  func path() {
    #expect(ValueFormat.path.read("") == nil)
    #expect(ValueFormat.path.read("~/a/../b ") == "~/a/../b ")
  }

  @Test("as a choice is one of the listed words, letter for letter")
  func choice() {
    let format = ValueFormat<ColorChoice>.choice
    #expect(format.valueName == "auto|never|always")
    #expect(format.read("never") == .never)
    #expect(format.read("Never") == nil)
    #expect(format.read("") == nil)
  }
}
