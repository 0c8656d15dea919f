import Foundation
import HubProtocol
import Synchronization

/// What the counting faults remember, per account and header value.
final class FaultBoard: Sendable {
  private struct Key: Hashable {
    var account: AccountID
    var header: String
    var name: String
  }

  private let counts = Mutex<[Key: Int]>([:])
  private let pages = Mutex<[Key: ChangesPage]>([:])

  /// Counts one more, from 1.
  func count(_ name: String, _ plan: FaultPlan, _ account: AccountID) -> Int {
    counts.withLock { counts in
      counts[Key(account: account, header: plan.text, name: name), default: 0] += 1
      return counts[Key(account: account, header: plan.text, name: name), default: 0]
    }
  }

  /// The faults of a name count from the beginning again; nil: all.
  func forget(_ name: String?) {
    counts.withLock { $0 = $0.filter { key, _ in name != nil && key.name != name } }
    pages.withLock { $0 = $0.filter { key, _ in name != nil && key.name != name } }
  }

  /// The page to serve at every second call: the one before; else the page itself.
  func repeated(_ page: ChangesPage, _ plan: FaultPlan, _ account: AccountID) -> ChangesPage {
    let isSecond = count("repeat-page", plan, account).isMultiple(of: 2)
    let key = Key(account: account, header: plan.text, name: "repeat-page")
    return pages.withLock { pages in
      if isSecond, let before = pages[key] { return before }
      pages[key] = page
      return page
    }
  }
}

extension AdmittedRequest {
  /// The account that the body names: the right one, unless a fault asks for another.
  func bodyAccount(_ account: AccountID) -> AccountID {
    guard faults?.faults.contains(.otherAccountBody) ?? false else { return account }
    return HubService.otherAccount(than: account)
  }
}

extension HubService {
  /// An account that is not the given one.
  static func otherAccount(than account: AccountID) -> AccountID {
    do {
      return try AccountID(account.text == "someone-else" ? "somebody-else" : "someone-else")
    } catch {
      preconditionFailure("a fixed account ID is within its limits")
    }
  }

  /// The faults of a name count from the beginning again, whatever header asks for them; nil: all.
  package func forgetFaults(named name: String? = nil) { faults?.forget(name) }

  /// The faults that act before the request does.
  func applyBefore(
    _ plan: FaultPlan, _ request: AdmittedRequest, _ account: AccountID
  ) async throws {
    guard let faults else { return }
    for fault in plan.faults {
      switch fault {
      case .throttle(let count):
        guard faults.count("throttle", plan, account) <= count else { continue }
        throw Refusal(.rateLimited, "a fault on demand", retryAfterSeconds: 1)
      case .unauthorizedAtPage(let page):
        guard request.endpoint == .changes,
          faults.count("unauthorized-at-page", plan, account) == page
        else { continue }
        throw Refusal(.tokenExpired, "a fault on demand")
      case .newEpoch(let forkedAt):
        guard faults.count("new-epoch", plan, account) == 1 else { continue }
        _ = try await store.admit(account)
        _ = try await store.administer(.beginEpoch(forkedAt: forkedAt), on: account)
      case .purgedTombstones:
        guard faults.count("purged-tombstones", plan, account) == 1 else { continue }
        _ = try await store.admit(account)
        _ = try await store.administer(.purgeTombstones(below: nil), on: account)
      default: continue
      }
    }
  }

  /// The faults that act on a page.
  func spoiled(
    _ page: ChangesPage, by plan: FaultPlan, _ account: AccountID
  ) -> ChangesPage {
    var page = page
    for fault in plan.faults {
      switch fault {
      case .olderVersions:
        for index in page.records.indices {
          page.records[index].version = page.after + 1 + UInt64(index)
        }
      case .cursorStands:
        page.next = page.after
        page.more = true
      case .cursorBack:
        page.next = page.after == 0 ? 0 : page.after - 1
        page.more = true
      case .endlessMore: page.more = true
      case .repeatPage: page = faults?.repeated(page, plan, account) ?? page
      default: continue
      }
    }
    return page
  }

  /// The faults that act on a finished answer.
  func spoiled(
    _ reply: Reply, by plan: FaultPlan, _ request: AdmittedRequest
  ) async -> Reply {
    var reply = reply
    for fault in plan.faults {
      switch fault {
      case .delay(let milliseconds):
        // A cancelled delay ends early, which is what a stop wants.
        try? await signals.sleep(for: .milliseconds(milliseconds))
      case .dropAfterCommit: reply.delivery = .dropped
      case .cutBody(let byteCount):
        if let events = reply.events {
          events.feed.cut(afterByteCount: byteCount)
          continue
        }
        reply.delivery = .cut(
          afterByteCount: min(byteCount ?? reply.body.count / 2, max(reply.body.count - 1, 0)))
      case .otherAccountHeader:
        guard let account = request.account,
          let index = reply.headers.firstIndex(where: { $0.name == HubHeader.account })
        else { continue }
        let other = HubService.otherAccount(than: account)
        reply.headers[index].value = PercentEncoding.encode(bytes: other.bytes)
      default: continue
      }
    }
    return reply
  }
}
