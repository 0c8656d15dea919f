import LMDB
import ProfileStore
import ToolSupport

/// What errors of a store mean on the command line.
enum StoreFailure {
  static let meanings: [ExitCode: String] = [
    .ok: "What was asked for was printed, and all of it can be read.",
    .checkFailed: "The store has no such profile, or it was erased.",
    .usage: "The command line was not understood, or the digits fit more than one profile.",
    .dataError: """
    The store or a profile is damaged, has a newer format, or registry and profile contradict \
    each other. What can be read was printed.
    """,
    .noInput: "There is no store at that place.",
    .temporaryFailure: "A limit of readers, memory or open files was reached; try again later.",
    .noPermission: "The files may not be read, or 'lock.mdb' not written.",
  ]

  static func translate(_ error: any Error) -> ToolFailure? {
    guard let error = error as? StoreError else { return nil }
    let code = exitCode(of: error)
    // A remedy for damage would do harm where only rights are missing.
    if code == .noPermission, let cause = error.cause {
      return ToolFailure(
        code,
        "the store may not be opened: \(cause); use the account of the app, which may read the"
          + " store and write each 'lock.mdb', or look at a copy of your own")
    }
    return ToolFailure(code, error.description)
  }

  static func exitCode(of error: StoreError) -> ExitCode {
    switch error.code {
    case .notAStore: .noInput
    case .newerFormat, .damaged, .undecodable, .registryDisagrees: .dataError
    case .unknownArea, .erased: .checkFailed
    case .storage: error.cause.map { exitCode(of: $0.code) } ?? .inputOutput
    // What only a change of the store is answered with.
    default: .internalError
    }
  }

  private static func exitCode(of code: LMDBError.Code) -> ExitCode {
    switch code {
    case .noPermission: .noPermission
    case .readersFull, .outOfResources, .busy, .mapResized: .temporaryFailure
    case .damaged, .versionMismatch, .badForm, .incompatible, .tableMissing, .missing,
      .notADirectory:
      .dataError
    default: .inputOutput
    }
  }
}
