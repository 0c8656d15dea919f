/// What goes on in a profile's passes, for a person's screen; see `Profile.syncEvents`.
///
/// A later version may add cases: a `switch` needs a `default`.
public enum SyncEvent: Sendable {
  /// A pass began, after it had waited for its turn.
  case passBegan
  /// How far the pass is.
  case progress(SyncProgress)
  /// A pass came to its end.
  case passEnded(SyncReport)
  /// A pass was stopped, also by a closure of the app (`code` nil). `message` is a sentence with the
  /// remedy.
  case passStopped(SyncError.Code?, message: String)
  /// The hub, or something in its place, named another account or hub; nothing of it was used.
  case securityEvent
  /// What `keepSynchronized` waits for.
  case waiting(SyncWait)
  /// So many events before this one were dropped, the oldest first: the listener was too slow.
  case missed(Int)
}

/// What `keepSynchronized` waits for between passes.
public enum SyncWait: Sendable, Hashable {
  /// For a change at the hub or on this device.
  case forChanges
  /// The last pass failed: it is tried again after a pause.
  case toTryAgain(after: Duration)
  /// Until the account is signed in.
  case forSignIn
  /// The hub refuses the token: until there is a new one, or a new sign-in.
  case forNewToken
  /// The store is suspended: until `ProfileRegistry.resume()`.
  case forResume
  /// Something that the app has to do, by its code; nothing is sent until then.
  case forTheApp(SyncError.Code)
}
