package import Foundation

/// A run of the hub and the store transaction numbers at which its data file may be found.
///
/// `first` is the number that was durable when the block was leased, `last` the highest of the
/// block; after a clean stop both are the exact number.
package struct RunWindow: Hashable, Sendable, Codable {
  package var run: UUID
  package var first: UInt64
  package var last: UInt64

  package init(run: UUID, first: UInt64, last: UInt64) {
    self.run = run
    self.first = first
    self.last = last
  }
}

/// What a start finds out about its data file.
package enum DataFileOrigin: Hashable, Sendable {
  /// No hub has used it yet.
  case fresh
  /// The file that the last run left, by a clean stop or a crash.
  case continued
  /// Another file was put there, such as an old copy: every account needs a new epoch.
  case restored

  /// Compares the run and transaction number in the data file with what was noted beside it.
  ///
  /// - Parameter noted: the windows that count; more than one while a start is under way, nil when
  ///   the note is missing.
  package static func of(
    run: UUID?, transaction: UInt64, noted: [RunWindow]?
  ) -> DataFileOrigin {
    guard let run else { return .fresh }
    let isKnown = (noted ?? []).contains { window in
      window.run == run && window.first <= transaction && transaction <= window.last
    }
    return isKnown ? .continued : .restored
  }
}
