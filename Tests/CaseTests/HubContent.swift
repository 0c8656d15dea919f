import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

extension Device {
  /// Lets a person who was here before sign in again: only the session changes.
  func switchTo(_ person: Person) throws {
    session.signIn(person.account, token: try hub.token(for: person.account.id.text))
  }
}

extension Person {
  /// A pass of an app that keeps its records in the area.
  @discardableResult
  func sync() async throws -> SyncReport {
    try await profile.synchronize(account: account)
  }

  /// The mutations of the pushes that went over the device's wire, request by request.
  func pushes() throws -> [[WireMutation]] {
    try device.wire.requests.compactMap { try $0.push?.mutations }
  }
}

/// A token that is like no other: one that is the same as before would not be tried again.
func freshToken(for account: String) throws -> String {
  let now = Int(Date().timeIntervalSince1970)
  return try sign(
    #"{"iss":"holdfast","aud":"holdfast","sub":"\#(account)","iat":\#(now),"exp":\#(now + 600),"#
      + #""jti":"\#(UUID().uuidString)"}"#)
}

/// A token with any claims.
func sign(_ claims: String) throws -> String {
  try TokenIssuer(issuer: "holdfast", audience: "holdfast", key: testKey)
    .sign(claims: Data(claims.utf8))
}

/// Makes areas with a record each that waits to be sent, and lets go of them.
func makeAreas(
  of names: [String], at directory: URL, _ hub: TestHub
) async throws -> [(id: AreaID, path: String)] {
  let session = AppSession()
  session.signOut()
  let registry = try ProfileRegistry(directory: directory, session: session)
  registry.connect(to: hub.connection)
  var areas: [(AreaID, String)] = []
  for name in names {
    let token = try hub.token(for: name)
    let account = try await registry.verify(token: token)
    session.signIn(account, token: token)
    let profile = try await registry.profile(for: account)
    try await profile.enqueue(.put("mine", Data("of \(name)".utf8)), account: account)
    areas.append((profile.id, profile.area.directory))
  }
  return areas
}

/// Puts records as a signed-out person, and lets go of the area.
func makeGuest(
  _ records: [RecordID], at directory: URL
) async throws {
  let session = AppSession()
  session.signOut()
  let registry = try ProfileRegistry(directory: directory, session: session)
  let profile = try await registry.unownedProfile()
  for record in records {
    try await profile.enqueue(.put(record, Data("guest's".utf8)), account: nil)
  }
}
