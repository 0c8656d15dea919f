import Foundation
import HubServer
import SyncTestSupport

/// A `case-child`.
enum CaseChild {
  /// - Parameter words: what the task needs besides hub, directory and token.
  static func start(
    _ task: String, _ hub: TestHub, _ directory: URL, as account: String, _ words: [String] = []
  ) throws -> ChildProgram {
    try ChildProgram(
      "case-child",
      [task, hub.server.url.absoluteString, directory.path, try hub.token(for: account)] + words)
  }

  /// Runs one to its end.
  static func run(
    _ task: String, _ hub: TestHub, _ directory: URL, as account: String, _ words: [String] = []
  ) async throws -> (lines: [String], ending: ChildProgram.Ending) {
    let child = try start(task, hub, directory, as: account, words)
    let lines = await child.lines()
    return (lines, try await child.end())
  }
}
