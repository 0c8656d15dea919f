public import Foundation
public import HubProtocol
import Synchronization

/// An account as its hub verified it: (hub, stable account ID), compared byte for byte.
///
/// There is no public initialiser and it is not `Decodable`: one comes from
/// `ProfileRegistry.verify(...)`, which asks the hub with a nonce, or from an area that was bound to
/// it (`registry.profiles()`, `profile.owner`). An app that remembers who was signed in stores
/// ``bytes`` and compares them. A display name, an e-mail address or a token never makes one.
/// (Contract section 2.)
public struct VerifiedAccount: Sendable {
  /// The hub's stable ID.
  public let hub: UUID
  /// The stable account ID at that hub.
  public let id: AccountID
  /// What the hub has confirmed for this value.
  package let proof: Proof

  /// What stands behind a verified account.
  package enum Proof: Sendable {
    /// Read back from an area that is bound to it: enough to open that area, not to write an owner.
    case area
    /// The hub answered `/v1/session` to our nonce, and accepted a client registration that
    /// asserted the account: enough to write an owner.
    case hub(ClientTicket)
  }

  /// The stored form: 16 bytes of hub ID, then the account ID's bytes. Two accounts are equal
  /// exactly if these bytes are.
  public let bytes: Data

  package init(hub: UUID, id: AccountID, proof: Proof) {
    self.hub = hub
    self.id = id
    self.proof = proof
    // Made once: every check compares them.
    bytes = Data(withUnsafeBytes(of: hub.uuid) { Array($0) } + id.bytes)
  }

  package init?(storedBytes: Data, proof: Proof) {
    guard storedBytes.count > 16 else { return nil }
    let stored = Array(storedBytes)
    do {
      self.init(
        hub: NSUUID(uuidBytes: stored) as UUID, id: try AccountID(bytes: stored[16...]),
        proof: proof)
    } catch {
      return nil
    }
  }

  /// The client ID that the hub accepted for this account, unless an area has taken it already.
  var clientTicket: ClientTicket? {
    if case .hub(let ticket) = proof { ticket } else { nil }
  }
}

extension VerifiedAccount: Hashable {
  /// Whether hub and ID are the same bytes; how they were verified does not count.
  public static func == (left: VerifiedAccount, right: VerifiedAccount) -> Bool {
    left.hub == right.hub && left.id == right.id
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(hub)
    hasher.combine(id)
  }
}

/// One accepted client registration; the first area that needs a client ID takes it.
package final class ClientTicket: Sendable {
  private let client: Mutex<UUID?>

  package init(client: UUID) {
    self.client = Mutex(client)
  }

  /// The registered client ID, once; later callers make one of their own and register it.
  func take() -> UUID? {
    client.withLock { client in
      defer { client = nil }
      return client
    }
  }

  /// Takes back what ``take()`` gave: the area that wanted it was not written.
  func giveBack(_ unused: UUID?) {
    client.withLock { client in client = client ?? unused }
  }
}
