import Foundation
import ProfileStore
import ToolSupport

/// The table of `profilectl list`.
struct ListText {
  private let survey: StoreSurvey
  private let revealsAccounts: Bool
  private let digitCount: Int

  init(_ survey: StoreSurvey, revealsAccounts: Bool) {
    self.survey = survey
    self.revealsAccounts = revealsAccounts
    digitCount = ProfileID.digitCount(toTellApart: survey.profiles.map(\.area))
  }

  /// - Parameter width: the terminal's; nil for a pipe or file, which gets everything.
  func lines(width: Int?) -> [String] {
    var lines = survey.profiles.isEmpty ? ["There are no profiles."] : table(fitting: width)
    var problems: [String] = []
    if let failure = survey.registryFailure {
      problems.append("registry: \(failure.description)")
    }
    for profile in survey.profiles {
      guard let problem = profile.problem else { continue }
      problems.append("\(profile.area.description.prefix(digitCount)): \(problem)")
    }
    if !problems.isEmpty { lines += [""] + problems.map(TerminalText.escaped) }
    return lines
  }

  private func table(fitting width: Int?) -> [String] {
    let tables = [
      table(digitCount: 32, showsLastPass: true),
      table(digitCount: digitCount, showsLastPass: true),
      table(digitCount: digitCount, showsLastPass: false),
    ]
    guard let width else { return tables[0].lines() }
    let fitting = tables.first { table in
      table.lines().allSatisfy { TerminalText.width(of: $0) <= width }
    }
    return (fitting ?? tables[2]).lines(width: width)
  }

  private func table(digitCount: Int, showsLastPass: Bool) -> TextTable {
    var columns: [TextTable.Column] = [
      .init("PROFILE"), .init("STATE"), .init("OWNER", isShrinkable: true),
      .init("RECORDS", .trailing), .init("PENDING", .trailing), .init("PARKED", .trailing),
      .init("USED", .trailing),
    ]
    if showsLastPass { columns.append(.init("LAST PASS")) }
    var table = TextTable(columns)
    for profile in survey.profiles {
      var row = [String(profile.area.description.prefix(digitCount)), profile.state.text]
      row += numbers(of: profile)
      if showsLastPass { row.append(profile.lastPass?.shortText ?? "-") }
      table.append(row)
    }
    return table
  }

  private func numbers(of profile: ProfileInfo) -> [String] {
    guard profile.state.isReadable else {
      let used = profile.usedByteCount
      return ["-", "-", "-", "-", used > 0 ? Quantity.bytes(used) : "-"]
    }
    return [
      profile.owner.map { AccountName($0, isRevealed: revealsAccounts).text } ?? "-",
      Quantity.count(profile.records), Quantity.count(profile.pending.count),
      Quantity.count(profile.pending.parked), Quantity.bytes(profile.usedByteCount),
    ]
  }
}

extension ProfileInfo.State {
  /// As a person reads it.
  var text: String { self == .setAside ? "set aside" : rawValue }

  /// Whether the numbers of such a profile mean anything.
  var isReadable: Bool {
    switch self {
    case .owned, .unowned, .setAside, .frozen, .moved: true
    case .erased, .unreadable, .missing: false
    }
  }
}

extension PassOutcome {
  /// When, and whether it did all; `show` has the sentence.
  var shortText: String { Timestamp.text(endedAt) + (isComplete ? "" : " incomplete") }
}

/// How every time is written.
enum Timestamp {
  /// ISO 8601 in UTC, to the second.
  static func text(_ date: Date) -> String { date.formatted(.iso8601) }
}
