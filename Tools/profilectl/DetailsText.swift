import HubProtocol
import ProfileStore
import ToolSupport

/// The text of `profilectl show`: groups of labels and values.
struct DetailsText {
  private typealias Row = (label: String, values: [String])

  private let details: ProfileDetails
  private let revealsAccounts: Bool
  private static let labelWidth = 18

  init(_ details: ProfileDetails, revealsAccounts: Bool) {
    self.details = details
    self.revealsAccounts = revealsAccounts
  }

  /// Nothing is cut: a person copies from here.
  var lines: [String] {
    var groups = [identity]
    if details.profile.state.isReadable, let contents = details.contents {
      groups += [
        hub(contents), records(contents), outbox(contents), adoptions(contents), storage(contents),
        tables(contents),
      ]
    } else {
      groups.append([files])
    }
    return groups.map { $0.flatMap(lines(of:)) }.filter { !$0.isEmpty }
      .joined(separator: [""]).map { $0 }
  }

  private func lines(of row: Row) -> [String] {
    row.values.enumerated().map { index, value in
      let label = index == 0 ? row.label : ""
      let space = String(repeating: " ", count: max(1, Self.labelWidth - label.count))
      return label + space + TerminalText.escaped(value)
    }
  }

  private func name(_ account: VerifiedAccount) -> String {
    AccountName(account, isRevealed: revealsAccounts).textWithHub
  }

  // MARK: - Groups

  private var identity: [Row] {
    let profile = details.profile
    var rows: [Row] = [
      ("profile", [profile.area.description]),
      ("state", [profile.state.text]),
    ]
    if let problem = profile.problem { rows.append(("problem", [problem])) }
    if profile.state.isReadable {
      rows.append(("owner", [profile.owner.map(name) ?? "nobody"]))
    }
    if let adopter = details.contents?.adopter {
      rows.append(("adopted by", ["\(name(adopter.account)), adoption \(adopter.id.wireText)"]))
    }
    if let created = profile.createdAt { rows.append(("created", [Timestamp.text(created)])) }
    return rows + [("directory", [details.directory]), ("registry", [registry])]
  }

  private var registry: String {
    guard let note = details.registry else { return "cannot be read" }
    let state = note.state.map { $0 == "setAside" ? "set aside" : $0 } ?? "does not name it"
    return note.intent.map { "\(state); '\($0)' was begun" } ?? state
  }

  private func hub(_ contents: AreaContents) -> [Row] {
    let profile = details.profile
    var rows: [Row] = []
    if let client = profile.client {
      let isRegistered = contents.isClientRegistered ? "registered" : "not registered yet"
      rows.append(("client", ["\(client.wireText), \(isRegistered)"]))
    }
    if contents.isCopy {
      rows.append(("copy", ["the file was copied: an app that opens it becomes a new client"]))
    }
    if contents.isErasedAtHub { rows.append(("account", ["erased at the hub"])) }
    rows += [
      ("cursor", [profile.cursor.map(place) ?? "none: nothing was pulled yet"]),
      ("high water", [contents.highWater.map(place) ?? "not known yet"]),
    ]
    if !contents.lineage.isEmpty {
      rows.append(
        (
          "left epochs", contents.lineage.map { "\($0.epoch.wireText), forked at \($0.forkedAt)" }
        ))
    }
    return rows + [
      ("scan", [scan(contents)]),
      ("last pass", [lastPass]),
      ("hub's limits", [contents.hubLimits.map(limits) ?? "not known yet"]),
    ]
  }

  private func place(_ cursor: Cursor) -> String {
    "\(cursor.sequence) in epoch \(cursor.epoch.wireText)"
  }

  private func scan(_ contents: AreaContents) -> String {
    guard let scan = contents.scan else {
      return contents.hasFinishedScan ? "finished" : "never finished"
    }
    let kind =
      switch scan.kind {
      case .first: "first scan"
      case .expired: "scan after the cursor expired"
      case .newEpoch: "scan of a new epoch"
      case .replay: "replay"
      }
    let phase = scan.phase == .legs ? "" : ", and what came after it"
    return "\(kind): at \(scan.place) of \(scan.until) in epoch \(scan.epoch.wireText)\(phase)"
  }

  private var lastPass: String {
    guard let pass = details.profile.lastPass else { return "none yet" }
    let time = Timestamp.text(pass.endedAt)
    return pass.isComplete ? "\(time), complete" : "\(time), incomplete: \(pass.message)"
  }

  private func limits(_ limits: HubLimits) -> String {
    "payload \(Quantity.bytes(limits.payloadBytes)); "
      + "push \(Quantity.count(limits.pushMutations)) and \(Quantity.bytes(limits.pushBytes)); "
      + "pull \(Quantity.count(limits.pullRecords)) and \(Quantity.bytes(limits.pullBytes))"
  }

  private func records(_ contents: AreaContents) -> [Row] {
    let known = Quantity.count(details.profile.knownRecords)
    var rows: [Row] = [
      ("records", [Quantity.count(details.profile.records)]),
      ("known at the hub", ["\(known), \(Quantity.count(contents.tombstones)) of them deleted"]),
      ("beside edits", [Quantity.count(contents.besideEdits)]),
      ("lost at the hub", [Quantity.count(contents.lostAtHub)]),
    ]
    if contents.position > 0 { rows.append(("batch position", ["\(contents.position)"])) }
    return rows
  }

  private func outbox(_ contents: AreaContents) -> [Row] {
    let pending = details.profile.pending
    let size = Quantity.bytes(pending.payloadByteCount)
    let reasons = Parked.Reason.allCases.compactMap { reason in
      contents.parked[reason].map { "\(Quantity.count($0)) \(reason.text)" }
    }
    let parked = Quantity.count(pending.parked)
    return [
      ("pending", ["\(Quantity.count(pending.count)), \(size) of payloads"]),
      ("parked", [reasons.isEmpty ? parked : "\(parked): \(reasons.joined(separator: ", "))"]),
      ("oldest pending", [pending.oldest.map(Timestamp.text) ?? "none"]),
      ("acknowledged", ["\(Quantity.count(contents.acknowledged)) kept"]),
      ("not struck off", [Quantity.count(contents.settled)]),
    ]
  }

  private func adoptions(_ contents: AreaContents) -> [Row] {
    guard !contents.adoptions.isEmpty else { return [] }
    let lines = contents.adoptions.flatMap { adoption in
      let receipt = adoption.receipt
      return [
        "\(adoption.id.wireText) from \(receipt.source)",
        "  at \(Timestamp.text(receipt.adoptedAt)), "
          + "\(Quantity.count(receipt.records)) records, "
          + "\(Quantity.count(receipt.mutations)) changes",
      ]
    }
    return [("adoptions", lines)]
  }

  private func storage(_ contents: AreaContents) -> [Row] {
    let slots = Quantity.count(contents.readerSlotCount)
    return [
      ("used", [Quantity.bytes(details.profile.usedByteCount)]),
      ("map size", [Quantity.bytes(contents.mapByteCount)]),
      ("reader slots", ["\(slots) of \(Quantity.count(contents.readerCountMax)) at most"]),
      ("last transaction", ["\(contents.lastTransaction)"]),
      files,
    ]
  }

  private var files: Row {
    ("files", details.files.map { "\($0.name), \(Quantity.bytes($0.byteCount))" })
  }

  private func tables(_ contents: AreaContents) -> [Row] {
    [("tables", contents.tables.map { "\($0.name), \(Quantity.count($0.entryCount))" })]
  }
}
