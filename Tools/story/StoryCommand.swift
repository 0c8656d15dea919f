import Foundation
import ToolSupport

/// `quickstart-story`: the main job from start to end, checking itself.
enum StoryCommand {
  static let hubd = Option.required(
    "hubd", .path.named("program"), help: "The hub to start.")
  static let profilectl = Option.required(
    "profilectl", .path.named("program"), help: "The inspection tool to show.")
  static let directory = Option.required(
    "directory", .path.named("directory"), help: "An empty directory for the stores and the hub.")
  static let isoCodes = Option.defaulted(
    "iso-codes", .path.named("directory"), to: "/usr/share/iso-codes/json",
    help: "Where Debian's iso-codes are.")

  static let command = Command(
    "quickstart-story",
    summary: "Two accounts, one device, a real hub: shows that nothing crosses over.",
    discussion: "Called by Tools/quickstart, which builds what it needs and cleans up after it.",
    parameters: [hubd, profilectl, directory, isoCodes]
  ) { invocation in
    let story = Story(
      console: invocation.console,
      directory: URL(filePath: invocation[directory], directoryHint: .isDirectory),
      hubd: invocation[hubd], profilectl: invocation[profilectl],
      isoCodes: invocation[isoCodes])
    do {
      try await story.tell()
    } catch OutputError.closedPipe {
      // The exit code is a verdict on every step, and not every step was taken.
      throw StoryFailure(sentence: "the story was told to its end (its reader went away)")
    }
    return .ok
  }
}
