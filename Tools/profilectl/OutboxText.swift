import Foundation
import HubProtocol
import ProfileStore
import ToolSupport

/// The table of `profilectl outbox`.
struct OutboxText {
  private let listing: OutboxListing

  init(_ listing: OutboxListing) {
    self.listing = listing
  }

  /// - Parameter width: the terminal's; nil for a pipe or file, which gets everything.
  func lines(width: Int?) -> [String] {
    var lines = listing.rows.isEmpty ? ["Nothing is waiting."] : table(fitting: width)
    if listing.isTruncated { lines.append("There are more: raise --limit to see them.") }
    switch listing.profile.state {
    case .moved:
      lines.append("The profile was adopted: its adopter sends these, they are not sent from here.")
    case .frozen:
      lines.append("The profile is being adopted: nothing is sent from here.")
    case .owned, .unowned, .setAside, .erased, .unreadable, .missing: break
    }
    return lines
  }

  private func table(fitting width: Int?) -> [String] {
    let whole = table(isWhole: true).lines()
    let fits = width.map { width in
      whole.allSatisfy { TerminalText.width(of: $0) <= width }
    }
    let table = fits == false ? table(isWhole: false).lines(width: width) : whole
    // The titles, then each row with its payloads below it.
    return table.prefix(1)
      + zip(table.dropFirst(), listing.rows).flatMap { [$0] + payloads(of: $1.entry) }
  }

  private func table(isWhole: Bool) -> TextTable {
    var columns: [TextTable.Column] = [.init("ORDER", .trailing)]
    if isWhole { columns.append(.init("CHANGE")) }
    columns += [.init("KIND"), .init("RECORD", isShrinkable: true)]
    if isWhole { columns.append(.init("BASE")) }
    columns += [
      .init("SIZE", .trailing), .init("ENQUEUED"), .init("STATE", isShrinkable: true),
    ]
    var table = TextTable(columns)
    for row in listing.rows {
      let entry = row.entry
      var cells = ["\(entry.order)"]
      if isWhole { cells.append(entry.mutation.wireText) }
      cells += [entry.kind.rawValue, entry.record.text]
      if isWhole { cells.append(base(of: entry)) }
      cells += [
        row.payloadByteCount.map(Quantity.bytes) ?? "-", Timestamp.text(entry.enqueuedAt),
        state(of: row),
      ]
      table.append(cells)
    }
    return table
  }

  private func base(of entry: OutboxEntry) -> String {
    switch entry.base {
    case nil: "-"
    case .mustNotExist: "new"
    case .version(let version): "\(version)"
    case .mutation(let mutation): "after \(mutation.wireText.prefix(8))"
    }
  }

  private func state(of row: OutboxRow) -> String {
    if row.state == .held, let held = row.entry.held {
      return "held, tries: \(Quantity.count(held.attempts))"
    }
    guard let parked = row.entry.parked else { return row.state.rawValue }
    let code = parked.code.map { " (\($0))" } ?? ""
    return "parked: \(parked.reason.text)\(code)"
  }

  private func payloads(of entry: OutboxEntry) -> [String] {
    [("payload", entry.payload), ("at the hub", entry.parked?.current?.payload)]
      .compactMap { label, payload in payload.map { line(label, $0) } }
  }

  private func line(_ label: String, _ payload: Data) -> String {
    if let text = String(validating: payload, as: UTF8.self) {
      return "    \(label): \(TerminalText.escaped(text))"
    }
    return "    \(label), base64: \(payload.base64EncodedString())"
  }
}
