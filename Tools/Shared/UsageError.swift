/// The command line was not understood. ``Tool`` prints it with the way to the help and ends with
/// ``ExitCode/usage``.
public struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, with a suggestion where a similar word exists; words of the person are escaped.
  public let message: String
  /// The words of the command that was meant, the tool's name first, as far as it was understood.
  /// Empty for an error that a command throws itself; ``Tool`` then knows which one ran.
  public let commandPath: [String]

  /// Makes an error for what declarations can't say, such as two options that exclude each other.
  public init(_ message: String) {
    self.init(message, commandPath: [])
  }

  init(_ message: String, commandPath: [String]) {
    self.message = message
    self.commandPath = commandPath
  }

  /// The message.
  public var description: String { message }
}
