/// Why a body is not the message it should be: where, and what is wrong there.
///
/// It names members of the protocol and positions in lists; never a value, a payload or a member
/// that the protocol does not know. (Protocol section "Settled details".)
public struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong; later versions may add some.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String {
      case missing
      case unexpected
      case illTyped
      case outOfRange
      case notCanonical
      case notUTF8
      case duplicateMember
      case tooManyMembers
      case tooDeep
      case truncated
      case trailingBytes
      case malformed
    }

    private let kind: Kind

    /// A required member is not there.
    public static let missing = Code(kind: .missing)
    /// A member is there that must not be beside the others.
    public static let unexpected = Code(kind: .unexpected)
    /// The value is of another type, or a text of another form.
    public static let illTyped = Code(kind: .illTyped)
    /// The value lies outside its limits.
    public static let outOfRange = Code(kind: .outOfRange)
    /// The value has more than one spelling and this is not the one in use: base64 with stray
    /// bits, a CBOR integer longer than needed, an indefinite length.
    public static let notCanonical = Code(kind: .notCanonical)
    /// A text is not valid UTF-8.
    public static let notUTF8 = Code(kind: .notUTF8)
    /// One object has a member twice.
    public static let duplicateMember = Code(kind: .duplicateMember)
    /// One object has more than ``WireLimits/memberCountMax`` members that the protocol does not
    /// know.
    public static let tooManyMembers = Code(kind: .tooManyMembers)
    /// Objects and lists lie deeper in each other than ``WireLimits/depthMax``.
    public static let tooDeep = Code(kind: .tooDeep)
    /// The body ends before the value does, or a length says more than there is.
    public static let truncated = Code(kind: .truncated)
    /// Bytes follow the message.
    public static let trailingBytes = Code(kind: .trailingBytes)
    /// The bytes follow no rule of the format.
    public static let malformed = Code(kind: .malformed)

    /// The code's name, for logs.
    public var description: String { kind.rawValue }

    /// Nothing of the body can be trusted, so no single element of it is to blame.
    var isOfWholeBody: Bool {
      self == .truncated || self == .trailingBytes || self == .malformed
    }
  }

  /// One step from the body to the value.
  enum Step: Hashable, Sendable {
    case member(String)
    case element(Int)
  }

  /// What is wrong.
  public let code: Code
  /// What was expected there.
  let expectation: String
  private(set) var steps: [Step] = []

  init(_ code: Code, _ expectation: String) {
    self.code = code
    self.expectation = expectation
  }

  /// Where: the members and positions that lead to the value, as in `mutations[3].payload`; empty
  /// for the body itself. A member that the protocol does not know is named by its object.
  public var path: String {
    var text = ""
    for step in steps {
      switch step {
      case .member(let name): text += text.isEmpty ? name : ".\(name)"
      case .element(let position): text += "[\(position)]"
      }
    }
    return text
  }

  /// The position in `mutations` of the mutation that is wrong, from 0: the `index` of a
  /// `bad_mutation`. Nil where no single mutation is to blame: elsewhere in the body, or a body
  /// that is cut off or follows no rule of its format.
  public var index: Int? {
    guard !code.isOfWholeBody, steps.count >= 2, steps[0] == .member("mutations"),
      case .element(let position) = steps[1]
    else { return nil }
    return position
  }

  /// One sentence: where, what is wrong, what was expected.
  public var description: String {
    let place = steps.isEmpty ? "the body" : "the member \(path)"
    return "\(place) cannot be read (\(code)): \(expectation)"
  }

  /// The same error, seen from the object or list around it.
  func inside(_ step: Step) -> WireError {
    var outer = self
    outer.steps.insert(step, at: 0)
    return outer
  }
}
