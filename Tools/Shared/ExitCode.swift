/// What a tool tells its caller when it ends.
///
/// The numbers from 64 on are those of `sysexits.h`, so that a script can tell "you wrote the
/// command wrong" from "the data is damaged" without reading any text. A tool that a signal stops
/// ends by that signal; a shell shows it as 128 plus the signal's number (130 for Control-C).
public enum ExitCode: Int32, CaseIterable, Hashable, Sendable {
  /// The work is done, or what was asked about is so.
  case ok = 0
  /// What was asked about is not so, or a check failed. Nothing went wrong in asking.
  case checkFailed = 1
  /// The command line was not understood (`EX_USAGE`).
  case usage = 64
  /// Data is damaged or not in the expected form (`EX_DATAERR`).
  case dataError = 65
  /// A named input is not there or can't be read (`EX_NOINPUT`).
  case noInput = 66
  /// A service or program that is needed is not there (`EX_UNAVAILABLE`).
  case unavailable = 69
  /// The tool itself is at fault: an error that it has no translation for (`EX_SOFTWARE`).
  case internalError = 70
  /// A file or directory can't be made (`EX_CANTCREAT`).
  case cannotCreate = 73
  /// Reading or writing failed (`EX_IOERR`).
  case inputOutput = 74
  /// It did not work now; the same command may work later (`EX_TEMPFAIL`).
  case temporaryFailure = 75
  /// Not permitted (`EX_NOPERM`).
  case noPermission = 77
  /// A configuration file or setting is wrong (`EX_CONFIG`).
  case configuration = 78

  /// The general meaning, as `--help` prints it unless a tool has a closer one.
  public var explanation: String {
    switch self {
    case .ok: "Done, or what was asked about is so."
    case .checkFailed: "What was asked about is not so, or a check failed."
    case .usage: "The command line was not understood."
    case .dataError: "Data is damaged or not in the expected form."
    case .noInput: "A named input is not there or can't be read."
    case .unavailable: "A service or program that is needed is not there."
    case .internalError: "A defect of this tool; please report it."
    case .cannotCreate: "A file or directory can't be made."
    case .inputOutput: "Reading or writing failed."
    case .temporaryFailure: "It did not work now; try again later."
    case .noPermission: "Not permitted."
    case .configuration: "A configuration file or setting is wrong."
    }
  }
}
