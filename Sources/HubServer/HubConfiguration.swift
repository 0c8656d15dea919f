public import Foundation
public import HubProtocol

/// How a hub is set up: the value of `Config/hub.json`, each key explained in `Config/README.md`.
public struct HubConfiguration: Sendable {
  /// Where everything of the hub is kept; made with mode 0700 if it is not there.
  public var dataDirectory: URL
  /// A fixed hub ID; nil lets the first start choose one for ever.
  public var hubID: UUID?
  /// Where it listens, and what it takes from a connection.
  public var listen: Listen
  /// Which tokens it accepts.
  public var tokens: Tokens
  /// What it accepts and sends at most.
  public var limits: HubLimits
  /// The ceiling of the store's memory map, in bytes; 64 GiB by default. Virtual until used.
  public var storeByteCountMax: Int
  /// A file to which each request adds one JSON line, or nil for none.
  public var requestLog: URL?
  /// Whether `Holdfast-Fault` is obeyed; for tests only, false by default.
  public var faultsEnabled: Bool
  /// A directory that receives every request body with the account that sent it; for tests only,
  /// nil by default. It holds what people wrote, in the clear.
  public var captureDirectory: URL?
  /// How long an event stream is silent before it sends a comment: 15 seconds, as the protocol says.
  package var commentInterval: Duration = .seconds(15)

  /// Where the hub listens.
  public struct Listen: Sendable, Hashable {
    /// A numeric IPv4 or IPv6 address; loopback by default.
    public var address: String
    /// The port; 0 lets the system choose a free one.
    public var port: UInt16
    /// The most connections at once; 1,000 by default.
    public var connectionCountMax: Int
    /// How long a connection may be silent, in seconds; 60 by default.
    public var idleSeconds: Int
    /// How long a head may take to arrive, in seconds; 15 by default.
    public var headSeconds: Int
    /// How long a body may take to arrive, and an answer to be taken, in seconds; 120 by default.
    /// Each 4,096 bytes make it a second longer.
    public var bodySeconds: Int
    /// How long a stop waits for answers under way, in seconds; 5 by default.
    public var stopSeconds: Int

    /// The defaults.
    public init(
      address: String = "127.0.0.1", port: UInt16 = 0, connectionCountMax: Int = 1_000,
      idleSeconds: Int = 60, headSeconds: Int = 15, bodySeconds: Int = 120, stopSeconds: Int = 5
    ) {
      self.address = address
      self.port = port
      self.connectionCountMax = connectionCountMax
      self.idleSeconds = idleSeconds
      self.headSeconds = headSeconds
      self.bodySeconds = bodySeconds
      self.stopSeconds = stopSeconds
    }
  }

  /// Which tokens the hub accepts.
  public struct Tokens: Sendable {
    /// The `iss` that a token must have.
    public var issuer: String
    /// The `aud` that a token must have, alone or among others.
    public var audience: String
    /// The keys that verify; the first one with its secret part issues development tokens.
    public var keys: [SigningKey]

    /// Issuer and audience are `holdfast` by default.
    public init(issuer: String = "holdfast", audience: String = "holdfast", keys: [SigningKey]) {
      self.issuer = issuer
      self.audience = audience
      self.keys = keys
    }
  }

  /// The defaults, for a directory and the keys that verify tokens.
  public init(dataDirectory: URL, keys: [SigningKey]) {
    self.dataDirectory = dataDirectory
    listen = Listen()
    tokens = Tokens(keys: keys)
    limits = HubLimits(waitSeconds: WireLimits.waitSecondsMax)
    storeByteCountMax = 64 << 30
    faultsEnabled = false
  }

  /// Checks each value, and the values against each other.
  /// - Throws: ``HubServerError`` `configurationInvalid` naming the key and what it may be.
  public func validate() throws(HubServerError) {
    func require(_ condition: Bool, _ message: String) throws(HubServerError) {
      guard condition else { throw HubServerError(.configurationInvalid, message) }
    }
    func require(
      _ key: String, _ value: Int, _ range: ClosedRange<Int>
    ) throws(HubServerError) {
      try require(
        range.contains(value),
        "\(key) is \(value); it may be \(range.lowerBound) to \(range.upperBound)")
    }
    try require(!tokens.keys.isEmpty, "tokens.keys is empty; name at least one key")
    try require(!tokens.issuer.isEmpty, "tokens.issuer is empty; name the issuer")
    try require(!tokens.audience.isEmpty, "tokens.audience is empty; name the audience")
    try require("limits.pullRecords", limits.pullRecords, 1...500)
    try require("limits.pullBytes", limits.pullBytes, 1_024...(1 << 30))
    try require("limits.pushMutations", limits.pushMutations, 1...500)
    try require("limits.payloadBytes", limits.payloadBytes, 0...(16 << 20))
    try require("limits.pushBytes", limits.pushBytes, 4_096...(1 << 30))
    try require("limits.waitSeconds", limits.waitSeconds, 0...WireLimits.waitSecondsMax)
    // A single mutation of the largest payload must fit into a push, in base64 and with its frame.
    let least = (limits.payloadBytes * 4 + 2) / 3 + 4_096
    try require(
      limits.pushBytes >= least,
      "limits.pushBytes is \(limits.pushBytes); with this payloadBytes it must be \(least) or more")
    try require("listen.connections", listen.connectionCountMax, 1...100_000)
    try require("listen.idleSeconds", listen.idleSeconds, 1...86_400)
    try require("listen.headSeconds", listen.headSeconds, 1...86_400)
    try require("listen.bodySeconds", listen.bodySeconds, 1...86_400)
    try require("listen.stopSeconds", listen.stopSeconds, 0...3_600)
    try require("store.bytesMax", storeByteCountMax, (1 << 20)...(1 << 46))
  }
}
