import HubProtocol

/// How the core has a client watched that is kept waiting.
package struct ClientPresence: Sendable {
  /// Ends the subscription when the client is gone.
  package let watch: @Sendable (Subscription) -> Void

  package init(watch: @escaping @Sendable (Subscription) -> Void) { self.watch = watch }
}

extension HubService {
  /// A page of changes; where there is none, the next one, as soon as something is committed.
  ///
  /// What happens while it waits is answered as it would be at that moment, since every look is a
  /// page of its own. At the end of the wait or of the token, when the client is gone and when the
  /// hub stops, the page is the empty one.
  func page(
    _ query: PageQuery, of token: VerifiedToken, waitSeconds: Int, _ presence: ClientPresence
  ) async throws -> PageOutcome {
    let first = try await store.page(query, of: token.account, now: Int64(now()))
    guard waitSeconds > 0, query.until == nil, first.hasNothing(after: query.after) else {
      return first
    }
    let rest = Duration.seconds(max(Double(token.expiresAt) - now(), 0))
    let elapsed = signals.stopwatch()
    let limit = min(.seconds(waitSeconds), rest)
    let subscription = signals.subscribe(to: token.account)
    defer { signals.unsubscribe(subscription) }
    presence.watch(subscription)
    while true {
      // After it has begun to listen: nothing is missed in between.
      let outcome = try await store.page(query, of: token.account, now: Int64(now()))
      guard outcome.hasNothing(after: query.after) else { return outcome }
      switch await subscription.next(within: limit - elapsed()) {
      case .changed: continue
      case .timeUp, .over: return outcome
      }
    }
  }
}

extension PageOutcome {
  /// Whether it brings neither a record nor a step forward.
  fileprivate func hasNothing(after: UInt64) -> Bool {
    guard case .page(_, let records, let more, let next) = self else { return false }
    return records.isEmpty && !more && next == after
  }
}
