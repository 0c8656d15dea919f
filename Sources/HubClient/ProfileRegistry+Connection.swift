public import Foundation
public import ProfileStore
import ProfileSync

extension ProfileRegistry {
  /// Opens the store in a directory, with a connection to its hub.
  /// - Parameter hub: the hub's base URL, `https` or `http`; nothing is sent yet.
  /// - Throws: as ``init(directory:session:configuration:)``; `TransportError` (`invalidURL`).
  public convenience init(
    directory: URL, session: any AccountSession, hub: URL,
    configuration: Configuration = Configuration()
  ) throws {
    let connection = try HubConnection(url: hub)
    try self.init(directory: directory, session: session, configuration: configuration)
    connect(to: connection)
  }
}
