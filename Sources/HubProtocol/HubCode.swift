/// Every `code` of the protocol: problems, and verdicts on single mutations.
public enum HubCode: String, CaseIterable, Sendable, Hashable {
  /// 400: the request asserts no account.
  case accountMissing = "account_missing"
  /// 403: the request asserts another account than the token names; nothing was read or written.
  case accountMismatch = "account_mismatch"
  /// 401: the token is missing, not well-formed, or not of this hub's issuer.
  case tokenInvalid = "token_invalid"
  /// 401: the token is right but for its end.
  case tokenExpired = "token_expired"
  /// 403: an administrator has stopped the account.
  case accountDisabled = "account_disabled"
  /// 410: the account was erased.
  case accountErased = "account_erased"
  /// 403: the client belongs to another account.
  case clientBoundElsewhere = "client_bound_elsewhere"
  /// 404: the client was never registered.
  case clientUnknown = "client_unknown"
  /// 409: the account's history was reset; `epoch` and `lineage` say to what.
  case epochChanged = "epoch_changed"
  /// 400: `after` or `until` is missing, ill-typed, or in the wrong order.
  case badCursor = "bad_cursor"
  /// 410: tombstones above the cursor were purged; `minimumCursor` says to where.
  case cursorExpired = "cursor_expired"
  /// 413: more than the hub's limits; with `index`, that one payload.
  case tooLarge = "too_large"
  /// 400: the mutation at `index` is not well-formed; nothing changed.
  case badMutation = "bad_mutation"
  /// 400: the request is not well-formed; nothing changed.
  case badRequest = "bad_request"
  /// 404: no such path.
  case notFound = "not_found"
  /// 405: the path has other methods; `Allow` names them.
  case methodNotAllowed = "method_not_allowed"
  /// 414: the target is above 16 KiB.
  case uriTooLong = "uri_too_long"
  /// 415: the body is in another type or coding.
  case unsupportedMediaType = "unsupported_media_type"
  /// 431: the head is above 64 KiB.
  case headersTooLarge = "headers_too_large"
  /// 429: too many requests; `Retry-After` says how long to wait.
  case rateLimited = "rate_limited"
  /// 500: the hub failed; whether it acted is unknown.
  case `internal` = "internal"
  /// 503: not now; `Retry-After` says how long to wait.
  case unavailable = "unavailable"
  // Verdicts only.
  /// Deferred: an earlier mutation of the record was not applied; `detail` is its UUID.
  case blockedBy = "blocked_by"
  /// Deferred: the hub could not judge it now.
  case busy = "busy"
  /// Rejected: the UUID was applied with another content.
  case mutationReused = "mutation_reused"
  /// Rejected: the base is the UUID of another record's mutation.
  case badBase = "bad_base"
}
