public import Foundation

/// The body of `PUT /v1/clients/{client}`.
public struct ClientRegistration: Hashable, Sendable {
  /// What a person calls the device: 0 to 256 bytes of UTF-8. A later one replaces it.
  public var name: String

  /// Takes a name; its length is checked where it is read.
  public init(name: String) { self.name = name }
}

/// The answer to `PUT /v1/clients/{client}`.
public struct ClientAnswer: Hashable, Sendable {
  /// The hub's ID.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The account that the client is bound to.
  public var account: AccountID
  /// The client's UUID, one per area.
  public var client: UUID
  /// The name that the hub keeps now, 0 to 256 bytes of UTF-8.
  public var name: String

  /// Takes every member; nothing is checked.
  public init(hub: UUID, epoch: UUID, account: AccountID, client: UUID, name: String) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.client = client
    self.name = name
  }
}
