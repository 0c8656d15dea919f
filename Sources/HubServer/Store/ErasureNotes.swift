import Foundation
import HubProtocol

/// Erasures, and their undoing, noted beside the data file: a data file that was restored from an
/// older copy does not bring erased data back.
///
/// A note is on the disk before its transaction begins, and the transaction stores the note's ID. A
/// start applies what is noted here and not stored there. (protocol.md, *Accounts*.)
struct ErasureNotes: Sendable {
  /// One line of the file.
  struct Note: Codable, Hashable, Sendable {
    enum Action: String, Codable, Sendable {
      case erase
      case recreate
    }

    var id: UUID
    var action: Action
    /// The account ID's bytes, base64url.
    var account: String
  }

  let file: URL

  /// Notes an action, durably.
  func add(_ action: Note.Action, _ account: AccountID) throws(HubServerError) -> Note {
    let note = Note(id: UUID(), action: action, account: Base64URL.encode(account.bytes))
    do {
      var line = try JSONEncoder().encode(note)
      line.append(UInt8(ascii: "\n"))
      try DurableFile.append(line, to: file)
    } catch let error as HubServerError {
      throw error
    } catch {
      throw HubServerError(.directoryUnusable, "\(file.path) cannot be written", cause: error)
    }
    return note
  }

  /// All notes, oldest first. A last line without its end was cut off by a crash before anybody was
  /// told of it: it is taken away.
  func read() throws(HubServerError) -> [(note: Note, account: AccountID)] {
    guard let bytes = try DurableFile.read(file) else { return [] }
    let whole = bytes.lastIndex(of: UInt8(ascii: "\n")).map { bytes[...$0] } ?? Data()
    if whole.count < bytes.count { try DurableFile.replace(file, with: Data(whole)) }
    var notes: [(note: Note, account: AccountID)] = []
    for line in whole.split(separator: UInt8(ascii: "\n")) {
      do {
        let note = try JSONDecoder().decode(Note.self, from: Data(line))
        notes.append(
          (note, try AccountID(bytes: Base64URL.decode(note.account.utf8) ?? [])))
      } catch {
        throw HubServerError(
          .storeUnusable,
          "\(file.path) has a line that cannot be understood; restore the file before you go on",
          cause: error)
      }
    }
    return notes
  }
}
