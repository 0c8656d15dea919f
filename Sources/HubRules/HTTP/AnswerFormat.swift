package import HubProtocol

extension WireFormat {
  /// The form that `Accept` prefers. (RFC 9110 section 12.5.1.)
  ///
  /// JSON where nothing is said, where both are as welcome and none is named, and where neither is
  /// accepted: there is no 406.
  package static func preferred(accept: String?) -> WireFormat {
    guard let accept else { return .json }
    let ranges = accept.split(separator: ",").map(MediaRange.init)
    let json = ranges.quality(of: .json)
    let cbor = ranges.quality(of: .cbor)
    if cbor.value != json.value { return cbor.value > json.value ? .cbor : .json }
    guard cbor.value > 0, cbor.isNamed else { return .json }
    return !json.isNamed || cbor.place < json.place ? .cbor : .json
  }
}

/// One element of `Accept`.
private struct MediaRange {
  var type: String
  /// In thousandths.
  var quality: Int

  init(_ text: Substring) {
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
      .map { String($0.filter { $0 != " " && $0 != "\t" }) }
    type = parts.first ?? ""
    let named = parts.dropFirst().first { asciiEqual(String($0.prefix(2)), "q=") }
    quality = named.map { MediaRange.thousandths(String($0.dropFirst(2))) } ?? 1_000
  }

  /// A malformed quality counts as none: the range is as if it were not there.
  private static func thousandths(_ text: String) -> Int {
    guard let value = Double(text), value >= 0, value <= 1 else { return 0 }
    return Int(value * 1_000)
  }
}

extension [MediaRange] {
  fileprivate func quality(
    of format: WireFormat
  ) -> (value: Int, isNamed: Bool, place: Int) {
    for (index, wanted) in [format.rawValue, "application/*", "*/*"].enumerated() {
      if let place = firstIndex(where: { asciiEqual($0.type, wanted) }) {
        return (self[place].quality, index == 0, place)
      }
    }
    return (0, false, count)
  }
}
