import Foundation

/// The signals by which a person or the system asks a process to end.
public enum InterruptSignal: CaseIterable, Hashable, Sendable {
  /// Control-C.
  case interrupt
  /// What `kill` and service managers send.
  case terminate
  /// The terminal is gone.
  case hangup

  /// The number, as in `SIGINT`.
  public var number: Int32 {
    switch self {
    case .interrupt: SIGINT
    case .terminate: SIGTERM
    case .hangup: SIGHUP
    }
  }

  /// `SIGINT`, `SIGTERM` or `SIGHUP`.
  public var name: String {
    switch self {
    case .interrupt: "SIGINT"
    case .terminate: "SIGTERM"
    case .hangup: "SIGHUP"
    }
  }
}
