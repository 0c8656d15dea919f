public import ProfileStore

/// Counts, bytes and durations of what a store does over the network, for a metrics or log library.
///
/// Given to `ProfileRegistry.observe(with:)`. Every method does nothing by default; each is called
/// from any thread, must not take long and may not call the store. Nothing that it is told holds a
/// payload, a record ID, an account ID or a token.
public protocol SyncObserver: Sendable {
  /// A request has ended, with an answer or without.
  func requestEnded(_ request: RequestMeasurement)

  /// A pass has ended, well or not.
  func passEnded(_ pass: PassMeasurement)

  /// `keepSynchronized` waits before it tries again.
  /// - Parameters:
  ///   - pause: how long.
  ///   - code: what stopped the last pass; nil: a closure of the app threw, or the store could not be
  ///     read or written.
  ///   - failureCount: how many have failed in a row, from 1.
  func retryPlanned(after pause: Duration, because code: SyncError.Code?, failureCount: Int)

  /// The hub, or something in its place, named another account or hub; nothing of it was used.
  func securityEvent()

  /// A mutation was parked, or is held because the hub fails on it (`reason` nil).
  func mutationKeptBack(_ reason: Parked.Reason?)
}

extension SyncObserver {
  /// Does nothing.
  public func requestEnded(_ request: RequestMeasurement) {}
  /// Does nothing.
  public func passEnded(_ pass: PassMeasurement) {}
  /// Does nothing.
  public func retryPlanned(after pause: Duration, because code: SyncError.Code?, failureCount: Int)
  {
  }
  /// Does nothing.
  public func securityEvent() {}
  /// Does nothing.
  public func mutationKeptBack(_ reason: Parked.Reason?) {}
}

/// One request and what came of it.
public struct RequestMeasurement: Sendable, Hashable {
  /// The calls of the protocol.
  public enum Call: String, Sendable, Hashable, CaseIterable {
    /// `GET /v1/session`.
    case session
    /// `PUT /v1/clients`.
    case client
    /// `GET /v1/changes`.
    case pull
    /// `GET /v1/changes` that waits for a change, outside of any pass.
    case poll
    /// `GET /v1/events`: a stream of hints, outside of any pass. Its measurement is that of its head,
    /// which comes at once; the stream goes on.
    case events
    /// `POST /v1/mutations`.
    case push
    /// `GET /v1/records`.
    case record
  }

  /// Which call.
  public let call: Call
  /// The status; nil: no answer came.
  public let status: Int?
  /// The hub's code where it refused; nil otherwise.
  public let refusal: String?
  /// Why no answer came; nil: one came.
  public let failure: TransportError.Code?
  /// The same request was sent before, with a token that was refused.
  public let isRepeated: Bool
  /// Bytes of the body that was sent.
  public let sentByteCount: Int
  /// Bytes of the body that came.
  public let receivedByteCount: Int
  /// From the request to the whole answer.
  public let duration: Duration
}

/// One pass and what came of it.
public struct PassMeasurement: Sendable {
  /// What it did, also where it did not come to its end.
  public let report: SyncReport
  /// Why it stopped; nil: it came to its end, or one of the next three.
  public let failure: SyncError.Code?
  /// What the store refused: a full disk (`storage`), `suspended`, `erased`, …
  public let storeFailure: StoreError.Code?
  /// A closure of the app threw, whatever it was.
  public let stoppedByApp: Bool
  /// The calling task was cancelled.
  public let wasCancelled: Bool
  /// How long it waited for another pass of the area.
  public let waited: Duration
  /// From its turn to its end.
  public let duration: Duration
}

/// Does nothing.
struct NoObserver: SyncObserver {}

/// Time from a clock whose kind nobody has to know.
struct Stopwatch: Sendable {
  /// What has gone by since it was made.
  let elapsed: @Sendable () -> Duration

  init(_ clock: any Clock<Duration>) {
    func start<C: Clock>(_ clock: C) -> @Sendable () -> Duration where C.Duration == Duration {
      let began = clock.now
      return { began.duration(to: clock.now) }
    }
    elapsed = start(clock)
  }
}
