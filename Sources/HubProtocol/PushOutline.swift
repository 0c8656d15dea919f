package import Foundation

/// A push that stays in its body: each mutation is numbers and places within it, so that nothing is
/// made and nothing copied for a mutation. See ``PushRequest``, which has the same members.
package struct PushOutline: Sendable {
  /// A mutation: numbers, and where in ``PushOutline/body`` its bytes lie.
  package struct Mutation: Sendable {
    package var mutation: UUID
    package var order: UInt64
    package var kind: MutationKind
    /// 1 to 400 bytes of UTF-8.
    package var id: Range<Int>
    package var base: WireBase?
    package var firstSent: UInt64
    /// There exactly if `kind` is `put`.
    package var payload: Range<Int>?
  }

  package var client: UUID
  package var epoch: UUID
  package var cursor: UInt64
  package var mutations: [Mutation]
  /// What the mutations' places count from.
  package let body: [UInt8]

  /// Reads a body, checking what ``PushRequest/init(decoding:as:)`` checks.
  /// - Throws: the same ``WireError``.
  /// - Cost: in the form in which this module writes it, the body is copied once; in any other as a
  ///   whole ``PushRequest``.
  package init(decoding body: Data, as format: WireFormat) throws(WireError) {
    if format == .cbor, let own = PushOutline(ownForm: Array(body)) {
      self = own
    } else {
      self.init(try PushRequest(decoding: body, as: format))
    }
  }

  /// Takes a request that has been read already.
  package init(_ request: PushRequest) {
    client = request.client
    epoch = request.epoch
    cursor = request.cursor
    mutations = []
    mutations.reserveCapacity(request.mutations.count)
    var body: [UInt8] = []
    for mutation in request.mutations {
      let id = body.count..<body.count + mutation.id.bytes.count
      body += mutation.id.bytes
      if let payload = mutation.payload { body += payload }
      mutations.append(
        Mutation(
          mutation: mutation.mutation, order: mutation.order, kind: mutation.kind, id: id,
          base: mutation.base, firstSent: mutation.firstSent,
          payload: mutation.payload == nil ? nil : id.upperBound..<body.count))
    }
    self.body = body
  }

  /// Bytes of the body.
  @_lifetime(borrow self)
  package func bytes(_ place: Range<Int>) -> RawSpan { body.span.bytes.extracting(place) }

  /// The payload of a mutation; nil for a delete.
  @_lifetime(borrow self)
  package func payload(of mutation: Mutation) -> RawSpan? {
    guard let place = mutation.payload else { return nil }
    return body.span.bytes.extracting(place)
  }

  /// The record that a mutation changes.
  package func record(of mutation: Mutation) -> RecordID {
    RecordID(uncheckedBytes: Array(body[mutation.id]))
  }
}

extension PushOutline {
  private init?(ownForm body: [UInt8]) {
    let read = OwnForm.read(body) { form -> PushOutline? in
      guard form.object() == 4, let client = form.uuid("fclientx$"),
        let epoch = form.uuid("eepochx$"), let cursor = form.sequence("fcursor"),
        form.takes("imutations"), let count = form.list()
      else { return nil }
      var mutations: [Mutation] = []
      mutations.reserveCapacity(min(count, WireLimits.batchCountMax))
      for _ in 0..<count {
        guard let mutation = Mutation(from: &form) else { return nil }
        mutations.append(mutation)
      }
      return PushOutline(
        client: client, epoch: epoch, cursor: cursor, mutations: mutations, body: body)
    }
    guard let read else { return nil }
    self = read
  }

  private init(
    client: UUID, epoch: UUID, cursor: UInt64, mutations: [Mutation], body: [UInt8]
  ) {
    self.client = client
    self.epoch = epoch
    self.cursor = cursor
    self.mutations = mutations
    self.body = body
  }
}

extension PushOutline.Mutation {
  @inline(__always)
  fileprivate init?(from form: inout OwnForm) {
    guard let count = form.object(), let mutation = form.uuid("hmutationx$"),
      let order = form.sequence("eorder"), form.takes("dkind")
    else { return nil }
    let isPut = form.takes("cput")
    guard isPut || form.takes("fdelete"),
      let id = form.text("bid", byteCountMax: RecordID.byteCountMax)
    else { return nil }
    // Whether there is a base, the number of members says.
    var base: WireBase?
    switch count - (isPut ? 6 : 5) {
    case 0: break
    case 1:
      if let earlier = form.uuid("dbasex$") {
        base = .mutation(earlier)
      } else if let version = form.sequence("dbase") {
        base = .version(version)
      } else {
        return nil
      }
    default: return nil
    }
    guard let firstSent = form.sequence("ifirstSent") else { return nil }
    var payload: Range<Int>?
    if isPut {
      payload = form.payload("gpayload")
      guard payload != nil else { return nil }
    }
    self.init(
      mutation: mutation, order: order, kind: isPut ? .put : .delete, id: id, base: base,
      firstSent: firstSent, payload: payload)
  }
}
