import Foundation
import HubServer
import ToolSupport

/// `hubd serve`.
enum ServeCommand {
  static let command = Command(
    "serve", summary: "Serves a hub until it is interrupted.",
    discussion: """
      Prints one line, 'listening on http://ADDRESS:PORT', once it can be asked. An interrupt \
      (Control-C, kill), from the beginning on, lets answers under way finish, closes the store \
      and ends with code 0; a second one ends it at once.
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
    for warning in warnings(about: configuration) { invocation.console.note("hubd: \(warning)") }
    // Whoever reads the line below may interrupt at once, and some do so before.
    Interrupts.listen()
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

  /// What is for tests only and should not stay unseen anywhere else.
  private static func warnings(about configuration: HubConfiguration) -> [String] {
    var warnings: [String] = []
    if configuration.faultsEnabled {
      warnings.append("faults.enabled is on: whoever has a token can make this hub misbehave")
    }
    if let directory = configuration.captureDirectory {
      warnings.append("debug.captureDirectory keeps every request in the clear: \(directory.path)")
    }
    return warnings
  }
}
