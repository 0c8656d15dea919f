/// One thing that a person, an app, an operator or the world begins to do. It may go on beside later
/// steps.
///
/// Its numbers mean what there is when it is taken: "account 7" of three is the second. So a list of
/// steps stays a list of steps when some are left out.
package struct Step: Hashable, Sendable, CustomStringConvertible {
  /// What is done.
  package enum Kind: String, CaseIterable, Sendable {
    /// One change of whoever is signed in, or of nobody.
    case enqueue
    /// Several changes at once, from several tasks.
    case burst
    /// A change under an account that is not signed in: it must be refused.
    case trespass
    /// A pass.
    case pass
    /// A replay, all its legs.
    case replay
    /// `keepSynchronized` begins, or ends.
    case keep
    /// One operation that runs is cancelled.
    case cancel
    /// Somebody signs in and decides about what nobody owned.
    case signIn
    /// Nobody is signed in any more.
    case signOut
    /// An area that was set aside is adopted by name, or an adoption withdrawn.
    case adoptByName
    /// A parked change is decided about.
    case decide
    /// What the hub has lost is sent again.
    case sendAgain
    /// An account is erased on this device, or an area of nobody.
    case erase
    /// The store is suspended, or resumed.
    case suspend
    /// The device dies at one of its next steps on disk.
    case crash
    /// A device that is down comes up again.
    case restart
    /// The app lets go of its profiles.
    case letGo
    /// The app's own store is put back to an earlier day.
    case restoreApp
    /// The network changes its mood.
    case weather
    /// Time passes.
    case wait
    /// The hub's operator: a backup, a restore, a new epoch, a purge, an erasure, tokens taken back.
    case operate
  }

  /// What is done.
  package var kind: Kind
  /// On which device, modulo how many there are.
  package var device: Int
  /// Three numbers that say the rest, 0 to 9,999 each.
  package var a: Int
  package var b: Int
  package var c: Int

  /// `kind.device.a.b.c`.
  package var description: String { "\(kind.rawValue).\(device).\(a).\(b).\(c)" }
}
