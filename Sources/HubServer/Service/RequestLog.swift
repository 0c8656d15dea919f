import Dispatch
import Foundation
import HubProtocol
import Synchronization

/// A file to which every request adds one JSON line: what was asked and answered, and not by whom.
///
/// It has no account ID, token, query value or payload; accounts are told apart by a hash that is
/// salted with the hub's ID. Lines are written on a queue of its own, in the order of the answers.
final class RequestLog: Sendable {
  /// One request.
  struct Entry: Encodable, Sendable {
    /// When the answer was finished, seconds since 1970.
    var time: Double
    var method: String
    /// The path, and the names of the query's parameters without their values.
    var path: String
    /// 0 if the connection ended before there was an answer.
    var status: Int
    var requestBytes: Int
    var answerBytes: Int
    var milliseconds: Double
    /// Nil if no token was verified.
    var account: String?
    /// What went wrong inside the hub.
    var cause: String?
  }

  private let descriptor: Int32
  private let queue = DispatchQueue(label: "holdfast.hub.log")
  private let salt: [UInt8]

  /// Opens the file to add to it.
  /// - Throws: ``HubServerError`` `directoryUnusable`.
  init(file: URL, hub: UUID) throws(HubServerError) {
    descriptor = open(file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw HubServerError(
        .directoryUnusable,
        "the request log \(file.path) cannot be opened: \(String(cString: strerror(errno)))")
    }
    salt = Array(hub.wireText.utf8)
  }

  deinit { close(descriptor) }

  /// Adds a line, later. A line that cannot be written is lost: serving goes on without it.
  func add(_ entry: Entry) {
    queue.async { [self] in
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      guard var line = try? encoder.encode(entry) else { return }
      line.append(UInt8(ascii: "\n"))
      line.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
    }
  }

  /// Waits until the lines so far are written.
  func flush() { queue.sync {} }

  /// What stands for an account in this hub's log: 16 hexadecimal digits.
  func hash(of account: AccountID) -> String {
    SHA256Hasher.hexadecimal(SHA256Hasher.digest(of: salt + account.bytes).prefix(8))
  }

  /// A target as the log shows it.
  static func redacted(_ target: [UInt8]) -> String {
    let parts = target.split(
      separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    let path = String(decoding: parts.first ?? [], as: UTF8.self)
    guard parts.count == 2 else { return path }
    let names = parts[1].split(separator: UInt8(ascii: "&")).map { pair in
      String(decoding: pair.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
    }
    return path + "?" + names.joined(separator: "&")
  }
}
