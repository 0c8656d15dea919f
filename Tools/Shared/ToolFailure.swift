/// Why a tool could not do its work: one sentence for the person, one number for the script.
///
/// ``Tool`` prints the message as `name: message` on standard error and ends with the code.
public struct ToolFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The number that the process ends with; never ``ExitCode/ok``.
  public let exitCode: ExitCode
  /// One sentence that names the thing and the remedy, without a payload, key or token.
  public let message: String

  /// Makes a failure.
  ///
  /// - Precondition: `exitCode` is not ``ExitCode/ok``.
  public init(_ exitCode: ExitCode, _ message: String) {
    precondition(exitCode != .ok, "a failure can't end with exit code 0: choose the code it means")
    self.exitCode = exitCode
    self.message = message
  }

  /// The message.
  public var description: String { message }
}
