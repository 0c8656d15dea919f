public import Foundation

/// Tries on an app's own apply closure everything that a pass may do to it, and says in words what it
/// gets wrong: the same batch twice, a throw half-way, an account switch during the closure, edits
/// that wait, tombstones, cancellation, crashes, replays.
///
/// ```swift
/// let report = try await ApplyChangesAudit { try NotesFile(in: $0).audited }.run()
/// #expect(report.findings.isEmpty, "\(report)")
/// ```
///
/// Each situation has a hub in memory, a store on disk and an app of its own, in a directory that is
/// removed at its end; the product that runs in it is the real one. An app without findings keeps
/// accounts apart, loses nothing and overwrites no edit, whatever happens around its closure. What is
/// checked in which situation: ``AuditSituation``.
public struct ApplyChangesAudit {
  /// What an audit is made of; everything has a default.
  public struct Options: Sendable {
    /// A payload that the app understands, another one for each number; a short text by default.
    public var payload: @Sendable (Int) -> Data = { Data("audit payload \($0)".utf8) }
    /// Whether an app that shows the second has kept the first: for an app that decodes payloads and
    /// encodes them again. Equal bytes by default.
    public var isSame: @Sendable (_ payload: Data, _ shown: Data) -> Bool = { $0 == $1 }
    /// The situations to try; all by default. The first one, ``AuditSituation/ordinary``, always is.
    public var situations = Set(AuditSituation.allCases)
    /// Where stores and apps get their directories; the system's place for temporary files by default.
    public var directory = FileManager.default.temporaryDirectory

    /// The defaults.
    public init() {}
  }

  private let options: Options
  private let open: (URL) async throws -> AuditedApp

  /// Prepares an audit.
  /// - Parameters:
  ///   - options: payloads that the app understands, and what is tried.
  ///   - open: opens the app's own store in a directory, as a launch of the app does. The directory
  ///     is empty at an app's first launch. Called again with the same one it is the launch after a
  ///     crash: what the app had only in memory is gone.
  public init(_ options: Options = Options(), open: @escaping (URL) async throws -> AuditedApp) {
    self.options = options
    self.open = open
  }

  /// Tries every situation.
  /// - Returns: what the app got wrong, at most one finding for each situation.
  /// - Throws: what keeps the audit itself from going on: no directory can be made, a store cannot be
  ///   written; what `open` throws at a first launch.
  /// - Cost: some hundredths of a second for each situation, and what the app takes.
  public func run() async throws -> AuditReport {
    var report = AuditReport()
    for situation in AuditSituation.allCases {
      guard situation == .ordinary || options.situations.contains(situation) else {
        report.skipped.append(.init(situation: situation, reason: "it was left out"))
        continue
      }
      guard report.findings.first?.situation != .ordinary else {
        report.skipped.append(
          .init(situation: situation, reason: "the app does not take an ordinary batch"))
        continue
      }
      try await judge(situation, &report)
    }
    return report
  }

  private func judge(_ situation: AuditSituation, _ report: inout AuditReport) async throws {
    let stage = try await AuditStage(situation, options, open)
    do {
      try await stage.play()
      report.passed.append(situation)
    } catch let deviation as AuditDeviation where !Task.isCancelled {
      report.findings.append(AuditReport.Finding(situation, deviation))
    } catch let missing as AuditStage.Missing {
      report.skipped.append(.init(situation: situation, reason: missing.reason))
    } catch {
      // What kept it from going on counts.
      let stopped: any Error = Task.isCancelled ? CancellationError() : error
      do { try stage.close() } catch { throw stopped }
      throw stopped
    }
    try stage.close()
  }
}
