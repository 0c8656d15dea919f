import Foundation
import Holdfast

let words = CommandLine.arguments  // the hub's address, a token, a directory
guard words.count == 4, let hub = URL(string: words[1]) else { exit(64) }

let session = AppSession()
let registry = try ProfileRegistry(
  directory: URL(filePath: words[3]), session: session, hub: hub)
let account = try await registry.verify(token: words[2])
let profile = try await registry.profile(for: account)
session.signIn(account, token: words[2])

try await profile.enqueue(.put("greeting", Data("Hello".utf8)), account: account)
print("waiting:", try profile.pendingSummary().count)
try await profile.synchronize(account: account)
print("waiting:", try profile.pendingSummary().count)
for record in try profile.records() {
  print(record.id.text, record.version ?? 0, String(decoding: record.payload, as: UTF8.self))
}
