import ProfileStore
import Testing
import ToolSupport

@testable import profilectl

@Suite("The name of a profile")
struct ProfileIDTests {
  private static let areas = ["1f3a9c07", "1f3a9c08", "ee000000"].compactMap {
    AreaID($0 + String(repeating: "0", count: 24))
  }

  @Test("is its ID or the digits with which only it begins", arguments: ["1f3a9c07", "ee00"])
  func found(digits: String) throws {
    let area = try ProfileID.area(digits, among: Self.areas)
    #expect(area.description.hasPrefix(digits))
  }

  @Test("that fits more than one is refused with both")
  func ambiguous() {
    #expect(
      throws: UsageError(
        "'1f3a' fits 2 profiles, \(Self.areas[0]) and \(Self.areas[1]) among them: give more digits"
      )
    ) { try ProfileID.area("1f3a", among: Self.areas) }
  }

  @Test("that fits none ends with code 1")
  func unknown() {
    #expect {
      try ProfileID.area("abcd", among: Self.areas)
    } throws: { ($0 as? ToolFailure)?.exitCode == .checkFailed }
  }

  @Test("has 4 to 32 hexadecimal digits and nothing else")
  func format() throws {
    let argument = Argument.required("profile", ProfileID.format, help: "")
    for text in ["1f3a", "1F3A", String(repeating: "a", count: 32)] {
      #expect(try argument.value(of: [text]) == text.lowercased())
    }
    for text in ["", "1f3", "1f3g", "1f3a ", "１２３４", String(repeating: "a", count: 33), "../.."] {
      #expect(throws: UsageError.self) { try argument.value(of: [text]) }
    }
  }

  @Test("is shown with 8 digits, or as many as tell all apart")
  func digitCount() {
    #expect(ProfileID.digitCount(toTellApart: []) == 8)
    #expect(ProfileID.digitCount(toTellApart: Self.areas) == 8)
    let twins = ["0", "1"].compactMap { AreaID(String(repeating: "a", count: 31) + $0) }
    #expect(ProfileID.digitCount(toTellApart: twins) == 32)
  }
}
