package import HubProtocol
package import ProfileStore

/// A page of the hub that was checked, packed once: it is staged, handed over and committed as it is.
package struct PulledPage: Sendable {
  /// The sequence to ask after next.
  package var next: UInt64
  /// There is more in what was asked for.
  package var more: Bool
  package var highWater: UInt64
  /// Its records; in several parts where they have more bytes than one batch may have.
  package var parts: [ChangePage]
  /// Payload and ID bytes.
  package var contentByteCount: Int

  /// - Parameter byteCountMax: payload and ID bytes in a part; a single larger record comes alone.
  package init(_ outline: ChangesOutline, byteCountMax: Int = SyncLimits.batchByteCountMax) {
    next = outline.next
    more = outline.more
    highWater = outline.highWater
    parts = []
    contentByteCount = 0
    var start = 0
    while start < outline.records.count {
      var end = start
      var idByteCount = 0
      var payloadByteCount = 0
      while end < outline.records.count {
        let record = outline.records[end]
        let byteCount = record.id.count + record.payload.count
        if end > start, idByteCount + payloadByteCount + byteCount > byteCountMax { break }
        idByteCount += record.id.count
        payloadByteCount += record.payload.count
        end += 1
      }
      let body = outline.body.span.bytes
      parts.append(
        ChangePage(
          packing: end - start, idByteCount: idByteCount, payloadByteCount: payloadByteCount
        ) { packer in
          for record in outline.records[start..<end] {
            packer.append(
              id: body.extracting(record.id), version: record.version,
              payload: body.extracting(record.payload),
              flags: record.isDeleted ? .isDeleted : [])
          }
        })
      contentByteCount += idByteCount + payloadByteCount
      start = end
    }
  }
}
