/// What every tool accepts without declaring it.
enum BuiltInParameters {
  static let color = Option.defaulted(
    "color", .choice, to: ColorChoice.auto,
    help: "When to use colors; 'auto' means on a terminal, if NO_COLOR is not set.")
  static let version = Flag("version", help: "Show the version.")
  static let help = Flag("help", short: "h", help: "Show this help.")

  static let all: [any Parameter] = [color, version, help]
}
