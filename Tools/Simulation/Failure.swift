import HubProtocol
import LMDB
import ProfileStore
import ProfileSync

/// Errors by their codes, and which of them no step of a simulation explains.
enum Failure {
  static func name(_ error: any Error) -> String {
    switch error {
    case let error as StoreError:
      error.cause.map { "\(error.code) (\($0.code))" } ?? "\(error.code)"
    case let error as SyncError:
      error.cause.map { "\(error.code) (\($0.code))" } ?? "\(error.code)"
        + (error.hubCode.map { " (\($0))" } ?? "")
    case let error as LMDBError: "LMDB \(error.code)"
    case let error as TransportError: "transport \(error.code)"
    default: "\(type(of: error))"
    }
  }

  private static let alarmingInStores: Set<StoreError.Code> = [
    .storage, .damaged, .registryDisagrees, .badRecordID, .payloadTooLarge, .notAStore,
    .newerFormat, .olderFormat, .recordKeepingDiffers, .mutationReused, .undecodable, .outboxFull,
  ]
  private static let alarming: Set<SyncError.Code> = [
    .accountMismatch, .clientBoundElsewhere, .hubNotTrusted, .badHubAddress, .refused,
    .epochAlreadyLeft, .notConnected, .closureRequired, .insideApplyClosure,
    .badAnswer,
  ]

  /// Whether nothing that the simulator does leads to it.
  /// - Parameter mayLie: whether the hub gives wrong answers.
  static func isAlarming(_ error: any Error, mayLie: Bool) -> Bool {
    switch error {
    case let error as StoreError: alarmingInStores.contains(error.code)
    case let error as SyncError: !mayLie && alarming.contains(error.code)
    case is LMDBError: true
    case is TransportError, is CancellationError, is Dead, is AppFailure: false
    default: true
    }
  }
}

extension Failure {
  /// Whether the change itself cannot be stored, whoever is signed in.
  static func isOfContent(_ error: any Error) -> Bool {
    let codes: Set<StoreError.Code> = [
      .badBase, .badRecordID, .payloadTooLarge, .mutationReused, .unknownMutation, .notParked,
    ]
    return (error as? StoreError).map { codes.contains($0.code) } ?? false
  }
}

/// The app's own store could not save.
struct AppFailure: Error {}
