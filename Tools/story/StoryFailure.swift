import Holdfast
import ToolSupport

/// A step of the story that was not so.
struct StoryFailure: Error {
  let sentence: String

  static let meanings: [ExitCode: String] = [
    .ok: "Every step of the story was so.",
    .checkFailed: "A step was not so; the last line says which.",
    .noInput: "Debian's iso-codes are not there.",
    .unavailable: "The hub could not be started.",
  ]

  static func translate(_ error: any Error) -> ToolFailure? {
    switch error {
    case let error as StoryFailure: ToolFailure(.checkFailed, "not so: \(error.sentence)")
    case let error as StoreError:
      ToolFailure(.checkFailed, "unexpected: \(error.code.description): \(error)")
    case let error as SyncError:
      ToolFailure(.checkFailed, "unexpected: \(error.code.description): \(error)")
    case let error as TransportError: ToolFailure(.unavailable, "\(error)")
    default: nil
    }
  }
}
