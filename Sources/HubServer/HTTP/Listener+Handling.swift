import CMicroHTTPD
import Foundation
import HubProtocol
import HubRules
import Synchronization

// The callbacks are global functions: a closure could be taken for one of the main actor's, and would
// trap on the daemon's thread. Each runs on that thread.

/// The request line was read. What it returns is given to every later callback of the request.
func requestStarted(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?,
  _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let target else { return nil }
  // SAFETY: the daemon gives a string that ends with NUL and lives until the callback returns.
  let bytes = UnsafeBufferPointer(start: target, count: strlen(target)).map {
    UInt8(bitPattern: $0)
  }
  let exchange = Exchange(target: bytes, targetAddress: UInt(bitPattern: target))
  return Unmanaged.passRetained(exchange).toOpaque()
}

/// The answer was sent, or the connection ended.
func requestCompleted(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
  guard let context, let pointer = request?.pointee else { return }
  request?.pointee = nil
  // SAFETY: `context` is the listener, which outlives its daemon; `pointer` is what
  // `requestStarted` retained, and this callback comes once for it.
  let listener = Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue()
  let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
  listener.finish(exchange)
}

/// A connection was taken, or is about to be closed.
func connectionChanged(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
  _ code: MHD_ConnectionNotificationCode
) {
  guard let context else { return }
  // SAFETY: `context` is the listener, which outlives its daemon.
  let listener = Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue()
  let socket = holdfast_connection_socket(connection)
  if holdfast_is_opened(code) != 0 {
    listener.deadlines.open(socket, seconds: listener.configuration.headSeconds)
  } else {
    listener.deadlines.close(socket)
  }
}

/// Called with the head, with each piece of the body, at the body's end, and after a resume.
func handleRequest(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ url: UnsafePointer<CChar>?, _ method: UnsafePointer<CChar>?,
  _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
  _ uploadByteCount: UnsafeMutablePointer<Int>?,
  _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let method, let version, let uploadByteCount,
    let pointer = request?.pointee
  else { return .NO }
  // SAFETY: as in `requestCompleted`; the request is not completed yet.
  let listener = Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue()
  let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
  switch exchange.phase {
  case .head:
    let head = RequestHead(connection, method: method, version: version, exchange)
    return listener.begin(exchange, head, connection)
  case .refused(let reply):
    return listener.send(reply, exchange, connection)
  case .body(let admitted):
    let count = uploadByteCount.pointee
    guard count > 0, let upload else { return listener.answer(exchange, admitted, connection) }
    uploadByteCount.pointee = 0
    return listener.take(UnsafeRawBufferPointer(start: upload, count: count), exchange)
  case .answering:
    guard let reply = exchange.reply.withLock({ $0 }) else { return .YES }
    return listener.send(reply, exchange, connection)
  }
}

extension Listener {
  /// Decides on a head.
  ///
  /// libmicrohttpd ends the connection after an answer that it is given here: right where a body
  /// would have to be read for nothing, wasteful elsewhere. So without a body the answer waits for
  /// the next call, which comes at once.
  fileprivate func begin(
    _ exchange: Exchange, _ head: RequestHead, _ connection: OpaquePointer
  ) -> MHD_Result {
    exchange.method = head.method
    exchange.socket = holdfast_connection_socket(connection)
    switch service.admit(head) {
    case .refused(let reply):
      if head.announcesBody { return send(reply, exchange, connection) }
      exchange.phase = .refused(reply)
      return .YES
    case .admitted(let request):
      exchange.request = request
      exchange.phase = .body(request)
      guard head.announcesBody else { return .YES }
      if let declared = head.declaredBodyByteCount {
        if declared > service.limits.pushBytes {
          // Not a byte of it is read; what comes before the size in the order of checks is decided.
          exchange.bodyByteCount = declared
          return answer(exchange, request, connection)
        }
        exchange.body.reserveCapacity(declared)
      }
      exchange.bodyStartedAt = .now
      deadlines.set(exchange.socket, seconds: configuration.bodySeconds)
      return .YES
    }
  }

  /// Keeps a piece of the body, up to the limit.
  ///
  /// What lies beyond it is read and dropped, so that the answer can be given; it earns no time, so
  /// that this ends.
  fileprivate func take(_ piece: UnsafeRawBufferPointer, _ exchange: Exchange) -> MHD_Result {
    let limit = service.limits.pushBytes
    exchange.bodyByteCount += piece.count
    guard exchange.bodyByteCount <= limit else {
      exchange.body = Data()
      return .YES
    }
    exchange.body.append(contentsOf: piece)
    let seconds = TransferTime.seconds(
      base: configuration.bodySeconds, byteCount: exchange.bodyByteCount)
    deadlines.set(exchange.socket, seconds: seconds, since: exchange.bodyStartedAt)
    return .YES
  }

  /// Suspends the connection, lets a task find the answer, and resumes it.
  fileprivate func answer(
    _ exchange: Exchange, _ request: AdmittedRequest, _ connection: OpaquePointer
  ) -> MHD_Result {
    guard gate.enter() else {
      var reply = request.frame.reply(
        Refusal(.unavailable, "the hub is shutting down", retryAfterSeconds: 1))
      reply.closesConnection = true
      return send(reply, exchange, connection)
    }
    exchange.isCounted = true
    exchange.phase = .answering
    deadlines.set(exchange.socket, seconds: nil)
    let isTooLarge = exchange.bodyByteCount > service.limits.pushBytes
    let body = isTooLarge ? HubService.Body.tooLarge : .whole(exchange.body)
    exchange.body = Data()
    let parked = ParkedConnection(pointer: connection)
    // Before the task begins: a resume that came first would be lost.
    MHD_suspend_connection(connection)
    let presence = ClientPresence { [hangUps, socket = exchange.socket] subscription in
      hangUps.watch(socket, subscription)
    }
    tasks.add { [service] in
      let reply = await service.answer(request, body: body, presence: presence)
      exchange.reply.withLock { $0 = reply }
      MHD_resume_connection(parked.pointer)
      await reply.events?.follow()
    }
    return .YES
  }

  /// Queues an answer.
  fileprivate func send(
    _ reply: Reply, _ exchange: Exchange, _ connection: OpaquePointer
  ) -> MHD_Result {
    exchange.phase = .answering
    exchange.cause = reply.cause
    if reply.delivery == .dropped { return .NO }
    let made =
      if let events = reply.events {
        EventResponse(events, connection, exchange, self).make()
      } else {
        makeResponse(reply)
      }
    guard let response = made else { return .NO }
    defer { MHD_destroy_response(response) }
    for header in reply.headers {
      guard MHD_add_response_header(response, header.name, header.value) == .YES else {
        return .NO
      }
    }
    if reply.closesConnection || gate.isDraining {
      MHD_add_response_header(response, "Connection", "close")
    }
    exchange.status = reply.status
    exchange.answerByteCount = reply.body.count
    let seconds = TransferTime.seconds(
      base: configuration.bodySeconds, byteCount: reply.body.count)
    deadlines.set(exchange.socket, seconds: seconds)
    return MHD_queue_response(connection, UInt32(reply.status), response)
  }

  private func makeResponse(_ reply: Reply) -> OpaquePointer? {
    if case .cut(let byteCount) = reply.delivery {
      let cut = CutBody(bytes: reply.body, byteCount: byteCount)
      return MHD_create_response_from_callback(
        UInt64(reply.body.count), 64 << 10, readCutBody, Unmanaged.passRetained(cut).toOpaque(),
        releaseCutBody)
    }
    // SAFETY: the daemon copies the bytes within the call.
    return reply.body.withUnsafeBytes { holdfast_make_response($0.baseAddress, $0.count) }
  }

  /// The request is over, whatever became of it.
  fileprivate func finish(_ exchange: Exchange) {
    deadlines.set(
      exchange.socket, seconds: configuration.idleSeconds + configuration.headSeconds)
    if let log {
      let elapsed = ContinuousClock.now - exchange.startedAt
      log.add(
        RequestLog.Entry(
          time: service.now(), method: exchange.method,
          path: RequestLog.redacted(exchange.target), status: exchange.status,
          requestBytes: exchange.bodyByteCount, answerBytes: exchange.answerByteCount,
          milliseconds: Double(elapsed / .microseconds(1)) / 1_000,
          account: exchange.request?.account.map(log.hash(of:)), cause: exchange.cause))
    }
    exchange.reply.withLock { $0?.events }?.abandon()
    if exchange.isCounted { gate.leave() }
  }
}

/// A body that ends too early, for the fault `cut-body`.
private final class CutBody {
  let bytes: Data
  let byteCount: Int

  init(bytes: Data, byteCount: Int) {
    self.bytes = bytes
    self.byteCount = byteCount
  }
}

private func readCutBody(
  _ context: UnsafeMutableRawPointer?, _ position: UInt64,
  _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int
) -> Int {
  guard let context, let buffer else { return holdfast_end_with_error() }
  // SAFETY: retained when the response was made, until `releaseCutBody`.
  let cut = Unmanaged<CutBody>.fromOpaque(context).takeUnretainedValue()
  let rest = cut.bytes.prefix(cut.byteCount).dropFirst(Int(position)).prefix(capacity)
  // The daemon ends the connection.
  guard !rest.isEmpty else { return holdfast_end_with_error() }
  rest.copyBytes(to: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
  return rest.count
}

private func releaseCutBody(_ context: UnsafeMutableRawPointer?) {
  guard let context else { return }
  // SAFETY: the reference that `makeResponse` retained.
  Unmanaged<CutBody>.fromOpaque(context).release()
}
