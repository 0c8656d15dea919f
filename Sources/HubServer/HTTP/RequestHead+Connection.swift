import CMicroHTTPD
import Foundation
import HubRules

extension RequestHead {
  /// Reads the head of a connection.
  ///
  /// libmicrohttpd hides a NUL (the value ends there), a folded header and a bare line feed. But it
  /// leaves every part where it was received, so the distances between the parts tell: between two
  /// of them lies exactly what a well-formed head has there. The addresses are compared, and nothing
  /// is read through them.
  init(
    _ connection: OpaquePointer, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
    _ exchange: Exchange
  ) {
    let parts = HeadParts()
    // SAFETY: the iterator is called within this call only.
    holdfast_each_header(
      connection, collectField, Unmanaged.passUnretained(parts).toOpaque())
    let byteCount = holdfast_head_size(connection)
    let methodAddress = UInt(bitPattern: method)
    let methodText = String(cString: method)
    let versionText = String(cString: version)
    let lineBreak: UInt = 2
    var isWellFormed =
      methodAddress + UInt(methodText.utf8.count) + 1 == exchange.targetAddress
      && exchange.targetAddress + UInt(exchange.target.count) + 1 == UInt(bitPattern: version)
    var next = UInt(bitPattern: version) + UInt(versionText.utf8.count) + lineBreak
    for span in parts.spans {
      isWellFormed = isWellFormed && span.start == next
      next = span.end + lineBreak
    }
    isWellFormed = isWellFormed && next + lineBreak == methodAddress + UInt(byteCount)
    self.init(
      method: methodText, target: exchange.target, version: versionText, fields: parts.fields,
      byteCount: byteCount, isWellFormed: isWellFormed)
  }
}

/// The header fields as they are found.
private final class HeadParts {
  var fields: [RequestHead.Field] = []
  /// From the first byte of the name to behind the last byte of the value.
  var spans: [(start: UInt, end: UInt)] = []
}

private func collectField(
  _ context: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?,
  _ nameByteCount: Int, _ value: UnsafePointer<CChar>?, _ valueByteCount: Int
) -> MHD_Result {
  guard let context, let name else { return .NO }
  // SAFETY: `context` is the object of the call that iterates; the daemon gives both lengths.
  let parts = Unmanaged<HeadParts>.fromOpaque(context).takeUnretainedValue()
  let nameBytes = UnsafeRawBufferPointer(start: name, count: nameByteCount)
  var valueBytes = Array(UnsafeRawBufferPointer(start: value, count: valueByteCount))
  while let last = valueBytes.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\t") {
    valueBytes.removeLast()
  }
  parts.fields.append(
    RequestHead.Field(String(decoding: nameBytes, as: UTF8.self), valueBytes))
  parts.spans.append(
    (UInt(bitPattern: name), UInt(bitPattern: value) + UInt(valueByteCount)))
  return .YES
}
