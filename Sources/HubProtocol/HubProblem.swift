public import Foundation

/// RFC 9457 problem details, the body of every error; JSON whatever `Accept` says.
public struct HubProblem: Hashable, Sendable {
  /// The media type of this body.
  public static let contentType = "application/problem+json"

  /// A URI for the kind of problem; `about:blank` where `code` says it.
  public var type: String
  /// The kind of problem in a few words.
  public var title: String
  /// The HTTP status, 100 to 599.
  public var status: Int
  /// What happened, in a sentence for a person.
  public var detail: String
  /// A code of ``HubCode``, or one that this version does not know.
  public var code: String
  /// With `epoch_changed`: the account's present epoch.
  public var epoch: UUID?
  /// With `epoch_changed`: the epochs that were left, oldest first, without the current one.
  public var lineage: [LineageEntry]?
  /// With `cursor_expired`: the least cursor from which a pull misses nothing, 0 to 2^53 - 1.
  public var minimumCursor: UInt64?
  /// With `bad_mutation` and, for one payload, `too_large`: the mutation's position, from 0.
  public var index: Int?

  /// Takes every member; nothing is checked.
  public init(
    type: String = "about:blank", title: String, status: Int, detail: String, code: String,
    epoch: UUID? = nil, lineage: [LineageEntry]? = nil, minimumCursor: UInt64? = nil,
    index: Int? = nil
  ) {
    self.type = type
    self.title = title
    self.status = status
    self.detail = detail
    self.code = code
    self.epoch = epoch
    self.lineage = lineage
    self.minimumCursor = minimumCursor
    self.index = index
  }
}
