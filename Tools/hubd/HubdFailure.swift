import HubServer
import ToolSupport

/// What errors of the hub mean on the command line.
enum HubdFailure {
  static let meanings: [ExitCode: String] = [
    .ok: "Done; 'serve' was interrupted and has stopped in order.",
    .dataError: """
    The store, or a note beside it, is damaged, of another format, or of another hub.
    """,
    .unavailable: "The address cannot be listened on.",
    .cannotCreate: "A key file or the data directory cannot be made or written.",
    .temporaryFailure: "Another hub serves this data directory.",
    .configuration: "The configuration, or a key file, is wrong or cannot be read.",
  ]

  static func translate(_ error: any Error) -> ToolFailure? {
    guard let error = error as? HubServerError else { return nil }
    return ToolFailure(exitCode(of: error.code), error.description)
  }

  private static func exitCode(of code: HubServerError.Code) -> ExitCode {
    switch code {
    case .configurationInvalid, .keyInvalid, .tokenFailed: .configuration
    case .accountInvalid: .usage
    case .directoryInUse: .temporaryFailure
    case .directoryUnusable: .cannotCreate
    case .listenFailed: .unavailable
    case .storeUnusable: .dataError
    default: .internalError
    }
  }
}
