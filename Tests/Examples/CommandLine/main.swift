// A script that keeps notes at a hub: `add` and `list` work offline once somebody was signed in.
//
//   note HUB TOKEN DIRECTORY (add TEXT | list | sync)
import Foundation
import Holdfast

let arguments = CommandLine.arguments
guard arguments.count > 4, let hub = URL(string: arguments[1]) else {
  print("usage: note HUB TOKEN DIRECTORY (add TEXT | list | sync)")
  exit(64)
}
let token = arguments[2]
let folder = URL(filePath: arguments[3], directoryHint: .isDirectory)

do {
  let (profile, account) = try await openSignedIn(hub, token, folder)
  switch arguments[4] {
  case "add":
    let text = arguments.dropFirst(5).joined(separator: " ")
    let id = RecordID("note/\(UUID().uuidString.lowercased())")
    try await profile.enqueue(.put(id, Data(text.utf8), base: .mustNotExist), account: account)
    print("\(try profile.pendingSummary().count) waiting")
  case "list":
    for record in try profile.records() {
      print("\(record.isPending ? "+" : " ") \(String(decoding: record.payload, as: UTF8.self))")
    }
  case "sync":
    let report = try await profile.synchronize(account: account)
    print("\(report.acknowledged) sent, \(try profile.records().count) here")
  default:
    print("unknown command \(arguments[4]): add, list or sync")
    exit(64)
  }
} catch {
  FileHandle.standardError.write(Data("note: \(error)\n".utf8))
  exit(1)
}
