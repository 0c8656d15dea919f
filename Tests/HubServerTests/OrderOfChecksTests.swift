import Foundation
import HubProtocol
import HubServer
import Testing

/// A push in which everything is wrong at first; each step puts one thing right.
private struct FaultyPush {
  var authorizations = 2
  var path = "/v1/nothing"
  var method = "GET"
  var token = "junk"
  var assertion: String? = nil
  var contentType = "text/plain"
  var client = UUID()
  var epoch = UUID()
  var cursor: UInt64 = 99
  var body: Data? = nil
  var padding = 10_000

  func send(to hub: TestedHub) async throws -> RawAnswer {
    var bytes = Data("\(method) \(path) HTTP/1.1\r\nHost: h\r\n".utf8)
    for _ in 0..<authorizations {
      bytes.append(Data("Authorization: Bearer \(token)\r\n".utf8))
    }
    if let assertion { bytes.append(Data("Holdfast-Account: \(assertion)\r\n".utf8)) }
    var content =
      body
      ?? PushRequest(client: client, epoch: epoch, cursor: cursor, mutations: [])
      .encoded(as: .json)
    content.append(Data(repeating: UInt8(ascii: " "), count: padding))
    let head = "Content-Type: \(contentType)\r\nContent-Length: \(content.count)\r\n\r\n"
    bytes.append(Data(head.utf8))
    bytes.append(content)
    return try await hub.exchange(bytes)
  }
}

@Suite("The order of checks")
struct OrderOfChecksTests {
  @Test("is that of the protocol: the first that fails answers")
  func push() async throws {
    try await withHub { configuration in
      configuration.limits.payloadBytes = 16
      configuration.limits.pushBytes = 8_000
    } _: { hub in
      let alice = try TestClient(hub, "alice")
      let bob = try TestClient(hub, "bob")
      try await bob.register()
      let epoch = try await alice.session().epoch
      try await alice.register()
      _ = try await alice.push([.delete("gone")], epoch: epoch)

      var push = FaultyPush()
      func expect(_ status: Int, _ code: HubCode?, _ place: SourceLocation = #_sourceLocation)
        async throws
      {
        let answer = try await push.send(to: hub)
        #expect(answer.status == status, sourceLocation: place)
        #expect(answer.code == code?.rawValue, sourceLocation: place)
        #expect(answer.header("Holdfast-Hub") == hub.hubID.wireText, sourceLocation: place)
      }
      try await expect(400, .badRequest)
      push.authorizations = 1
      try await expect(404, .notFound)
      push.path = "/v1/mutations"
      try await expect(405, .methodNotAllowed)
      push.method = "POST"
      try await expect(401, .tokenInvalid)
      push.token = try hub.token(for: alice.account, lifetimeSeconds: -1)
      try await expect(401, .tokenExpired)
      push.token = alice.token
      try await expect(400, .accountMissing)
      push.assertion = "%zz"
      try await expect(400, .badRequest)
      push.assertion = "bob"
      try await expect(403, .accountMismatch)
      push.assertion = "alice"
      try await hub.disable(alice.account)
      try await expect(403, .accountDisabled)
      try await hub.enable(alice.account)
      try await expect(415, .unsupportedMediaType)
      push.contentType = "application/json"
      try await expect(413, .tooLarge)
      push.padding = 0
      push.body = Data("{}".utf8)
      try await expect(400, .badRequest)
      push.body = nil
      try await expect(404, .clientUnknown)
      push.client = bob.client
      try await expect(403, .clientBoundElsewhere)
      push.client = alice.client
      try await expect(409, .epochChanged)
      push.epoch = epoch
      try await expect(409, .epochChanged)
      push.epoch = try await alice.session().epoch
      #expect(push.epoch != epoch)
      _ = try await alice.push([.delete("gone")], epoch: push.epoch)
      try await hub.purgeTombstones(of: alice.account)
      push.cursor = 1
      try await expect(410, .cursorExpired)
      push.cursor = 2
      try await expect(200, nil)
      try await hub.erase(alice.account)
      push.contentType = "text/plain"
      try await expect(410, .accountErased)
    }
  }

  @Test("puts erased behind token and assertion, and before everything else of the account")
  func erased() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      _ = try await alice.session()
      try await hub.erase(alice.account)
      let targets = ["/v1/session", "/v1/changes?after=x", "/v1/records"]
      for target in targets {
        let answer = try await alice.send("GET", target)
        #expect(answer.code == "account_erased")
        #expect(answer.header("Holdfast-Account") == "alice")
        #expect(answer.header("Holdfast-Epoch") == nil)
      }
      let missing = try await alice.send("GET", "/v1/records", ["Holdfast-Account": nil])
      #expect(missing.code == "account_missing")
      let noToken = try await alice.send("GET", "/v1/records", ["Authorization": nil])
      #expect(noToken.code == "token_invalid")
    }
  }

  @Test("refuses a body that is too large without reading it")
  func unreadBody() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      // Not a byte of the body is sent, and the answer comes all the same.
      let answer = try await alice.send(
        "POST", "/v1/mutations",
        ["Content-Type": "application/json", "Content-Length": String(9 << 20)])
      #expect(answer.status == 413)
      #expect(answer.header("Connection") == "close")
      let foreign = try await alice.send(
        "POST", "/v1/mutations", ["Content-Length": String(9 << 20), "Authorization": nil])
      #expect(foreign.status == 401)
    }
  }
}

@Suite("Every answer")
struct EveryAnswerTests {
  @Test("has the headers that the protocol promises, errors too")
  func headers() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub, "al/ice é")
      let epoch = try await alice.session().epoch
      let answers = [
        try await alice.send("GET", "/healthz"), try await alice.send("GET", "/none"),
        try await alice.send("GET", "/v1/records?id=a"),
        try await alice.send("GET", "/v1/records"),
        try await alice.send("GET", "/v1/records?id=a", ["Authorization": nil]),
        try await alice.send("GET", "/v1/records?id=a", ["Holdfast-Account": "bob"]),
        try await alice.send("PATCH", "/v1/records"),
      ]
      for answer in answers {
        #expect(answer.header("Holdfast-Hub") == hub.hubID.wireText)
        #expect(answer.header("Cache-Control") == "private, no-store")
        #expect(answer.header("Vary") == "Authorization")
        #expect(answer.header("WWW-Authenticate") == (answer.status == 401 ? "Bearer" : nil))
        #expect(answer.header("Allow") == (answer.status == 405 ? "GET, HEAD" : nil))
        let isProblem = answer.status != 200
        #expect((answer.header("Content-Type") == "application/problem+json") == isProblem)
      }
      let account = PercentEncoding.encode(bytes: alice.account.bytes)
      #expect(
        answers.map { $0.header("Holdfast-Account") }
          == [nil, nil, account, account, nil, account, nil])
      #expect(
        answers.map { $0.header("Holdfast-Epoch") }
          == [nil, nil, epoch.wireText, epoch.wireText, nil, nil, nil])
      #expect(answers.map(\.status) == [200, 404, 200, 400, 401, 403, 405])
    }
  }

  @Test("to HEAD is that to GET without its body; refusals keep the connection, too")
  func head() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let get = try await alice.send("GET", "/v1/records?id=a")
      let head = try await alice.send("HEAD", "/v1/records?id=a")
      #expect(head.status == 200)
      #expect(head.header("Content-Length") == String(get.body.count))
      let port = hub.url.port ?? 0
      let statuses = try await blocking {
        let connection = try RawConnection(port: port)
        return try ["/healthz", "/none", "/v1/session", "/readyz"].map { path in
          connection.send(Data("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
          return try connection.receive().status
        }
      }
      #expect(statuses == [200, 404, 401, 200])
    }
  }

  @Test("is a 405 with Allow for a method that nobody knows")
  func methods() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      for (path, allowed) in [
        "/v1/session": "GET, HEAD", "/v1/mutations": "POST", "/v1/clients/x": "PUT",
        "/healthz": "GET, HEAD",
      ] {
        for method in ["TRACE", "OPTIONS", "DELETE", "BREW"] {
          let answer = try await alice.send(method, path)
          #expect(answer.code == "method_not_allowed")
          #expect(answer.header("Allow") == allowed)
        }
      }
    }
  }

  @Test("of the open endpoints needs no token and says how the hub is")
  func open() async throws {
    try await withHub { hub in
      for path in ["/healthz", "/readyz"] {
        let answer = try await hub.exchange(
          Data("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        #expect(answer.status == 200)
      }
    }
  }

  @Test("looks at the sizes of mutations once all of them are well-formed")
  func sizeOfParts() async throws {
    try await withHub {
      $0.limits.payloadBytes = 16
    } _: { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      let large = String(repeating: "x", count: 17)
      let text = String(
        decoding: PushRequest(
          client: alice.client, epoch: epoch, cursor: 0,
          mutations: [.put("a"), .put("b", large), .delete("c")]
        ).encoded(as: .json), as: UTF8.self)
      func answer(_ text: String) async throws -> HubProblem {
        let answer = try await alice.send(
          "POST", "/v1/mutations", ["Content-Type": "application/json"], body: Data(text.utf8))
        return try HubProblem(decoding: answer.body)
      }
      let wellFormed = try await answer(text)
      #expect(wellFormed.code == "too_large" && wellFormed.index == 1)
      let malformed = try await answer(text.replacing(#""delete""#, with: #""zz""#))
      #expect(malformed.code == "bad_mutation" && malformed.index == 2)
    }
  }
}

@Suite("A request that two servers could read differently")
struct AmbiguousRequestTests {
  private static let requests = [
    "GET /healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost : h\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nX-A : 1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: 1\u{0}2\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\u{0}\r\n\r\n",
    "GET /healthz\u{0}x HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET\u{0} /healthz HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET  /healthz HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /health z HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n 2\r\n\r\n",
    "GET /healthz HTTP/1.1\nHost: h\n\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: 1\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: 1\r2\r\n\r\n",
    "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked"
      + "\r\n\r\n0\r\n\r\n",
    "POST /healthz HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 1 1\r\n\r\n",
  ]

  @Test("is a 400, and the connection ends", arguments: requests)
  func refused(request: String) async throws {
    try await withHub { hub in
      let port = hub.url.port ?? 0
      let (status, isEnded) = try await blocking {
        let connection = try RawConnection(port: port)
        connection.send(Data(request.utf8))
        return (try connection.receive().status, connection.isEnded())
      }
      #expect(status == 400)
      #expect(isEnded)
    }
  }

  @Test(
    "by white space around a chunk size is a 400, and the connection ends",
    arguments: [" 2\r\n{}\r\n0\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n", "2\t\r\n{}\r\n0\r\n\r\n"])
  func chunks(body: String) async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let answer = try await alice.send(
        "POST", "/v1/mutations",
        ["Content-Type": "application/json", "Transfer-Encoding": "chunked"],
        body: nil, raw: Data(body.utf8))
      #expect(answer.status == 400)
    }
  }

  @Test("is none when it is chunked in the right way")
  func chunked() async throws {
    try await withHub { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      let push = PushRequest(client: alice.client, epoch: epoch, cursor: 0, mutations: [])
        .encoded(as: .json)
      var body = Data()
      for start in stride(from: 0, to: push.count, by: 7) {
        let piece = push[start..<min(start + 7, push.count)]
        body.append(Data("\(String(piece.count, radix: 16))\r\n".utf8))
        body.append(piece)
        body.append(Data("\r\n".utf8))
      }
      body.append(Data("0\r\n\r\n".utf8))
      let headers = ["Content-Type": "application/json", "Transfer-Encoding": "chunked"]
      let answer = try await alice.send(
        "POST", "/v1/mutations", headers, body: nil, raw: body)
      #expect(answer.status == 200)
    }
  }

  @Test("chunked beyond the limit is a 413")
  func chunkedTooLarge() async throws {
    try await withHub { configuration in
      configuration.limits.payloadBytes = 0
      configuration.limits.pushBytes = 5_000
    } _: { hub in
      let alice = try TestClient(hub)
      var body = Data("1770\r\n".utf8)
      body.append(Data(repeating: UInt8(ascii: " "), count: 6_000))
      body.append(Data("\r\n0\r\n\r\n".utf8))
      let headers = ["Content-Type": "application/json", "Transfer-Encoding": "chunked"]
      let answer = try await alice.send(
        "POST", "/v1/mutations", headers, body: nil, raw: body)
      #expect(answer.code == "too_large")
    }
  }

  @Test("is none at the limits of head and target, and 414 and 431 beyond them")
  func limits() async throws {
    try await withHub { hub in
      func answer(target: Int, head: Int) async throws -> RawAnswer {
        var text = "GET /" + String(repeating: "a", count: target - 1) + " HTTP/1.1\r\nHost: h\r\n"
        let filler = head - text.utf8.count - 8
        if filler > 0 { text += "X: " + String(repeating: "b", count: filler) + "\r\n" }
        text += "\r\n"
        return try await hub.exchange(Data(text.utf8))
      }
      let atLimits = try await answer(target: 16_384, head: 65_536 - 0)
      #expect(atLimits.status == 404)
      let longTarget = try await answer(target: 16_385, head: 0)
      #expect(longTarget.code == "uri_too_long")
      let longHead = try await answer(target: 10, head: 65_600)
      #expect(longHead.code == "headers_too_large")
      #expect(longHead.header("Holdfast-Hub") == hub.hubID.wireText)
      // Beyond what a connection's memory holds, libmicrohttpd answers by itself.
      let hugeHead = try await answer(target: 10, head: 400_000)
      #expect(hugeHead.status == 431)
    }
  }
}
