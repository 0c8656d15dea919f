import Foundation
import HubProtocol

/// An event stream as the listener has it.
package struct EventStream: Sendable {
  /// What there is to send.
  package let feed: EventFeed
  /// Fills the feed until the stream ends. To be run once, beside the sending.
  package let follow: @Sendable () async -> Void
  /// Nobody takes any more of it.
  package let abandon: @Sendable () -> Void
}

extension HubService {
  /// A stream that has said hello.
  ///
  /// It listens first and reads the high water after: a change is in the greeting, or is told.
  func eventsReply(
    _ request: AdmittedRequest, _ token: VerifiedToken, _ frame: inout ReplyFrame,
    _ presence: ClientPresence
  ) async throws -> Reply {
    _ = try QueryParameters(request.head.query, known: request.endpoint.parameters)
    let subscription = signals.subscribe(to: token.account)
    let state: AccountState
    do {
      state = try await store.admit(token.account).state
      try accept(state, &frame)
    } catch {
      signals.unsubscribe(subscription)
      throw error
    }
    presence.watch(subscription)
    let feed = EventFeed()
    feed.add(
      .hello(
        HubGreeting(
          hub: store.hubID, epoch: state.epoch, account: request.bodyAccount(token.account),
          highWater: state.highWater)))
    let isSilent = request.faults?.faults.contains(.silentEvents) ?? false
    let rules = EventRules(epoch: state.epoch, highWater: state.highWater)
    var reply = frame.reply(status: 200, type: "text/event-stream", body: Data())
    reply.events = EventStream(
      feed: feed,
      follow: { [self] in
        await follow(subscription, rules, token, into: feed, isSilent: isSilent)
        signals.unsubscribe(subscription)
      },
      abandon: {
        feed.end()
        subscription.end(.hungUp)
      })
    return reply
  }

  private func follow(
    _ subscription: Subscription, _ rules: EventRules, _ token: VerifiedToken,
    into feed: EventFeed, isSilent: Bool
  ) async {
    var rules = rules
    while true {
      let rest = Duration.seconds(max(Double(token.expiresAt) - now(), 0))
      switch await subscription.next(within: min(rest, commentInterval)) {
      case .over(.hungUp): return feed.end()
      case .over(.stopping): return feed.end(.bye(code: HubFarewell.shuttingDown.rawValue))
      case .timeUp:
        guard now() < Double(token.expiresAt) else {
          return feed.end(.bye(code: HubFarewell.tokenExpired.rawValue))
        }
        feed.addComment()
      case .changed:
        let state: AccountState
        do { state = try await store.admit(token.account).state } catch {
          // The client asks again, and is told what the store is told.
          return feed.end()
        }
        switch rules.look(at: state) {
        case nil: continue
        case .bye(let code): return feed.end(.bye(code: code))
        case .some(let event): if !isSilent { feed.add(event) }
        }
      }
    }
  }
}
