public import HubProtocol

/// A transport that can also listen to a hub's events (`GET /v1/events`).
///
/// Events are hints: they say that a pull may bring something, and never what. A client that cannot
/// listen, or whose stream breaks, loses nothing but the moment; it pulls with a wait, or now and
/// then.
public protocol HubEventTransport: HubTransport {
  /// Begins to listen.
  ///
  /// - Parameter request: The request of ``HubCall/events``, with its own limits. A stream ends after
  ///   ``HubRequest/timeout``, and when no byte came for ``HubRequest/stallLimit``.
  /// - Returns: The stream, once its head has come, or the answer that came in its place.
  /// - Throws: ``TransportError``, as ``HubTransport/send(_:)`` does. A cancelled task gets
  ///   ``TransportError/Code/cancelled`` within milliseconds.
  func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer
}

/// What comes of asking for events.
public enum HubEventAnswer: Sendable {
  /// A stream. Its head has no body; judge hub and account by its headers, as of any answer, before
  /// an event is believed.
  case opened(HubResponse, HubEvents)
  /// Any other answer, whole: a refusal of the hub, or of whatever stood between.
  case refused(HubResponse)
}

/// The events of one stream, for one reader.
///
/// It ends when the hub ends it, mostly after a ``HubEvent/bye(code:)``, and throws a
/// ``TransportError`` when it breaks or is no stream of events. Events that this version does not
/// know are passed over. When its reader lets go of it, or the reading task is cancelled, the
/// connection is closed at once. A reader that is 64 events behind misses the oldest, which is no
/// harm: what they hinted at, the later ones hint at, too.
public typealias HubEvents = AsyncThrowingStream<HubEvent, any Error>
