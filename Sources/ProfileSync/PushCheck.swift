import Foundation
package import HubProtocol
package import ProfileStore

/// Whether verdicts are those on what was sent. An answer that is not is used in nothing; what was
/// sent is sent again under the same UUIDs.
package enum PushCheck {
  /// - Returns: what is wrong, in words without data; nil when the answer may be used.
  package static func fault(in answer: PushAnswer, asked: [PushItem]) -> String? {
    guard answer.results.count == asked.count,
      zip(answer.results, asked).allSatisfy({ $0.mutation == $1.mutation })
    else { return "its verdicts are on other mutations" }
    for (mutation, result) in zip(asked, answer.results) {
      switch result.status {
      case .applied, .duplicate:
        guard let version = result.version, version > 0 else { return "a verdict has no version" }
        if version > answer.highWater { return "a version lies above the high water" }
      case .conflict, .rejected, .deferred: break
      }
      guard let current = result.current else { continue }
      if current.id != mutation.record { return "a verdict names another record" }
      if current.version > answer.highWater { return "a version lies above the high water" }
    }
    return nil
  }
}
