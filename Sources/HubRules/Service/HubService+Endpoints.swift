import Foundation
import HubProtocol

extension HubService {
  func sessionReply(
    _ request: AdmittedRequest, _ token: VerifiedToken, _ standing: AccountStanding,
    _ frame: ReplyFrame
  ) throws(Refusal) -> Reply {
    let query = try parameters(of: request)
    let state = standing.state
    return frame.reply(
      SessionAnswer(
        nonce: try query.uuid("nonce"), hub: store.hubID, epoch: state.epoch,
        lineage: state.lineage, account: request.bodyAccount(token.account),
        highWater: state.highWater, minimumCursor: state.minimumCursor,
        idempotencyFloor: state.idempotencyFloor, empty: standing.isEmpty,
        expiresAt: token.expiresAt, limits: limits))
  }

  func clientReply(
    _ segment: String, _ request: AdmittedRequest, _ body: Data, _ account: AccountID,
    _ state: AccountState, _ frame: ReplyFrame
  ) async throws -> Reply {
    _ = try parameters(of: request)
    guard let client = UUID(wireText: segment) else {
      throw Refusal(.badRequest, "the client in the path is no UUID in lower case")
    }
    let registration: ClientRegistration = try message(in: body, of: request)
    let outcome = try await store.register(
      client: client, name: registration.name, for: account)
    guard outcome != .boundElsewhere else { throw HubService.boundElsewhere }
    return frame.reply(
      ClientAnswer(
        hub: store.hubID, epoch: state.epoch, account: request.bodyAccount(account),
        client: client, name: registration.name),
      status: outcome == .created ? 201 : 200)
  }

  func changesReply(
    _ request: AdmittedRequest, _ token: VerifiedToken, _ frame: inout ReplyFrame,
    _ presence: ClientPresence
  ) async throws -> Reply {
    let account = token.account
    let parameters = try parameters(of: request)
    var query = try pageQuery(parameters)
    // A fault changes the records, and needs them as values.
    query.isEncoded = frame.format == .cbor && request.faults == nil
    let wait = try parameters.count("wait", 0...UInt64(WireLimits.waitSecondsMax)) ?? 0
    let outcome = try await page(
      query, of: token, waitSeconds: min(wait, limits.waitSeconds), presence)
    switch outcome {
    case .refused(let state, let refusal): throw refuse(refusal, state, &frame)
    case .page(let state, let records, let more, let next):
      frame.epoch = state.epoch
      var page = ChangesPage(
        hub: store.hubID, epoch: state.epoch, account: request.bodyAccount(account),
        after: query.after, next: next, more: more, highWater: state.highWater, records: [])
      switch records {
      case .values(let values): page.records = values
      case .encoded(let encoded):
        return frame.reply(
          status: 200, type: WireFormat.cbor.contentType, body: page.encoded(with: encoded))
      }
      if let plan = request.faults { page = spoiled(page, by: plan, account) }
      return frame.reply(page)
    }
  }

  func recordReply(
    _ request: AdmittedRequest, _ account: AccountID, _ frame: inout ReplyFrame
  ) async throws -> Reply {
    guard let bytes = try parameters(of: request).bytes("id") else {
      throw Refusal(.badRequest, "the parameter id is missing")
    }
    let id: RecordID
    do { id = try RecordID(bytes: bytes) } catch {
      throw Refusal(.badRequest, error.description)
    }
    switch try await store.record(id, of: account) {
    case .refused(let state, let refusal): throw refuse(refusal, state, &frame)
    case .found(let state, let record):
      frame.epoch = state.epoch
      return frame.reply(
        RecordAnswer(
          hub: store.hubID, epoch: state.epoch, account: request.bodyAccount(account),
          record: record))
    }
  }

  func pushReply(
    _ request: AdmittedRequest, _ body: Data, _ account: AccountID, _ frame: inout ReplyFrame
  ) async throws -> Reply {
    _ = try parameters(of: request)
    let push = try self.push(in: body, of: request)
    try checkForm(of: push)
    guard let owner = try await store.owner(ofClient: push.client) else {
      throw Refusal(.clientUnknown, "nobody registered this client")
    }
    guard owner == account else { throw HubService.boundElsewhere }
    var plan = PushPlan(
      push, digests: digests, currentByteCountMax: limits.pullBytes, storedAt: Int64(now()))
    if let faults = request.faults {
      plan.imposed = faults.imposedVerdicts(on: push.mutations.count)
    }
    switch try await store.push(plan, for: account) {
    case .refused(let state, let refusal): throw refuse(refusal, state, &frame)
    case .judged(let state, let verdicts):
      frame.epoch = state.epoch
      var answer = PushAnswer(
        hub: store.hubID, epoch: state.epoch, account: request.bodyAccount(account),
        highWater: state.highWater, results: [])
      if frame.format == .cbor {
        return frame.reply(
          status: 200, type: WireFormat.cbor.contentType,
          body: answer.encoded(with: verdicts.encoded()))
      }
      answer.results = verdicts.results
      return frame.reply(answer)
    }
  }

  private static let boundElsewhere = Refusal(
    .clientBoundElsewhere, "this client belongs to another account")

  private func parameters(of request: AdmittedRequest) throws(Refusal) -> QueryParameters {
    try QueryParameters(request.head.query, known: request.endpoint.parameters)
  }

  private func pageQuery(_ query: QueryParameters) throws(Refusal) -> PageQuery {
    let after = try query.requiredSequence("after", .badCursor)
    let until = try query.sequence("until", .badCursor)
    guard until.map({ $0 >= after }) ?? true else {
      throw Refusal(.badCursor, "the parameter until is below after")
    }
    let epoch = try query.uuid("epoch")
    let limit = try query.requiredCount("limit", 1...UInt64(WireLimits.batchCountMax))
    return PageQuery(
      epoch: epoch, after: after, until: until, limit: min(limit, limits.pullRecords),
      byteCountMax: limits.pullBytes)
  }

  private func message<Message: HubMessage>(
    in body: Data, of request: AdmittedRequest
  ) throws(Refusal) -> Message {
    try read(body, of: request) { (body, format) throws(WireError) in
      try Message(decoding: body, as: format)
    }
  }

  private func push(
    in body: Data, of request: AdmittedRequest
  ) throws(Refusal) -> PushOutline {
    try read(body, of: request) { (body, format) throws(WireError) in
      try PushOutline(decoding: body, as: format)
    }
  }

  private func read<Message>(
    _ body: Data, of request: AdmittedRequest,
    _ decode: (Data, WireFormat) throws(WireError) -> Message
  ) throws(Refusal) -> Message {
    guard let type = request.head.text(of: HubHeader.contentType),
      let format = WireFormat(contentType: type), !body.isEmpty
    else { throw Refusal(.badRequest, "the request needs a body") }
    do {
      return try decode(body, format)
    } catch {
      throw Refusal(
        error.index == nil ? .badRequest : .badMutation, error.description, index: error.index)
    }
  }

  /// The size of its parts (413), then what a mutation may not say of itself (400).
  ///
  /// Parts have a size only in a push that was understood: one that is malformed anywhere was
  /// answered with 400 before, however large its parts are. The size of the whole came before both.
  private func checkForm(of push: PushOutline) throws(Refusal) {
    guard push.mutations.count <= limits.pushMutations else {
      throw Refusal(.tooLarge, "a push has at most \(limits.pushMutations) mutations")
    }
    for (index, mutation) in push.mutations.enumerated()
    where mutation.payload?.count ?? 0 > limits.payloadBytes {
      throw Refusal(
        .tooLarge, "a payload has at most \(limits.payloadBytes) bytes", index: index)
    }
    for (index, mutation) in push.mutations.enumerated()
    where mutation.base == .mutation(mutation.mutation) {
      throw Refusal(.badMutation, "a mutation cannot be its own base", index: index)
    }
  }
}
