import CMicroHTTPD
import Foundation
import HubRules

/// Gives a connection what its event stream has to send, and parks it when there is nothing.
///
/// - SAFETY: it is used by the daemon's thread alone, but for `connection`, which is resumed from
///   any thread as libmicrohttpd allows, and only while it is suspended.
final class EventResponse {
  private let stream: EventStream
  private let connection: ParkedConnection
  private let exchange: Exchange
  private let listener: Listener

  init(
    _ stream: EventStream, _ connection: OpaquePointer, _ exchange: Exchange, _ listener: Listener
  ) {
    self.stream = stream
    self.connection = ParkedConnection(pointer: connection)
    self.exchange = exchange
    self.listener = listener
  }

  /// The response; it keeps this object until it is destroyed.
  func make() -> OpaquePointer? {
    let context = Unmanaged.passRetained(self)
    let response = holdfast_make_endless_response(
      1_024, readEvents, context.toOpaque(), releaseEvents)
    if response == nil { context.release() }
    return response
  }

  fileprivate func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let taken = stream.feed.take(buffer) { [connection, listener, exchange] in
      // As long as it is parked it takes no time over anything.
      listener.deadlines.set(exchange.socket, seconds: nil)
      MHD_suspend_connection(connection.pointer)
      return { MHD_resume_connection(connection.pointer) }
    }
    switch taken {
    case .bytes(let count):
      exchange.answerByteCount += count
      // A client that takes nothing must not hold what is meant for it for ever.
      listener.deadlines.set(exchange.socket, seconds: listener.configuration.bodySeconds)
      return count
    case .nothing: return 0
    case .end: return holdfast_end_of_stream()
    case .cut: return holdfast_end_with_error()
    }
  }
}

/// A suspended connection.
///
/// - SAFETY: `@unchecked Sendable` since it lives until it is resumed, once, by whoever holds this,
///   and libmicrohttpd allows that from any thread.
struct ParkedConnection: @unchecked Sendable {
  let pointer: OpaquePointer
}

private func readEvents(
  _ context: UnsafeMutableRawPointer?, _ position: UInt64,
  _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int
) -> Int {
  guard let context, let buffer else { return holdfast_end_with_error() }
  // SAFETY: retained by `make`, until `releaseEvents`; the daemon lends so many bytes.
  let response = Unmanaged<EventResponse>.fromOpaque(context).takeUnretainedValue()
  return response.read(UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
}

private func releaseEvents(_ context: UnsafeMutableRawPointer?) {
  guard let context else { return }
  // SAFETY: the reference that `make` took.
  Unmanaged<EventResponse>.fromOpaque(context).release()
}
