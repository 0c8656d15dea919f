import CMicroHTTPD
import Foundation
import HubRules
import Synchronization

/// The HTTP listener: libmicrohttpd with one thread that waits with epoll.
///
/// That thread never waits for the store: a request that needs it is suspended, answered by a task,
/// and resumed. What libmicrohttpd answers by itself (a request line or chunk that it cannot read, a
/// `Content-Length` that is no number) has none of the hub's headers; for a client that is network
/// trouble. Everything that it lets through is judged by ``HTTPForm``.
///
/// It serves until ``stop()``, also when nobody holds it any more.
///
/// - SAFETY: `@unchecked Sendable` since `daemon` is set before anybody else has the object, and
///   never again; libmicrohttpd's calls on it may come from any thread.
final class Listener: @unchecked Sendable {
  /// Memory of a connection, in bytes: a head of 64 KiB and what libmicrohttpd keeps about it, so
  /// that one that is too long is read and answered. It is touched in full by the second request.
  static let connectionByteCount = 160 << 10

  let service: HubService
  let log: RequestLog?
  let configuration: HubConfiguration.Listen
  let gate = DrainGate()
  let deadlines = ConnectionDeadlines()
  let tasks = AnsweringTasks()
  let hangUps: HangUpWatch
  private let socket: ListeningSocket
  private var daemon: OpaquePointer?

  /// The port that it listens on.
  var port: UInt16 { socket.port }

  /// Begins to serve.
  /// - Throws: ``HubServerError`` `listenFailed`.
  init(
    _ configuration: HubConfiguration.Listen, service: HubService, log: RequestLog?
  ) throws(HubServerError) {
    self.configuration = configuration
    self.service = service
    self.log = log
    socket = try ListeningSocket(address: configuration.address, port: configuration.port)
    do { hangUps = try HangUpWatch() } catch {
      socket.end()
      throw error
    }
    daemon = holdfast_start_daemon(
      socket.descriptor, UInt32(configuration.connectionCountMax), Listener.connectionByteCount,
      UInt32(configuration.idleSeconds), handleRequest, requestStarted, requestCompleted,
      connectionChanged, Unmanaged.passUnretained(self).toOpaque())
    guard daemon != nil else {
      hangUps.stop()
      // In nearly every such case libmicrohttpd has closed the socket: to close it here, too, could
      // hit another's.
      throw HubServerError(
        .listenFailed, "the HTTP server cannot start; check the limit of open files")
    }
    // The daemon's thread uses this object until `stop()` has ended it.
    _ = Unmanaged.passRetained(self)
    deadlines.start()
  }

  /// Stops in order: nobody new, answers under way are finished, connections end.
  ///
  /// Waits `stopSeconds` for clients to take their answers; then their connections end.
  /// - Precondition: it is called once.
  func stop() async {
    gate.beginDraining()
    // Whoever only waits need not wait any longer; a store's write is never cut short.
    service.signals.close()
    tasks.cancelAll()
    // From here on nobody is accepted; the socket itself is closed after the daemon has ended.
    MHD_quiesce_daemon(daemon)
    let patience = Task { [configuration, deadlines] in
      try await Task.sleep(for: .seconds(configuration.stopSeconds))
      deadlines.endAll()
    }
    await gate.waitUntilEmpty()
    patience.cancel()
    await withCheckedContinuation { continuation in
      // It waits for the daemon's thread, which no task's thread should do.
      Thread.detachNewThread { [self] in
        MHD_stop_daemon(daemon)
        continuation.resume()
      }
    }
    socket.end()
    // SAFETY: the reference that `init` took; the daemon's thread has ended.
    Unmanaged.passUnretained(self).release()
    deadlines.stop()
    hangUps.stop()
    log?.flush()
  }
}
