import Foundation
import LMDB

// The signed-out area: opened, set aside, kept. (Contract section 3.)
extension ProfileRegistry {
  /// Opens the signed-out area, made on demand. At most one is current.
  /// - Throws: `adoptionUndecided` after a sign-in that decided nothing about the data in it, until it
  ///   was adopted, set aside or explicitly kept; `registryDisagrees`; `storage`.
  public func unownedProfile() async throws -> Profile {
    try await noticeSeenSignIns()
    let area = try await locked { [self] in
      guard let id = try index.unowned() else {
        try settleIntents(of: nil)
        return try provision(owner: nil, fill: { _, _ in })
      }
      let area = try openUnowned(id)
      if case .frozen = try area.read({ try area.tables.state($0) }), var row = try index.row(id) {
        // An account is adopting it: that account goes on with it by its next call, or withdraws by
        // name, and a signed-out person does not wait for that.
        row.state = .setAside
        try index.write { $0.set(id, row) }
        try settleIntents(of: nil)
        return try provision(owner: nil, fill: { _, _ in })
      }
      guard try index.undecided() == nil else { throw try undecided(area) }
      return area
    }
    return Profile(area: area, registry: self, session: nil)
  }

  /// How much unowned data waits for a decision, or nil when there is none.
  public func unownedSummary() async throws -> UnownedSummary? {
    try await locked { [self] in
      guard let id = try index.unowned() else { return nil }
      let summary = try openUnowned(id).unownedSummary()
      return summary.isEmpty ? nil : summary
    }
  }

  /// Declines: the unowned area is set aside, untouched, and the next signed-out person gets a fresh
  /// one. It stays listed and is adopted only by name.
  /// - Returns: the area that was set aside, or nil when there was no data to decline.
  @discardableResult
  public func setAsideUnowned(decidedBy account: VerifiedAccount) async throws -> AreaID? {
    try await locked { [self] in
      guard let id = try index.unowned(), var row = try index.row(id) else { return nil }
      guard try !openUnowned(id).unownedSummary().isEmpty else {
        // Nothing to decline: the next signed-out person can have it as it is.
        try index.write { $0.setUndecided(nil) }
        return nil
      }
      row.state = .setAside
      try index.write { $0.set(id, row) }
      return id
    }
  }

  /// Keeps the unowned data as the current signed-out area: the next signed-out person goes on
  /// with it. The decision holds for this account until more is enqueued there.
  public func keepUnowned(decidedBy account: VerifiedAccount) async throws {
    try await locked { [self] in
      guard let id = try index.unowned() else { return }
      let decision = try Self.decision(of: account.bytes, for: try openUnowned(id))
      try index.write { writing in
        writing.setUndecided(nil)
        writing.setKept(decision)
      }
    }
  }

  /// The areas that were set aside, and how much is in each, oldest first.
  public func setAsideAreas() async throws -> [UnownedSummary] {
    try await locked { [self] in
      try index.snapshot().areas.filter { $0.value.state == .setAside }
        .sorted { $0.value.createdAt < $1.value.createdAt }
        .map { try openUnowned($0.key).unownedSummary() }
    }
  }

  /// Opens an area of which the registry says that it has no owner.
  func openUnowned(_ id: AreaID) throws -> Area {
    let area = try open(id)
    guard try area.owner() == nil else {
      throw StoreError.disagrees("an area that the registry calls unowned has an owner")
    }
    return area
  }

  private func undecided(_ area: Area) throws -> StoreError {
    StoreError.undecided(try area.unownedSummary())
  }
}

extension StoreError {
  static func undecided(_ summary: UnownedSummary?) -> StoreError {
    StoreError(
      .adoptionUndecided,
      "somebody signed in and decided nothing about the unowned data: adopt it, set it aside or "
        + "keep it", unowned: summary)
  }
}
