import Foundation
import ProfileStore

/// Somebody with an account at the hub.
struct Person: Sendable {
  /// The account's number in this world.
  let number: Int
  /// The account's ID.
  let id: String
  /// What lies in everything of theirs.
  var canary: Canary { Canary(number) }

  /// Written alike, and four accounts: canonically equivalent texts, another case, a space behind.
  private static let ids = ["Zo\u{eb}", "Zoe\u{308}", "ZO\u{cb}", "Zo\u{eb} "]

  init(_ number: Int) {
    self.number = number
    id = Self.ids[number]
  }
}

/// What was written into one signed-out area of one device.
struct Guest: Sendable {
  let canary: Canary
  let device: Int
  let area: AreaID
  /// The accounts that have tried to adopt it, and may have done so.
  var suitors: Set<Int> = []
  /// The account whose places it was seen in.
  var adopter: Int?
}
