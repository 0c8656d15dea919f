import LMDB

struct Note: Codable {
  var title: String
}

@main struct Notes {
  static func main() async throws {
    let environment = try Environment.open(at: CommandLine.arguments[1])
    let notes = try environment.table("notes", key: UInt64Codec.self, value: JSONCodec<Note>.self)

    try await environment.write { transaction in
      try transaction.put(Note(title: "Buy bread"), for: 1, in: notes)
      try transaction.put(Note(title: "Call Ada"), for: 2, in: notes)
    }

    try environment.read { transaction in
      for (number, note) in try transaction.entries(in: notes) {
        print(number, note.title)
      }
    }
  }
}
