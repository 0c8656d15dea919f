import Foundation
import HubServer
import ToolSupport

/// `hubd check-config`.
enum CheckCommand {
  static let file = Argument.required(
    "file", .path.named("file"), help: "The configuration file.")

  static let command = Command(
    "check-config", summary: "Checks a configuration file and the keys it names.",
    discussion: "Nothing is started and nothing is written.",
    parameters: [file]
  ) { invocation in
    let configuration = try HubConfiguration.read(from: URL(filePath: invocation[file]))
    let keys = configuration.tokens.keys.count
    try invocation.console.print(
      "\(invocation[file]) is right: \(keys) \(keys == 1 ? "key" : "keys"), data in "
        + configuration.dataDirectory.path)
    return .ok
  }
}
