public import Foundation
public import HubProtocol
import HubRules
public import ProfileSync
import Synchronization

/// A hub in memory, for the tests of apps: it decides by the same rules as `hubd` and is reached without
/// sockets.
///
/// ```swift
/// let hub = MemoryHub()
/// registry.connect(to: hub)
/// let token = hub.token(for: "ada")
/// hub.fail(.dropAfterCommit, at: .mutations)
/// ```
///
/// Limits, mismatches, epochs, idempotency, conflicts, purges, long polls and event streams are those of
/// the protocol, since the module that decides them is the hub's own; only sockets, disk and the
/// signatures of tokens are missing. Nothing is kept when it is let go of. It may be used from many
/// tasks.
public final class MemoryHub: HubEventTransport {
  /// What a hub is made of; everything has a default.
  public struct Configuration: Sendable {
    /// The hub's ID; a new one by default, or the seed's.
    public var id: UUID?
    /// What it accepts and sends at most. Long polls of up to 30 seconds by default.
    public var limits = HubLimits(waitSeconds: 30)
    /// By which waits and delays end; the system's by default.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The time for tokens and forks; the system's by default.
    public var now: @Sendable () -> Date = { Date() }
    /// Whether a request may ask for faults with the header `Holdfast-Fault`, as those of the real hub's
    /// tests do; what ``MemoryHub/fail(_:at:times:)`` plans needs no header of theirs.
    public var isFaultHeaderKnown = true
    /// Makes its UUIDs the same again; nil: they are new each time.
    public var seed: UInt64?

    /// The defaults.
    public init() {}
  }

  /// A kind of request.
  public enum Endpoint: String, Sendable, Hashable, CaseIterable {
    /// `GET /v1/session`.
    case session
    /// `PUT /v1/clients/{client}`.
    case clients
    /// `GET /v1/changes`.
    case changes
    /// `GET /v1/records`.
    case records
    /// `POST /v1/mutations`.
    case mutations
    /// `GET /v1/events`.
    case events

    init?(_ request: HubRequest) {
      let path = request.target.prefix { $0 != "?" }
      guard let name = path.split(separator: "/").dropFirst().first else { return nil }
      self.init(rawValue: String(name))
    }
  }

  /// The hub's ID.
  public let id: UUID
  private let configuration: Configuration
  private let store: MemoryHubStore
  private let signals: AccountSignals
  private let tokens: MemoryTokens
  let service: HubService
  private let state = Mutex(State())

  private struct Planned {
    var fault: HubFault
    var endpoint: Endpoint?
    /// How many more requests meet it; nil: all.
    var timesLeft: Int?
  }

  private struct State {
    var planned: [Planned] = []
    var log: [HubRequest] = []
    var onRequest: (@Sendable (HubRequest) async -> Void)?
    var onAnswer: (@Sendable (HubRequest, HubResponse) async -> Void)?
  }

  /// Makes a hub that nobody has used yet.
  public init(_ configuration: Configuration = Configuration()) {
    self.configuration = configuration
    let random = configuration.seed.map { Shared(Mutex(SeededRandom(seed: $0))) }
    let makeUUID: @Sendable () -> UUID = {
      random?.value.withLock { $0.uuid() } ?? UUID()
    }
    id = configuration.id ?? makeUUID()
    signals = AccountSignals(clock: configuration.clock)
    store = MemoryHubStore(hubID: id, signals: signals, makeUUID: makeUUID)
    tokens = MemoryTokens()
    service = HubService(
      store: store, signals: signals, tokens: tokens, digests: MemoryDigests(),
      limits: configuration.limits, now: { configuration.now().timeIntervalSince1970 },
      faultsEnabled: true)
  }

  // MARK: Tokens

  /// A token that this hub takes for an account's.
  ///
  /// - Parameters:
  ///   - account: the account's ID, 1 to 256 bytes of UTF-8; another one traps.
  ///   - lifetime: how long it is valid from now, an hour by default; it ends at a whole second, not
  ///     before.
  public func token(for account: String, lifetime: Duration = .seconds(3_600)) -> String {
    let end = configuration.now().timeIntervalSince1970 + lifetime / .seconds(1)
    return tokens.issue(for: Self.accountID(account), until: Int64(end.rounded(.up)))
  }

  /// Takes all tokens of an account back that were given so far: they are `token_invalid` from now on.
  public func revokeTokens(of account: String) { tokens.revoke(Self.accountID(account)) }

  private static func accountID(_ text: String) -> AccountID {
    do { return try AccountID(text) } catch {
      preconditionFailure("HoldfastTesting: an account ID has 1 to 256 bytes")
    }
  }

  // MARK: Faults

  /// Lets requests meet a fault.
  ///
  /// - Parameters:
  ///   - fault: what happens.
  ///   - endpoint: the requests that meet it; nil: any.
  ///   - times: how many of them do, 1 by default; nil: all from now on, until ``stopFailing()``. A fault
  ///     that counts by itself, such as ``HubFault/throttle(count:)``, needs nil; it counts from the
  ///     beginning with each call.
  public func fail(_ fault: HubFault, at endpoint: Endpoint? = nil, times: Int? = 1) {
    service.forgetFaults(named: fault.name)
    state.withLock {
      $0.planned.append(Planned(fault: fault, endpoint: endpoint, timesLeft: times))
    }
  }

  /// No request meets a fault any more.
  public func stopFailing() {
    state.withLock { $0.planned = [] }
    service.forgetFaults()
  }

  /// What a request meets, in the order in which it was planned.
  private func faults(of request: HubRequest) -> [HubFault] {
    let endpoint = Endpoint(request)
    return state.withLock { state in
      var met: [HubFault] = []
      for index in state.planned.indices {
        let planned = state.planned[index]
        guard planned.endpoint == nil || planned.endpoint == endpoint, planned.timesLeft != 0 else {
          continue
        }
        state.planned[index].timesLeft? -= 1
        met.append(planned.fault)
      }
      state.planned.removeAll { $0.timesLeft == 0 }
      return met
    }
  }

  // MARK: What reaches it

  /// The requests so far, those that met a fault too, in the order in which they were made. They carry
  /// tokens.
  public var requests: [HubRequest] { state.withLock(\.log) }

  /// Forgets the requests.
  public func forgetRequests() { state.withLock { $0.log = [] } }

  /// Has a closure called before each request reaches the hub: the place to sign somebody out, to
  /// enqueue, to wait. Nil ends it.
  public func onRequest(_ body: (@Sendable (HubRequest) async -> Void)?) {
    state.withLock { $0.onRequest = body }
  }

  /// Has a closure called before each answer goes back. Nil ends it.
  public func onAnswer(_ body: (@Sendable (HubRequest, HubResponse) async -> Void)?) {
    state.withLock { $0.onAnswer = body }
  }

  // MARK: As a transport

  /// How many long polls and event streams wait.
  public var waitingCount: Int { signals.count }

  /// Answers a request by the rules of the protocol.
  ///
  /// The request's own time limits count where a fault delays the answer beyond them.
  /// - Throws: ``TransportError``: what a fault asks for, `timedOut` among it; `cancelled` when the task
  ///   is; `answerTooLarge`.
  public func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let reply = try await reply(to: request)
    await reply.events?.giveUp()
    return try await deliver(reply, to: request)
  }

  /// Opens an event stream.
  /// - Throws: as ``send(_:)``.
  public func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer {
    let reply = try await reply(to: request)
    let response: HubResponse
    do throws(TransportError) {
      response = try await deliver(reply, to: request)
    } catch {
      await reply.events?.giveUp()
      throw error
    }
    guard let stream = reply.events else { return .refused(response) }
    return .opened(response, stream.events())
  }

  private func reply(to request: HubRequest) async throws(TransportError) -> Reply {
    let before = state.withLock { state in
      state.log.append(request)
      return state.onRequest
    }
    await before?(request)
    try requireRunning()
    var faults = faults(of: request)
    let patience = min(request.timeout, request.stallLimit)
    var isLate = false
    for (index, fault) in faults.enumerated() {
      switch fault {
      case .delay(let milliseconds) where .milliseconds(milliseconds) > patience:
        // What was asked for happens; its client is no longer there.
        isLate = true
        faults[index] = .delay(milliseconds: Int(patience / .milliseconds(1)))
      case .unreachable:
        throw TransportError(code: .unreachable, description: "a fault asked for: try later")
      case .lostRequest:
        throw TransportError(
          code: .connectionLost, description: "a fault asked for: send the same again")
      default: continue
      }
    }
    var own = request
    if !configuration.isFaultHeaderKnown {
      own.headers.removeAll { asciiEqual($0.name, HubHeader.fault) }
    }
    let head = RequestHead(own, faults: faults.compactMap(\.header))
    switch service.admit(head) {
    case .refused(let reply): return reply
    case .admitted(let admitted):
      let body: HubService.Body =
        request.body?.count ?? 0 > configuration.limits.pushBytes
        ? .tooLarge : .whole(request.body ?? Data())
      let reply = await MemoryHubOutage.$isNow.withValue(faults.contains(.outage)) {
        await answer(admitted, body)
      }
      guard isLate else { return reply }
      await reply.events?.giveUp()
      try requireRunning()
      throw TransportError(
        code: .timedOut, description: "a fault asked for: send the same again")
    }
  }

  /// The client is gone when its task is cancelled.
  private func answer(
    _ admitted: AdmittedRequest, _ body: HubService.Body
  ) async -> Reply {
    let watched = Shared(Mutex<(subscription: Subscription?, isGone: Bool)>((nil, false)))
    let presence = ClientPresence { subscription in
      let isGone = watched.value.withLock { watched in
        watched.subscription = subscription
        return watched.isGone
      }
      if isGone { subscription.end(.hungUp) }
    }
    return await withTaskCancellationHandler {
      await service.answer(admitted, body: body, presence: presence)
    } onCancel: {
      let subscription = watched.value.withLock { watched in
        watched.isGone = true
        return watched.subscription
      }
      subscription?.end(.hungUp)
    }
  }

  private func deliver(
    _ reply: Reply, to request: HubRequest
  ) async throws(TransportError) -> HubResponse {
    try requireRunning()
    let response = HubResponse(
      status: reply.status, headers: reply.headers,
      body: request.method == "HEAD" ? Data() : reply.body)
    guard reply.delivery == .whole else {
      throw TransportError(
        code: .connectionLost, description: "a fault asked for: send the same again")
    }
    guard response.body.count <= request.answerByteCountMax else {
      throw TransportError(
        code: .answerTooLarge, description: "the answer is longer than the request allows")
    }
    await state.withLock(\.onAnswer)?(request, response)
    try requireRunning()
    return response
  }

  private func requireRunning() throws(TransportError) {
    guard !Task.isCancelled else {
      throw TransportError(code: .cancelled, description: "the task was cancelled")
    }
  }
}

// MARK: - Its operator's side

extension MemoryHub {
  /// A record as the hub has it.
  public struct StoredRecord: Sendable, Hashable {
    /// The record.
    public let record: RecordID
    /// Its newest version.
    public let version: UInt64
    /// Nil: it was deleted.
    public let payload: Data?
  }

  /// The records of an account in the order of their versions, tombstones too.
  public func records(of account: String) -> [StoredRecord] {
    let account = Self.accountID(account)
    return store.look { content in
      guard let row = content.accounts[account] else { return [] }
      return row.order.compactMap { place in
        row.records[place.id].map {
          StoredRecord(record: place.id, version: $0.version, payload: $0.payload)
        }
      }
    }
  }

  /// The accounts that it has seen, by their bytes.
  public var accounts: [String] { store.look { $0.accounts.keys.map(\.text).sorted() } }

  /// The last sequence that an account was given; 0 before the first.
  public func highWater(of account: String) -> UInt64 {
    let account = Self.accountID(account)
    return store.look { $0.accounts[account]?.state.highWater ?? 0 }
  }

  /// The account's epoch; nil before it was seen.
  public func epoch(of account: String) -> UUID? {
    let account = Self.accountID(account)
    return store.look { $0.accounts[account]?.state.epoch }
  }

  /// Whether a mutation was applied, as far as the hub still knows.
  public func hasApplied(_ mutation: UUID, of account: String) -> Bool {
    let account = Self.accountID(account)
    return store.look { $0.accounts[account]?.results[mutation] != nil }
  }

  /// Stops serving an account, or serves it again.
  public func setDisabled(_ isDisabled: Bool, _ account: String) {
    administer(isDisabled ? .disable : .enable, account)
  }

  /// Removes everything of an account; it is answered `account_erased` until ``recreate(_:)``.
  public func erase(_ account: String) { administer(.erase, account) }

  /// Makes an erased account again, with a new epoch.
  public func recreate(_ account: String) { administer(.recreate, account) }

  /// Begins a new epoch of an account; nil: forked at the high water.
  public func beginEpoch(of account: String, forkedAt: UInt64? = nil) {
    administer(.beginEpoch(forkedAt: forkedAt), account)
  }

  /// Removes tombstones below a sequence; nil: below the high water.
  public func purgeTombstones(of account: String, below sequence: UInt64? = nil) {
    administer(.purgeTombstones(below: sequence), account)
  }

  /// Forgets the results of mutations below a sequence; nil: below the high water.
  public func purgeResults(of account: String, below sequence: UInt64? = nil) {
    administer(.purgeResults(below: sequence), account)
  }

  private func administer(_ action: AdministrativeAction, _ account: String) {
    do { _ = try store.administerNow(action, on: Self.accountID(account)) } catch {
      preconditionFailure("HoldfastTesting: a store in memory was out while nobody asked: \(error)")
    }
  }

  /// What ``restore(_:)`` takes.
  public struct Backup: Sendable {
    fileprivate let content: MemoryHubStore.Content
  }

  /// Copies everything, as an operator's backup.
  public func backUp() -> Backup { Backup(content: store.look { $0 }) }

  /// Puts a backup in the place of everything: what happened since is lost, and every account has a new
  /// epoch.
  public func restore(_ backup: Backup) { store.restore(backup.content) }
}

/// Keeps a value that cannot be copied for several closures.
final class Shared<Value: ~Copyable & Sendable>: Sendable {
  let value: Value
  init(_ value: consuming Value) { self.value = value }
}

extension RequestHead {
  init(_ request: HubRequest, faults: [String]) {
    var fields = request.headers.map { Field($0.name, Array($0.value.utf8)) }
    fields.append(Field("Host", Array("memory".utf8)))
    if let body = request.body {
      fields.append(Field(HubHeader.contentLength, Array(String(body.count).utf8)))
    }
    let asked = fields.filter { asciiEqual($0.name, HubHeader.fault) }
      .map { String(decoding: $0.value, as: UTF8.self) }
    if !faults.isEmpty {
      fields.removeAll { asciiEqual($0.name, HubHeader.fault) }
      fields.append(
        Field(HubHeader.fault, Array((asked + faults).joined(separator: "; ").utf8)))
    }
    let lines = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.count + 4 }
    self.init(
      method: request.method, target: Array(request.target.utf8), fields: fields,
      byteCount: request.method.utf8.count + request.target.utf8.count + 14 + lines)
  }
}
