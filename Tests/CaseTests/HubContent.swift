import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

extension TestHub {
  /// What the hub itself has of an account, in the order of the versions: asked past every device.
  func records(of name: String) async throws -> [WireRecord] {
    let (token, account) = (try token(for: name), try AccountID(name))
    let session = try await ask(
      .session(nonce: UUID()), SessionAnswer.self, token: token, account: account)
    var found: [WireRecord] = []
    var after: UInt64 = 0
    while true {
      // A scan from zero, which needs no tombstone.
      let query = ChangesQuery(
        after: after, epoch: session.epoch, limit: 500, until: session.highWater)
      let page = try await ask(.changes(query), ChangesPage.self, token: token, account: account)
      found += page.records
      after = page.next
      if !page.more { return found }
    }
  }

  /// The last sequence that the hub has given: how many mutations it has applied.
  func highWater(of name: String) async throws -> UInt64 {
    try await ask(
      .session(nonce: UUID()), SessionAnswer.self, token: try token(for: name),
      account: try AccountID(name)
    ).highWater
  }

  /// What it has as text by ID; what is deleted is left out.
  func texts(of name: String) async throws -> [RecordID: String] {
    Dictionary(
      uniqueKeysWithValues: try await records(of: name).compactMap { record in
        record.payload.map { (record.id, String(decoding: $0, as: UTF8.self)) }
      })
  }

  private func ask<Message: HubMessage>(
    _ call: HubCall, _ type: Message.Type, token: String, account: AccountID
  ) async throws -> Message {
    let response = try await connection.send(
      call.request(token: token, account: account, format: .cbor))
    try #require(response.status == 200)
    return try Message(decoding: response.body, as: .cbor)
  }
}

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

/// How many files below a directory have these bytes in them.
func files(under directory: String, with bytes: String) throws -> Int {
  try contents(of: directory).values.count { $0.range(of: Data(bytes.utf8)) != nil }
}

/// The files below a directory by their path, without those that only lock.
func contents(of directory: String) throws -> [String: Data] {
  var found: [String: Data] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
    let path = directory + "/" + name
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
      !isDirectory.boolValue, !name.hasSuffix("lock.mdb"), !name.hasSuffix(".lock")
    else { continue }
    found[name] = try Data(contentsOf: URL(filePath: path))
  }
  return found
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
