import Foundation
import Holdfast
import ToolSupport

extension Story {
  /// 7. Ada again; then a second device, byte for byte.
  func secondDevice(
    _ device: Device, _ hub: StoryHub, _ codes: IsoCodes
  ) async throws -> Device {
    try begin("Ada signs in again; a second device of hers pulls everything")
    let ada = try device.requireAda()
    device.session.signOut()
    device.session.signIn(ada, token: hub.tokens.ada)
    let profile = try await device.registry.profile(for: ada)
    let report = try await profile.synchronize(account: ada)
    try state(
      "her 600 edits went up, none parked", report.acknowledged == 600 && report.parked == 0)

    let second = try Device(directory.appending(path: "device-2"), hub: hub.connection)
    let account = try await second.registry.verify(
      token: hub.tokens.ada, clientName: "second device")
    second.ada = account
    let pulled = try await second.registry.profile(for: account)
    second.session.signIn(account, token: hub.tokens.ada)
    let count = codes.documents.count
    let bar = console.progress("Receiving", total: count, unit: "records")
    try await timed("pulled by the second device", records: count) {
      let observer = ProgressObserver { bar.update(done: Int(min($0.completed, UInt64(count)))) }
      _ = try await pulled.synchronize(account: account, progress: observer)
    }
    bar.finish()

    let here = try profile.records()
    let there = try pulled.records()
    try state(
      "both devices have \(Quantity.count(here.count)) records",
      here.count == count - 100 && there.count == here.count)
    try state(
      "they are the same, byte for byte",
      zip(here, there).allSatisfy { $0.id == $1.id && $0.payload == $1.payload })
    let edited = Data("{\"edited\":\"\(canaries.ada)\"}".utf8)
    let deleted = 100
    try state(
      "500 of them as Ada edited them, the others as iso-codes has them",
      there.filter { $0.payload == edited }.count == 500
        && Self.countUnchanged(there, codes) == count - 500 - deleted)
    return second
  }

  private static func countUnchanged(_ records: [Record], _ codes: IsoCodes) -> Int {
    let originals = Dictionary(uniqueKeysWithValues: codes.documents.map { ($0.id, $0.json) })
    return records.count { originals[$0.id] == $0.payload }
  }

  /// 8. Everything again, from the start.
  func replay(_ device: Device) async throws {
    try begin("A replay from the start on the second device")
    let ada = try device.requireAda()
    let profile = try await device.registry.profile(for: ada)
    let before = try profile.records()
    let cursor = try profile.cursor()
    let report = try await timed("replayed", records: before.count) {
      try await profile.synchronize(account: ada, replayFromStart: true)
    }
    try state(
      "\(Quantity.count(report.delivered)) records came again in \(report.pages) pages",
      report.delivered >= before.count && report.isComplete)
    let after = try profile.cursor()
    try state(
      "the cursor did not move back: \(cursor.map { "\($0.sequence)" } ?? "none") before, "
        + "\(after.map { "\($0.sequence)" } ?? "none") after",
      cursor != nil && after?.epoch == cursor?.epoch
        && (after?.sequence ?? 0) >= (cursor?.sequence ?? 1))
    try state("every record is as it was", try profile.records() == before)
  }

  /// 9. What an administrator sees.
  func showTools(_ device: Device) throws {
    try begin("profilectl on the first device's store, while it is open")
    let store = device.directory.path
    try console.print(indented(try ChildProcess.output(profilectl, ["--store", store, "list"])))
    let json = try ChildProcess.output(profilectl, ["--store", store, "list", "--json"])
    guard
      let list = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any],
      let profiles = list["profiles"] as? [[String: Any]],
      let first = profiles.first?["profile"] as? String ?? profiles.first?["id"] as? String
    else { throw StoryFailure(sentence: "profilectl list --json names its profiles") }
    try console.print(
      indented(try ChildProcess.output(profilectl, ["--store", store, "show", first])))
    try state("it lists both accounts' profiles", profiles.count == 2)
  }

  private func indented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { "   \($0)" }
      .joined(separator: "\n")
  }

  /// No byte of one account where the other's data is.
  func scan(_ device: Device) async throws {
    try begin("Looking for strings of one account in the other's area, and at the hub")
    let captured = directory.appending(path: "captured")
    let adas = try CanaryScan.files(below: directory, holding: canaries.ada)
    let bobs = try CanaryScan.files(below: directory, holding: canaries.bob)
    try state(
      "each canary is found where it belongs (\(adas.count) and \(bobs.count) files)",
      !adas.isEmpty && !bobs.isEmpty)
    // An area, or one account's captured requests, is a directory: no directory has both.
    // The hub's data file holds every account by design; its requests are told apart above.
    func places(_ files: [String]) -> Set<String> {
      let hubData = directory.appending(path: "hub").path
      return Set(
        files.filter { !$0.hasPrefix(hubData) }.map {
          ($0 as NSString).deletingLastPathComponent
        })
    }
    let bobsOwn = try await device.registry.profiles().first { $0.owner?.id.text == "bob" }
    let bobsArea = bobsOwn.map { "/\($0.area)/" } ?? "nowhere"
    // What was adopted is Ada's, too: the name of a language that is in no other list.
    let adopted = try CanaryScan.files(below: directory, holding: "Ghotuo")
    try state(
      "what Ada adopted is not in Bob's area, nor in what Bob sent",
      !adopted.isEmpty
        && adopted.allSatisfy { file in
          !file.contains(bobsArea)
            && !places(bobs).contains((file as NSString).deletingLastPathComponent)
        })
    try state(
      "no area and no account's requests hold a string of the other",
      places(adas).isDisjoint(with: places(bobs)))
    let sent = directory.appending(path: "sent").path
    try state(
      "every request was kept by whose token it bore, the refused ones too",
      adas.contains { $0.hasPrefix(sent + "/ada") } && bobs.contains { $0.hasPrefix(sent + "/bob") }
        && !adas.contains { $0.hasPrefix(sent + "/bob") }
        && !bobs.contains { $0.hasPrefix(sent + "/ada") })
    try state(
      "the hub took in requests of both accounts, each as its own",
      adas.contains { $0.hasPrefix(captured.path) } && bobs.contains { $0.hasPrefix(captured.path) }
    )
  }
}
