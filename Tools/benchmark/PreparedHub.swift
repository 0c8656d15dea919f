import Foundation
import HubProtocol
import Measuring
import ProfileSync
import Synchronization

/// A hub in memory that has its pages ready: they arrive as fast as they are taken.
final class PreparedHub: HubTransport {
  /// Pages of records in the order of their versions, as bodies.
  struct Pages: Sendable {
    /// By the sequence after which they were asked for.
    fileprivate var bodies: [UInt64: Data] = [:]
    fileprivate var highWater: UInt64

    fileprivate init(highWater: UInt64) { self.highWater = highWater }
  }

  let id = UUID()
  let epoch = UUID()
  let account: AccountID
  private let pages: Mutex<Pages>

  /// An empty one.
  init(account: AccountID) {
    self.account = account
    pages = Mutex(Pages(highWater: 0))
  }

  /// Makes the pages of records that follow one another from a sequence on.
  func prepare(
    _ documents: Documents, _ names: RecordNames, in order: [UInt32], after start: UInt64
  ) -> Pages {
    let highWater = start + UInt64(order.count)
    var pages = Pages(highWater: highWater)
    for begin in stride(from: 0, to: order.count, by: Context.page) {
      let end = min(begin + Context.page, order.count)
      let records = (begin..<end).map { place in
        let index = Int(order[place])
        return WireRecord(
          id: RecordID(uncheckedBytes: names[index]), version: start + UInt64(place) + 1,
          deleted: false, payload: Data(documents.value(index)), client: nil, mutation: nil)
      }
      let after = start + UInt64(begin)
      pages.bodies[after] = page(
        after: after, next: start + UInt64(end), more: end < order.count, highWater, records)
    }
    return pages
  }

  private func page(
    after: UInt64, next: UInt64, more: Bool, _ highWater: UInt64, _ records: [WireRecord]
  ) -> Data {
    ChangesPage(
      hub: id, epoch: epoch, account: account, after: after, next: next, more: more,
      highWater: highWater, records: records
    ).encoded(as: .cbor)
  }

  /// Has these from now on, and nothing else.
  func serve(_ pages: Pages) { self.pages.withLock { $0 = pages } }

  /// The bodies of the pages that it has.
  var bodies: [Data] { pages.withLock { $0.bodies.sorted { $0.key < $1.key }.map(\.value) } }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let components = URLComponents(string: request.target)
    let values = Dictionary(
      (components?.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
    switch components?.path {
    case "/v1/session":
      guard let nonce = values["nonce"].flatMap({ UUID(uuidString: $0) }) else { break }
      return answer(session(nonce))
    case "/v1/changes":
      guard let after = values["after"].flatMap({ UInt64($0) }) else { break }
      return answer(changes(after))
    default: break
    }
    throw TransportError(code: .other, description: "the prepared hub has no such answer")
  }

  private func session(_ nonce: UUID) -> Data {
    SessionAnswer(
      nonce: nonce, hub: id, epoch: epoch, lineage: [], account: account,
      highWater: pages.withLock(\.highWater), minimumCursor: 0, idempotencyFloor: 0, empty: false,
      expiresAt: 1 << 40, limits: HubLimits()
    ).encoded(as: .cbor)
  }

  private func changes(_ after: UInt64) -> Data {
    let (body, highWater) = pages.withLock { ($0.bodies[after], $0.highWater) }
    return body ?? page(after: after, next: max(after, highWater), more: false, highWater, [])
  }

  private func answer(_ body: Data) -> HubResponse {
    HubResponse(
      status: 200,
      headers: [
        HeaderField(HubHeader.hub, id.uuidString.lowercased()),
        HeaderField(HubHeader.account, PercentEncoding.encode(bytes: account.bytes)),
        HeaderField(HubHeader.epoch, epoch.uuidString.lowercased()),
        HeaderField(HubHeader.contentType, WireFormat.cbor.contentType),
      ],
      body: body)
  }
}
