package import Foundation
package import HubProtocol
package import HubRules
import Synchronization

/// Writes every request that was let through into a directory, for tests that scan what reached the
/// hub, and as whom. Never in production: it keeps what people wrote, in the clear.
///
/// One directory per account, named by the SHA-256 of its ID, with a file `account` that holds the
/// ID and one numbered file per request: method and target, an empty line, the body. Numbers go on
/// behind those that an earlier run left.
package final class BodyCapture: Sendable {
  private let directory: URL
  private let last = Mutex<Int?>(nil)

  package init(directory: URL) { self.directory = directory }

  /// Keeps one request.
  package func add(_ body: Data, of head: RequestHead, from account: AccountID) throws {
    let name = SHA256Hasher.hexadecimal(SHA256Hasher.digest(of: account.bytes))
    let own = directory.appending(path: name, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let number = try last.withLock { last in
      let next = try (last ?? highestNumber()) + 1
      last = next
      return next
    }
    try Data(account.bytes).write(to: own.appending(path: "account"))
    var text = Data("\(head.method) ".utf8)
    text.append(contentsOf: head.target)
    text.append(contentsOf: Data("\n\n".utf8))
    text.append(body)
    let digits = String(number)
    let padded = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    try text.write(to: own.appending(path: "\(padded).request"), options: .withoutOverwriting)
  }

  private func highestNumber() throws -> Int {
    let manager = FileManager.default
    return try manager.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
      .flatMap { try manager.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil) }
      .compactMap { Int($0.deletingPathExtension().lastPathComponent) }.max() ?? 0
  }
}
