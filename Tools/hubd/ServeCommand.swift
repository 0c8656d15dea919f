import Foundation
import HubServer
import ToolSupport

/// `hubd serve`.
enum ServeCommand {
  static let command = Command(
    "serve", summary: "Serves a hub until it is interrupted.",
    discussion: """
      Prints one line, 'listening on http://ADDRESS:PORT', once it can be asked. An interrupt \
      (Control-C, kill) lets answers under way finish, closes the store and ends with code 0; a \
      second one ends it at once.
      """,
    parameters: [
      ConfigurationOptions.config, ConfigurationOptions.data, ConfigurationOptions.port,
      ConfigurationOptions.key,
    ],
    examples: [
      .init("hubd serve --config hub.json --port 0", "Serves at a port that is free.")
    ]
  ) { invocation in
    var configuration = try ConfigurationOptions.configuration(
      file: invocation[ConfigurationOptions.config], key: invocation[ConfigurationOptions.key])
    if let data = invocation[ConfigurationOptions.data] {
      configuration.dataDirectory = URL(filePath: data, directoryHint: .isDirectory)
    }
    if let port = invocation[ConfigurationOptions.port] {
      configuration.listen.port = UInt16(clamping: port)
    }
    let hub = try await HubServer.start(configuration)
    do {
      try invocation.console.print("listening on \(hub.url.absoluteString)")
      _ = await Interrupts.next()
    } catch {
      // Nobody can read where it listens: stop in order, and say why.
      try await hub.stop()
      throw error
    }
    try await hub.stop()
    return .ok
  }
}
