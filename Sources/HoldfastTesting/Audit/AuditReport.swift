/// What ``ApplyChangesAudit`` found.
///
/// Its description is for the log of a test. Like the findings it holds no payload.
public struct AuditReport: Sendable, Hashable {
  /// Something that the app got wrong.
  public struct Finding: Sendable, Hashable {
    /// What was tried.
    public let situation: AuditSituation
    /// What an app does there that loses and mixes nothing.
    public let expected: String
    /// What this one did.
    public let observed: String

    init(_ situation: AuditSituation, _ deviation: AuditDeviation) {
      self.situation = situation
      expected = deviation.expected
      observed = deviation.observed
    }

    /// The section of the contract that says so.
    public var contract: String { situation.contract }
    /// What to change in the app.
    public var remedy: String { situation.remedy }
  }

  /// A situation that was not tried.
  public struct Skipped: Sendable, Hashable {
    /// What was not tried.
    public let situation: AuditSituation
    /// Why not.
    public let reason: String
  }

  /// What the app got wrong, in the order of the situations; at most one of each.
  public internal(set) var findings: [Finding] = []
  /// The situations in which all is well.
  public internal(set) var passed: [AuditSituation] = []
  /// The situations that were not tried, and why.
  public internal(set) var skipped: [Skipped] = []
}

/// What an app did, and should have done.
struct AuditDeviation: Error {
  var expected: String
  var observed: String
}

extension AuditReport: CustomStringConvertible {
  /// The findings, each with its remedy, and how many situations were tried.
  public var description: String {
    let counts =
      "\(passed.count) situations without a finding, \(findings.count) with one, "
      + "\(skipped.count) not tried"
    return ([counts] + findings.map(\.description) + skipped.map(\.description))
      .joined(separator: "\n")
  }
}

extension AuditReport.Finding: CustomStringConvertible {
  /// Several lines: the situation, what was expected, what the app did, the contract and the remedy.
  public var description: String {
    """
    \(situation.rawValue): \(situation.summary)
      expected: \(expected)
      observed: \(observed)
      contract: \(contract)
      remedy:   \(remedy)
    """
  }
}

extension AuditReport.Skipped: CustomStringConvertible {
  /// One line.
  public var description: String { "\(situation.rawValue): not tried, \(reason)" }
}
