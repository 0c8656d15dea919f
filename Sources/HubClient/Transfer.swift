import CCurl
import Foundation
import HubProtocol
import ProfileSync

/// One exchange under way: its libcurl handle and what has come in; it lives on the loop's thread.
final class Transfer {
  let submission: Submission
  /// Valid until ``free()``.
  let easy: UnsafeMutableRawPointer
  private var collector: AnswerCollector
  private var headerList: UnsafeMutablePointer<curl_slist>?
  private var lastMoved = ContinuousClock.now
  private var lastByteCount = 0
  /// Set once the head of a stream of events has come: the body is taken apart as it comes.
  private var parser: EventStreamParser?
  /// Why a stream cannot go on.
  private var streamFailure: TransportError?
  private var streamByteCount = 0

  /// - Returns: Nil if there is no memory for a handle.
  init?(_ submission: Submission) {
    guard let easy = curl_easy_init() else { return nil }
    self.easy = easy
    self.submission = submission
    collector = AnswerCollector(bodyByteCountMax: submission.exchange.answerByteCountMax)
  }

  /// Frees the handle; it is in no multi handle any more, or never was.
  func free() {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headerList)
    headerList = nil
  }

  /// Tells libcurl what to do.
  /// - Returns: An error if it refused something.
  func configure() -> TransportError? {
    let exchange = submission.exchange
    let settings = EasySettings(easy)
    settings.applyFixed(scheme: exchange.scheme)
    settings.apply(exchange)
    for line in exchange.headerLines {
      guard let list = curl_slist_append(headerList, line) else {
        return TransportError(curlCode: CURLE_OUT_OF_MEMORY.rawValue, exchange: exchange.name)
      }
      headerList = list
    }
    settings.set(CURLOPT_HTTPHEADER, list: headerList)
    // SAFETY: libcurl calls back only while the handle is in the multi handle; the driver keeps
    // this object until it has taken the handle out.
    let context = Unmanaged.passUnretained(self).toOpaque()
    settings.set(CURLOPT_WRITEFUNCTION, callback: bodyCame)
    settings.set(CURLOPT_WRITEDATA, pointer: context)
    settings.set(CURLOPT_HEADERFUNCTION, callback: headerLineCame)
    settings.set(CURLOPT_HEADERDATA, pointer: context)
    guard settings.result == CURLE_OK else {
      return TransportError(curlCode: settings.result.rawValue, exchange: exchange.name)
    }
    return nil
  }

  /// How long until nothing will have moved for the exchange's limit.
  func timeUntilStalled(now: ContinuousClock.Instant) -> Duration {
    var uploaded: curl_off_t = 0
    _ = holdfast_curl_get_offset(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded)
    let byteCount = Int(uploaded) + collector.receivedByteCount + streamByteCount
    if byteCount != lastByteCount {
      lastByteCount = byteCount
      lastMoved = now
    }
    return submission.exchange.stallLimit - lastMoved.duration(to: now)
  }

  /// What came of it, once libcurl says that it is over.
  func outcome(_ code: CURLcode) -> Result<HubResponse, TransportError> {
    let exchange = submission.exchange
    if let streamFailure { return .failure(streamFailure) }
    if collector.isTooLarge || code == CURLE_FILESIZE_EXCEEDED {
      return .failure(
        .answerTooLarge(exchange: exchange.name, byteCountMax: exchange.answerByteCountMax))
    }
    guard code == CURLE_OK else {
      return .failure(TransportError(curlCode: code.rawValue, exchange: exchange.name))
    }
    guard collector.hasWholeHead else {
      return .failure(
        TransportError(curlCode: CURLE_PARTIAL_FILE.rawValue, exchange: exchange.name))
    }
    var status = 0
    let statusResult = holdfast_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    guard statusResult == CURLE_OK, status >= 100 else {
      return .failure(
        TransportError(curlCode: CURLE_WEIRD_SERVER_REPLY.rawValue, exchange: exchange.name))
    }
    return .success(
      HubResponse(status: status, headers: collector.headers, body: collector.body))
  }

  /// Takes one line of a head.
  /// - Returns: False if the exchange must end.
  fileprivate func takeHeaderLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard collector.takeHeaderLine(bytes) else { return false }
    if case .events(let receiver) = submission.taker, parser == nil, collector.hasWholeHead {
      openStream(receiver)
    }
    return true
  }

  /// Takes a part of the body.
  /// - Returns: False if the exchange must end.
  fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard case .events(let receiver) = submission.taker, parser != nil else {
      return collector.takeBody(bytes)
    }
    streamByteCount += bytes.count
    for event in parser?.take(bytes) ?? [] {
      do throws(WireError) {
        if let event = try HubEvent(name: event.name, data: event.data) { receiver.add(event) }
      } catch {
        streamFailure = TransportError(
          code: .other,
          description: "\(submission.exchange.name): an event cannot be read: \(error.description)")
        return false
      }
    }
    guard let parser, !parser.isTooLarge else {
      streamFailure = .answerTooLarge(
        exchange: submission.exchange.name, byteCountMax: EventStreamParser.eventByteCountMax)
      return false
    }
    return true
  }

  /// Anything but a stream is kept as a whole, like the answer to any other request.
  private func openStream(_ receiver: EventReceiver) {
    let head = HubResponse(status: 200, headers: collector.headers, body: Data())
    let types = head.values(of: HubHeader.contentType)
    let type = types.first?.prefix { $0 != ";" && $0 != " " }.lowercased()
    var status = 0
    guard types.count == 1, type == HubCall.eventContentType,
      holdfast_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK, status == 200
    else { return }
    parser = EventStreamParser()
    receiver.open(head)
  }
}

/// Corresponds to `CURLOPT_WRITEFUNCTION`: another count than it was given ends the exchange.
private func bodyCame(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  take(bytes, size * count, context) { $0.takeBody($1) }
}

/// Corresponds to `CURLOPT_HEADERFUNCTION`: one whole line at a time.
private func headerLineCame(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  take(bytes, size * count, context) { $0.takeHeaderLine($1) }
}

private func take(
  _ bytes: UnsafeMutablePointer<CChar>?, _ byteCount: Int, _ context: UnsafeMutableRawPointer?,
  _ body: (Transfer, UnsafeRawBufferPointer) -> Bool
) -> Int {
  guard let context else { return 0 }
  // SAFETY: the pointer is the one that `configure` gave, of an object that the driver keeps.
  let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  // SAFETY: libcurl lends so many bytes for the time of the call; they are copied.
  let buffer = UnsafeRawBufferPointer(start: bytes, count: byteCount)
  if body(transfer, buffer) { return byteCount }
  // Any other number ends the exchange; no callback is ever given -1 bytes.
  return byteCount == 0 ? 1 : 0
}
