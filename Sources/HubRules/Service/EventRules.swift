package import Foundation
package import HubProtocol

/// What an event stream says after a look at its account: a value without store or clock.
package struct EventRules: Hashable, Sendable {
  /// What the stream began with.
  private let epoch: UUID
  /// The last high water that was told.
  private var highWater: UInt64

  package init(epoch: UUID, highWater: UInt64) {
    self.epoch = epoch
    self.highWater = highWater
  }

  /// What to say: nothing, a change, or a bye, after which the stream ends.
  package mutating func look(at state: AccountState) -> HubEvent? {
    switch state.status {
    case .erased: return .bye(code: HubFarewell.accountErased.rawValue)
    case .disabled: return .bye(code: HubFarewell.accountDisabled.rawValue)
    case .active: break
    }
    guard state.epoch == epoch else {
      return .bye(code: HubFarewell.epochChanged.rawValue)
    }
    guard state.highWater > highWater else { return nil }
    highWater = state.highWater
    return .change(highWater: highWater)
  }
}
