package import Foundation
package import HubProtocol

/// An answer that is a problem: a code of the protocol, and what belongs to it.
package struct Refusal: Error, Hashable, Sendable {
  package var code: HubCode
  /// One sentence; it names members and limits, never a value.
  package var detail: String
  package var epoch: UUID?
  package var lineage: [LineageEntry]?
  package var minimumCursor: UInt64?
  package var index: Int?
  package var retryAfterSeconds: Int64?
  /// The methods of the path, with 405.
  package var allowedMethods: [String] = []

  package init(
    _ code: HubCode, _ detail: String, index: Int? = nil, retryAfterSeconds: Int64? = nil
  ) {
    self.code = code
    self.detail = detail
    self.index = index
    self.retryAfterSeconds = retryAfterSeconds
  }

  /// What an account's state answers.
  package init(_ refusal: AccountRefusal) {
    switch refusal {
    case .disabled:
      self.init(.accountDisabled, "an administrator has disabled this account")
    case .erased:
      self.init(.accountErased, "this account was erased")
    case .epochChanged(let epoch, let lineage):
      self.init(.epochChanged, "the account's history was reset; replay it")
      self.epoch = epoch
      self.lineage = lineage
    case .cursorExpired(let minimum):
      self.init(.cursorExpired, "tombstones after this cursor are purged; scan from zero")
      minimumCursor = minimum
    case .forkedTooRecently(let seconds):
      self.init(
        .unavailable, "a cursor above the high water began an epoch just now; try later",
        retryAfterSeconds: seconds)
    }
  }

  /// The HTTP status of the code.
  package var status: Int {
    switch code {
    case .badCursor, .badMutation, .badRequest, .accountMissing: 400
    case .tokenInvalid, .tokenExpired: 401
    case .accountMismatch, .accountDisabled, .clientBoundElsewhere: 403
    case .notFound, .clientUnknown: 404
    case .methodNotAllowed: 405
    case .epochChanged: 409
    case .accountErased, .cursorExpired: 410
    case .tooLarge: 413
    case .uriTooLong: 414
    case .unsupportedMediaType: 415
    case .rateLimited: 429
    case .headersTooLarge: 431
    case .unavailable: 503
    // The last four are verdicts on single mutations and never a problem of their own.
    case .internal, .blockedBy, .busy, .mutationReused, .badBase: 500
    }
  }

  package var problem: HubProblem {
    HubProblem(
      title: code.rawValue.replacing("_", with: " "), status: status, detail: detail,
      code: code.rawValue, epoch: epoch, lineage: lineage, minimumCursor: minimumCursor,
      index: index)
  }
}
