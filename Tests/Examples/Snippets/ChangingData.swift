import Foundation
import Holdfast

struct Note: Codable {
  var title: String
}

func changes(profile: Profile, account: VerifiedAccount) async throws {
  try await profile.enqueue(
    .put("note/1", encoding: Note(title: "Buy bread"), base: .mustNotExist), account: account)

  if let record = try profile.record("note/1") {
    var note = try record.decode(Note.self)
    note.title = "Buy bread and butter"
    try await profile.enqueue(
      .put(record.id, encoding: note, base: record.base), account: account)
  }
}

func allOrNone(profile: Profile, account: VerifiedAccount, from: Record, to: Record) async throws {
  try await profile.enqueue(
    [.delete(from.id, base: from.base), .put(to.id, from.payload, base: to.base)],
    account: account)
}

func ownTable(profile: Profile, account: VerifiedAccount) async throws {
  let drafts = try profile.table("drafts", key: TextCodec.self, value: TextCodec.self)
  try await profile.enqueue(
    [.put("note/1", Data("Buy bread".utf8))], account: account
  ) { transaction in
    try transaction.delete("note/1", in: drafts)
  }
}

func parked(profile: Profile, account: VerifiedAccount) async throws {
  for entry in try profile.parked() {
    let theirs = entry.parked?.current?.payload
    let mine = entry.payload
    let resolution: Resolution =
      if let mine, let theirs { .merged(merge(mine, theirs)) } else { .keepHub }
    try await profile.resolve(
      entry.mutation, seen: entry.parked?.current?.version, account: account, resolution)
  }
}

private func merge(_ mine: Data, _ theirs: Data) -> Data { theirs + mine }

func replacing(
  profile: Profile, account: VerifiedAccount, entry: OutboxEntry, text: String
) async throws {
  try await profile.enqueue(
    .put(
      entry.record, Data(text.utf8), base: entry.parked?.current?.base ?? .mustNotExist,
      replacing: entry.mutation), account: account)
}
