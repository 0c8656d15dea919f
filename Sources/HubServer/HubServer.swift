public import Foundation
public import HubProtocol
package import HubRules
import Synchronization

/// A running hub: an HTTP server over a store, in this process.
///
/// ```swift
/// let hub = try await HubServer.start(configuration)
/// print(hub.url)
/// await hub.stop()
/// ```
public final class HubServer: Sendable {
  /// The hub's ID, the same for ever.
  public let hubID: UUID
  /// Where it serves.
  public let url: URL
  private let configuration: HubConfiguration
  private let now: @Sendable () -> Double
  let store: any HubStore
  /// Who waits for changes.
  package let signals: AccountSignals
  private let listener: Listener
  private let isStopped = Atomic(false)

  private init(
    _ configuration: HubConfiguration, url: URL, store: any HubStore, signals: AccountSignals,
    listener: Listener, now: @escaping @Sendable () -> Double
  ) {
    self.configuration = configuration
    self.url = url
    self.store = store
    self.signals = signals
    self.listener = listener
    self.now = now
    hubID = store.hubID
  }

  /// Opens the store, settles whether its data file is the one the last run left, and serves.
  ///
  /// - Parameter now: seconds since 1970, for tokens, forks and purges; the system's clock by
  ///   default.
  /// - Throws: ``HubServerError``: `configurationInvalid`, `directoryInUse` when another hub serves
  ///   the directory, `directoryUnusable`, `storeUnusable`, `listenFailed`.
  public static func start(
    _ configuration: HubConfiguration,
    now: @escaping @Sendable () -> Double = { Date().timeIntervalSince1970 }
  ) async throws(HubServerError) -> HubServer {
    try configuration.validate()
    let directory = try DataDirectory(configuration.dataDirectory)
    let signals = AccountSignals()
    let store = try await LMDBHubStore.open(
      directory, hubID: configuration.hubID, byteCountMax: configuration.storeByteCountMax,
      signals: signals)
    do {
      let listener = try makeListener(configuration, store, signals, now)
      let address = configuration.listen.address
      let host = address.contains(":") ? "[\(address)]" : address
      guard let url = URL(string: "http://\(host):\(listener.port)") else {
        throw HubServerError(.listenFailed, "\(address) makes no URL")
      }
      return HubServer(
        configuration, url: url, store: store, signals: signals, listener: listener, now: now)
    } catch let error as HubServerError {
      try await close(store)
      throw error
    } catch {
      preconditionFailure("every error of a start is a HubServerError: \(error)")
    }
  }

  private static func makeListener(
    _ configuration: HubConfiguration, _ store: any HubStore, _ signals: AccountSignals,
    _ now: @escaping @Sendable () -> Double
  ) throws(HubServerError) -> Listener {
    let tokens = configuration.tokens
    let capture = configuration.captureDirectory.map { directory in
      let capture = BodyCapture(directory: directory)
      return { @Sendable in try capture.add($0, of: $1, from: $2) } as HubService.Capture
    }
    let service = HubService(
      store: store, signals: signals,
      tokens: TokenVerifier(
        issuer: tokens.issuer, audience: tokens.audience, keys: tokens.keys),
      digests: SHA256Digests(), limits: configuration.limits, now: now,
      faultsEnabled: configuration.faultsEnabled, capture: capture,
      commentInterval: configuration.commentInterval)
    let log: RequestLog?
    if let file = configuration.requestLog {
      log = try RequestLog(file: file, hub: store.hubID)
    } else {
      log = nil
    }
    return try Listener(configuration.listen, service: service, log: log)
  }

  /// Stops in order: nobody new is served, answers under way are finished, the store is closed and
  /// its last transaction noted. Once stopped, a second call does nothing.
  /// - Throws: ``HubServerError`` `storeUnusable` or `directoryUnusable` when the last note cannot be
  ///   written: the next start then takes the file for what a crash left.
  public func stop() async throws(HubServerError) {
    guard !isStopped.exchange(true, ordering: .sequentiallyConsistent) else { return }
    await listener.stop()
    try await HubServer.close(store)
  }

  private static func close(_ store: any HubStore) async throws(HubServerError) {
    do { try await store.close() } catch let error as HubServerError {
      throw error
    } catch {
      throw HubServerError(.storeUnusable, "the store cannot be closed", cause: error)
    }
  }

  /// A development token for an account, signed with the first configured key.
  /// - Parameter lifetimeSeconds: how long it is valid from now, an hour by default.
  /// - Throws: ``HubServerError`` `tokenFailed` when that key has no secret part.
  public func token(
    for account: AccountID, lifetimeSeconds: Int64 = 3_600
  ) throws(HubServerError) -> String {
    try configuration.tokenIssuer().token(
      for: account, issuedAt: Int64(now()), lifetimeSeconds: lifetimeSeconds)
  }
}

extension HubConfiguration {
  /// An issuer of development tokens that this hub accepts, with the first configured key.
  /// - Throws: ``HubServerError`` `tokenFailed` when there is no key.
  public func tokenIssuer() throws(HubServerError) -> TokenIssuer {
    guard let key = tokens.keys.first else {
      throw HubServerError(.tokenFailed, "the configuration names no key")
    }
    return try TokenIssuer(issuer: tokens.issuer, audience: tokens.audience, key: key)
  }
}
