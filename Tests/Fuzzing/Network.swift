import Foundation
import HubClient
import HubProtocol
import HubRules
import HubServer
import ProfileSync

/// An event stream, whole and in pieces, and the events in it.
struct Events: FuzzedDecoder {
  static let name = "events"

  var seeds: [[UInt8]] {
    [
      ": ping\n\nevent: change\ndata: {\"highWater\":7}\n\nevent: bye\ndata: {\"code\":\"shutdown\"}\n\n",
      "\u{FEFF}id: 1\r\nretry: 5\r\ndata: a\r\ndata\r\rdata: b\n\n",
    ].map { Array($0.utf8) }
  }

  func take(_ bytes: [UInt8]) {
    // The first byte says into which pieces.
    guard let first = bytes.first else { return }
    let rest = bytes.dropFirst()
    var whole = EventStreamParser()
    let events = whole.take(rest)
    var parser = EventStreamParser()
    var pieces: [ServerSentEvent] = []
    var place = rest.startIndex
    while place < rest.endIndex {
      let end = min(rest.endIndex, place + Int(first % 17) + 1)
      pieces += parser.take(rest[place..<end])
      place = end
    }
    promise(events == pieces, "other events in pieces")
    promise(whole.isTooLarge == parser.isTooLarge, "another end in pieces")
    for event in events {
      do { _ = try HubEvent(name: event.name, data: event.data) } catch {
        // Refused, with the only error that it has.
      }
    }
  }
}

/// The head of a request, as a hub takes it: target, then fields, a line each.
struct Requests: FuzzedDecoder {
  static let name = "requests"

  var seeds: [[UInt8]] {
    [
      "/v1/changes?after=0&limit=500&epoch=00000000-0000-4000-8000-000000000002&until=9\n"
        + "Accept: application/cbor;q=0.5, application/json\nHoldfast-Account: a%2Fb\n"
        + "Content-Type: application/cbor\nHoldfast-Fault: verdicts=conflict,rejected; delay=1",
      "/v1/records/a%00%C3%A9\nAuthorization: Bearer a.b.c\nContent-Length: 12",
    ].map { Array($0.utf8) }
  }

  func take(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let fields = lines.dropFirst().map { line in
      let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
      return RequestHead.Field(
        String(decoding: parts.first ?? [], as: UTF8.self), Array(parts.dropFirst().first ?? []))
    }
    let head = RequestHead(
      method: "GET", target: Array(lines.first ?? []), fields: Array(fields),
      byteCount: bytes.count)
    _ = HTTPForm.refusal(of: head)
    _ = (head.path, head.announcesBody, head.declaredBodyByteCount)
    _ = WireFormat.preferred(accept: head.text(of: "Accept"))
    _ = head.text(of: "Content-Type").flatMap { WireFormat(contentType: $0) }
    let known: Set = ["after", "limit", "epoch", "until", "nonce", "wait"]
    if let query = try? QueryParameters(head.query, known: known) {
      _ = try? query.uuid("epoch")
      _ = try? query.sequence("after", .badRequest)
      _ = try? query.count("limit", 1...500)
    }
    _ = try? FaultPlan(header: head.text(of: HubHeader.fault))
    for field in fields {
      let text = String(decoding: field.value, as: UTF8.self)
      guard let decoded = PercentEncoding.decode(text) else { continue }
      promise(
        PercentEncoding.decode(PercentEncoding.encode(bytes: decoded)) == decoded,
        "percent encoding is not read as written")
    }
  }
}

/// An answer, as a device judges it: status, then fields, then an empty line and the body.
struct Answers: FuzzedDecoder {
  static let name = "answers"
  private let hub = UUID(uuid: (1, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1))

  var seeds: [[UInt8]] {
    [
      "429\nHoldfast-Hub: 01000000-0000-4000-8000-000000000001\nHoldfast-Account: anna\n"
        + "Retry-After: 7\nContent-Type: application/problem+json\n\n"
        + #"{"title":"a","status":429,"detail":"b","code":"rate_limited"}"#,
      "200\nHoldfast-Hub: 01000000-0000-4000-8000-000000000001\nHoldfast-Account: anna\n\n{}",
    ].map { Array($0.utf8) }
  }

  func take(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let head = lines.prefix { !$0.isEmpty }
    let status = head.first.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 200
    let fields = head.dropFirst().map { line in
      let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
      let value = String(decoding: parts.dropFirst().first ?? [], as: UTF8.self)
      return HeaderField(
        String(decoding: parts.first ?? [], as: UTF8.self), String(value.drop { $0 == " " }))
    }
    let body = Data(lines.dropFirst(head.count + 1).joined(separator: [UInt8(ascii: "\n")]))
    let response = HubResponse(status: status, headers: fields, body: body)
    for call in Expectation.Call.allCases {
      let account = try? AccountID("anna")
      let action = AnswerJudge.action(
        for: response, expecting: Expectation(hub: hub, account: account, call: call))
      guard case .use = action else { continue }
      // What is used names this hub and this account.
      promise(
        AnswerJudge.header(HubHeader.hub, of: response).flatMap { UUID(uuidString: $0) } == hub
          && AnswerJudge.namedAccount(of: response) == account,
        "an answer of somebody else would be used")
    }
  }
}

/// A bearer token, and the claims of one whose signature is right.
struct Tokens: FuzzedDecoder {
  static let name = "tokens"
  private let verifier: TokenVerifier
  private let issuer: TokenIssuer

  init() throws {
    let key = try SigningKey.generate(.hs256)
    verifier = TokenVerifier(issuer: "holdfast", audience: "holdfast", keys: [key])
    issuer = try TokenIssuer(issuer: "holdfast", audience: "holdfast", key: key)
  }

  var seeds: [[UInt8]] {
    [
      #"1{"iss":"holdfast","aud":["a","holdfast"],"sub":"anna","nbf":1.5e3,"exp":1900000000}"#,
      "0eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.AAAA",
    ].map { Array($0.utf8) }
  }

  func take(_ bytes: [UInt8]) {
    let rest = Array(bytes.dropFirst())
    guard bytes.first == UInt8(ascii: "1") else {
      promise((try? verifier.verify(rest, now: 1_800_000_000)) == nil, "a token out of nothing")
      return
    }
    guard let token = try? issuer.sign(claims: Data(rest)) else { return }
    _ = try? verifier.verify(Array(token.utf8), now: 1_800_000_000)
  }
}
