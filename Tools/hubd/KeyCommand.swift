import Foundation
import HubServer
import ToolSupport

/// `hubd key`.
enum KeyCommand {
  static let algorithm = Option.defaulted(
    "algorithm", short: "a", .choice, to: TokenAlgorithm.es256, help: "What the key is for.")
  static let out = Option.required(
    "out", short: "o", .path.named("file"),
    help: "Where it goes, with mode 0600; a file that is there is kept.")

  static let command = Command(
    "key", summary: "Makes a signing key as a JWK file.",
    parameters: [algorithm, out],
    examples: [
      .init("hubd key --algorithm RS256 --out hub-key.jwk", "Makes a 2,048-bit RSA key.")
    ]
  ) { invocation in
    let key = try SigningKey.generate(invocation[algorithm])
    try write(try key.privateJWK(), to: invocation[out])
    try invocation.console.print("made \(invocation[out])")
    return .ok
  }

  /// A key that exists is never replaced: tokens that it signed would be worth nothing.
  private static func write(_ bytes: Data, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let reason = String(cString: strerror(errno))
      throw ToolFailure(.cannotCreate, "\(path) cannot be made: \(reason); choose another file")
    }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    do {
      try file.write(contentsOf: bytes)
      try file.synchronize()
      try file.close()
    } catch {
      // An empty or cut file would be in the way of the next attempt, and is no key.
      unlink(path)
      throw ToolFailure(.inputOutput, "\(path) cannot be written; check the space there")
    }
  }
}
