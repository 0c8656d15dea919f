public import Foundation

/// A body of the protocol, with its two forms.
///
/// The forms hold the same members, JSON payloads as base64 and CBOR payloads as byte strings.
/// Encoding is deterministic: the same value gives the same bytes. Members that the protocol does
/// not know are passed over, and a null stands for an optional member that is absent. (Protocol,
/// first paragraph and section "Settled details".)
public protocol HubMessage: Sendable {
  /// Reads a whole body.
  ///
  /// Everything in it is checked for form and range, nothing for meaning: whether an answer names
  /// the right account, or versions ascend, is the caller's to judge.
  /// - Parameters:
  ///   - body: The body, decompressed. Its size was limited where it came in; the memory that
  ///     reading takes is bounded by it.
  ///   - format: The form that its `Content-Type` names.
  /// - Throws: ``WireError`` naming the member, or the position, and what is wrong with it.
  init(decoding body: Data, as format: WireFormat) throws(WireError)

  /// The body in one of the forms.
  func encoded(as format: WireFormat) -> Data
}

/// A message in terms of a reader and a writer, whatever the form.
protocol WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError)
  func write<Writer: WireWriter>(to writer: inout Writer)
  /// About how many bytes it takes, for the one allocation.
  var byteCountHint: Int { get }
}

extension WireCoded {
  var byteCountHint: Int { 1024 }

  init(wire body: Data, as format: WireFormat) throws(WireError) {
    switch format {
    case .json:
      var reader = try JSONReader(body: body)
      self = try Self(from: &reader)
      try reader.finish()
    case .cbor:
      var reader = CBORReader(body: body)
      self = try Self(from: &reader)
      try reader.finish()
    }
  }

  func wire(as format: WireFormat) -> Data {
    switch format {
    case .json:
      var writer = JSONWriter(byteCountHint: byteCountHint * 4 / 3)
      write(to: &writer)
      return Data(writer.bytes)
    case .cbor:
      var writer = CBORWriter(byteCountHint: byteCountHint)
      write(to: &writer)
      return Data(writer.bytes)
    }
  }
}
