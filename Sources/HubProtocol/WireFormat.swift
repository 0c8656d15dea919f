/// The two forms of a body.
public enum WireFormat: String, CaseIterable, Sendable {
  case json = "application/json"
  case cbor = "application/cbor"
}
