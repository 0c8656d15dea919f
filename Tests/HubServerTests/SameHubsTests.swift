import Foundation
import HoldfastTesting
import HubProtocol
import HubServer
import Synchronization
import Testing

// The store of tables and the one in memory decide alike, whatever is asked of them in whatever order.
@Suite("The real hub and the one in memory", .timeLimit(.minutes(4)))
struct SameHubsTests {
  private func transcript(_ kind: TestedHub.Kind, seed: UInt64) async throws -> [String] {
    let time = Mutex(Date().timeIntervalSince1970)
    let directory = try TemporaryDirectory()
    var configuration = HubConfiguration.test(directory)
    configuration.limits.pullBytes = 1_024
    configuration.limits.payloadBytes = 1_000
    var transcript: [String] = []
    try await TestedHub.Kind.$current.withValue(kind) {
      try await withHub(configuration, now: { time.withLock { $0 } }) { hub in
        var history = try History(hub, seed: seed)
        for _ in 0..<250 {
          try await history.step { seconds in time.withLock { $0 += seconds } }
        }
        transcript = history.transcript
      }
    }
    return transcript
  }

  @Test("give the same answers to the same history")
  func same() async throws {
    var all: [String] = []
    for seed in UInt64(1)...8 {
      let server = try await transcript(.server, seed: seed)
      let memory = try await transcript(.memory, seed: seed)
      #expect(server.count == memory.count)
      if let place = zip(server, memory).enumerated().first(where: { $1.0 != $1.1 })?.offset {
        Issue.record("seed \(seed): \(server[place])\n in memory: \(memory[place])")
      }
      all += server
    }
    // What there is to compare is there.
    let wanted = [
      "applied", "duplicate", "conflict", "mutation_reused", "blocked_by", "bad_base",
      "client_bound_elsewhere", "epoch_changed", "cursor_expired", "account_erased",
      "account_disabled", "unavailable", "more: true", "omitted",
    ]
    for text in wanted { #expect(all.contains { $0.contains(text) }, "\(text)") }
  }
}

/// Requests and acts of an operator on two accounts, in an order that a seed says; and their answers
/// without what differs from hub to hub.
private struct History {
  private struct Account {
    var client: TestClient
    var isErased = false
    var highWater: UInt64 = 0
    var sent: [WireMutation] = []
    /// The epochs seen, in their order: two hubs make different ones.
    var epochs: [UUID] = []

    /// Two hubs call the same epoch by this.
    mutating func name(_ epoch: UUID) -> String {
      if !epochs.contains(epoch) { epochs.append(epoch) }
      return "epoch \(epochs.firstIndex(of: epoch) ?? 0)"
    }
  }

  private let hub: TestedHub
  private let clientID: UUID
  private var random: SeededRandom
  private var accounts: [Account]
  private(set) var transcript: [String] = []

  init(_ hub: TestedHub, seed: UInt64) throws {
    self.hub = hub
    random = SeededRandom(seed: seed)
    clientID = random.uuid()
    accounts = try ["ada", "bob"].map { Account(client: try TestClient(hub, $0)) }
  }

  private mutating func below(_ count: UInt64) -> UInt64 { random.next() % max(count, 1) }

  mutating func step(_ pass: (Double) -> Void) async throws {
    let place = Int(below(2))
    var account = accounts[place]
    if account.epochs.isEmpty { try await open(&account, place) }
    switch below(40) {
    case 0..<22: try await push(&account, place)
    case 22..<30: try await pull(&account)
    case 30..<32: try await session(&account)
    case 32..<33: pass(Double(below(90)))
    default: try await administer(&account)
    }
    accounts[place] = account
  }

  private mutating func open(_ account: inout Account, _ place: Int) async throws {
    try await session(&account)
    // A client belongs to one account: the second finds that out, and has another.
    for _ in 0...place {
      let answer = try await account.client.register(own(place))
      transcript.append("register: \(answer.status)")
    }
  }

  private func own(_ place: Int) -> UUID {
    var random = SeededRandom(seed: UInt64(place))
    return place == 0 ? clientID : random.uuid()
  }

  private mutating func session(_ account: inout Account) async throws {
    let raw = try await account.client.send(
      "GET", "/v1/session?nonce=\(UUID().wireText)", ["Holdfast-Account": nil])
    guard raw.status == 200 else { return try note(raw, "session", &account) }
    let answer = try raw.message(SessionAnswer.self)
    account.highWater = answer.highWater
    let lineage = answer.lineage.map { "\(account.name($0.epoch)) to \($0.forkedAt)" }
    transcript.append(
      "session: \(lineage), \(account.name(answer.epoch)), \(answer.highWater),"
        + " \(answer.minimumCursor), \(answer.idempotencyFloor), \(answer.empty)")
  }

  private mutating func epoch(of account: Account) -> UUID {
    let last = account.epochs.count - 1
    return account.epochs[below(12) == 0 ? Int(below(UInt64(last + 1))) : last]
  }

  private mutating func mutation(of account: Account) -> WireMutation {
    if !account.sent.isEmpty, below(6) == 0 {
      var again = account.sent[Int(below(UInt64(account.sent.count)))]
      if below(3) == 0 { again.payload = again.payload.map { $0 + [1] } }
      return again
    }
    let base: WireBase? =
      switch below(6) {
      case 0: .version(0)
      case 1, 2: .version(below(account.highWater + 3))
      case 3 where !account.sent.isEmpty:
        .mutation(account.sent[Int(below(UInt64(account.sent.count)))].mutation)
      case 4 where below(4) == 0: .mutation(random.uuid())
      default: nil
      }
    let isPut = below(4) > 0
    let count = below(3) == 0 ? below(600) : below(4)
    return WireMutation(
      mutation: random.uuid(), order: below(4), kind: isPut ? .put : .delete,
      id: RecordID("r\(below(9))"), base: base, firstSent: below(account.highWater + 2),
      payload: isPut ? Data((0..<count).map { UInt8(truncatingIfNeeded: $0) }) : nil)
  }

  private mutating func push(_ account: inout Account, _ place: Int) async throws {
    let mutations = (0..<below(9)).map { _ in mutation(of: account) }
    account.sent += mutations
    let isAhead = below(15) == 0
    let request = PushRequest(
      client: own(below(25) == 0 ? 1 - place : place), epoch: epoch(of: account),
      cursor: isAhead
        ? account.highWater + 1 : account.highWater - min(below(3), account.highWater),
      mutations: mutations)
    let format: WireFormat = below(3) == 0 ? .json : .cbor
    let raw = try await account.client.send(
      "POST", "/v1/mutations", ["Content-Type": format.rawValue, "Accept": format.rawValue],
      body: request.encoded(as: format))
    guard raw.status == 200 else { return try note(raw, "push", &account) }
    let answer = try raw.message(PushAnswer.self, as: format)
    account.highWater = answer.highWater
    transcript.append(
      "push: \(account.name(answer.epoch)), \(answer.highWater), \(answer.results.map(Self.text))")
  }

  private mutating func pull(_ account: inout Account) async throws {
    let epoch = epoch(of: account)
    let after = below(account.highWater + 1)
    var rest = "&limit=\(1 + below(6))"
    if below(3) == 0 { rest += "&until=\(after + below(9))" }
    let format: WireFormat = below(2) == 0 ? .json : .cbor
    let raw = try await account.client.pull(
      after: below(3) == 0 ? 0 : after, epoch: epoch, rest, ["Accept": format.rawValue])
    guard raw.status == 200 else { return try note(raw, "pull", &account) }
    let page = try raw.message(ChangesPage.self, as: format)
    account.highWater = page.highWater
    transcript.append(
      "pull: \(account.name(page.epoch)), \(page.after), next: \(page.next), more: \(page.more),"
        + " \(page.highWater), \(page.records.map(Self.text))")
  }

  private mutating func administer(_ account: inout Account) async throws {
    let id = account.client.account
    switch below(12) {
    case 0..<3: try await hub.purgeTombstones(of: id, below: below(account.highWater + 3))
    case 3..<5: try await hub.purgeResults(of: id, below: below(account.highWater + 3))
    case 5..<7: try await hub.beginEpoch(id, forkedAt: below(account.highWater + 3))
    case 7: try await hub.disable(id)
    case 8 where !account.isErased && below(3) == 0:
      try await hub.erase(id)
      account.isErased = true
      try await session(&account)
    default:
      try await hub.enable(id)
      guard account.isErased else { break }
      try await hub.recreate(id)
      account.isErased = false
    }
    if !account.isErased { try await session(&account) }
  }

  private mutating func note(
    _ raw: RawAnswer, _ what: String, _ account: inout Account
  ) throws {
    let problem = try HubProblem(decoding: raw.body)
    let lineage = problem.lineage?.map { "\(account.name($0.epoch)) to \($0.forkedAt)" }
    let epoch = problem.epoch.map { account.name($0) }
    transcript.append(
      "\(what): \(problem.code), \(lineage ?? []), \(epoch ?? ""),"
        + " \(problem.minimumCursor ?? 0), \(problem.index ?? -1),"
        + " \(raw.header("Retry-After") ?? ""), \(problem.detail)")
  }

  private static func text(_ result: MutationResult) -> String {
    "\(result.mutation) \(result.status) \(result.version ?? 0) \(result.code ?? "")"
      + " \(result.detail ?? "") \(result.current.map(Self.text) ?? "")"
  }

  private static func text(_ record: WireRecord) -> String {
    "\(record.id.text) \(record.version) \(record.deleted) \(record.payload.map(Array.init) ?? [])"
      + " \(record.client?.wireText ?? "") \(record.mutation?.wireText ?? "")"
      + " \(record.isPayloadOmitted ? "omitted" : "")"
  }
}
