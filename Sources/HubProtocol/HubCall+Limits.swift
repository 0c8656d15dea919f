// How long a call may take and how large its answer may be. A limit that is too tight makes a
// slow line fail for ever, so time is bounded by standstill first and in total only generously.

extension HubCall {
  /// The most bytes that any answer may have, whatever a hub announces: 256 MiB.
  public static let answerByteCountMax = 256 << 20

  /// The longest an answer that carries no record takes: an account's lineage, or a problem.
  static let smallAnswerByteCountMax = 1 << 20

  /// A record or verdict beside its payload and ID, in either form: names, UUIDs, integers, a
  /// sentence.
  private static let elementByteCountMax = 1024

  /// The whole exchange: a page or a push of many MiB over a slow line.
  private static let bulkTimeout: Duration = .seconds(600)
  /// The whole exchange of a call whose bodies are small.
  private static let smallTimeout: Duration = .seconds(30)
  /// A stream of events: it ends with its token, and is asked for again now and then.
  private static let streamTimeout: Duration = .seconds(86_400)
  /// Without a byte of a stream: three of the comments that come every 15 seconds.
  private static let streamStandstillMax: Duration = .seconds(45)
  /// Without a byte in either direction.
  private static let standstillMax: Duration = .seconds(30)

  var timeout: Duration {
    switch self {
    case .session, .registerClient: HubCall.smallTimeout
    case .changes, .record, .push: HubCall.bulkTimeout
    case .events: HubCall.streamTimeout
    }
  }

  var stallLimit: Duration {
    switch self {
    case .session, .registerClient, .record, .push: HubCall.standstillMax
    // During a long poll nothing moves, as asked.
    case .changes(let query): HubCall.standstillMax + .seconds(query.sentWaitSeconds)
    case .events: HubCall.streamStandstillMax
    }
  }

  var mayWait: Bool {
    switch self {
    case .session, .registerClient, .record, .push: false
    case .changes(let query): query.sentWaitSeconds > 0 && query.until == nil
    case .events: true
    }
  }

  func answerByteCountMax(format: WireFormat, limits: HubLimits) -> Int {
    let payloadBytes = min(max(limits.payloadBytes, 0), WireLimits.payloadByteCountMax)
    let pullBytes = min(max(limits.pullBytes, 0), HubCall.answerByteCountMax)
    let recordBytes = payloadBytes + RecordID.byteCountMax
    switch self {
    case .session, .registerClient, .events:
      return HubCall.smallAnswerByteCountMax
    case .record:
      return encodedByteCountMax(contentBytes: recordBytes, elementCount: 1, format: format)
    case .changes(let query):
      // A page ends at `pullBytes`, but for one larger record alone.
      return encodedByteCountMax(
        contentBytes: max(pullBytes, recordBytes), elementCount: query.sentLimit, format: format)
    case .push(let push):
      return answerByteCountMax(toPushOf: push.mutations.count, format: format, limits: limits)
    }
  }

  func answerByteCountMax(
    toPushOf mutationCount: Int, format: WireFormat, limits: HubLimits
  ) -> Int {
    let payloadBytes = min(max(limits.payloadBytes, 0), WireLimits.payloadByteCountMax)
    let pullBytes = min(max(limits.pullBytes, 0), HubCall.answerByteCountMax)
    // The last payload that fits may begin just below `pullBytes`.
    return encodedByteCountMax(
      contentBytes: pullBytes + payloadBytes + RecordID.byteCountMax, elementCount: mutationCount,
      format: format)
  }

  /// - Parameter contentBytes: Payload bytes, and those of IDs where the hub counts them.
  private func encodedByteCountMax(
    contentBytes: Int, elementCount: Int, format: WireFormat
  ) -> Int {
    // JSON: base64 makes 4 of 3 bytes, and a control character of an ID takes 6 (`\u0000`).
    let (content, id) =
      switch format {
      case .json: (contentBytes / 3 * 4 + 4, RecordID.byteCountMax * 6)
      case .cbor: (contentBytes, RecordID.byteCountMax)
      }
    let elements = elementCount * (HubCall.elementByteCountMax + id)
    return min(HubCall.smallAnswerByteCountMax + content + elements, HubCall.answerByteCountMax)
  }
}
