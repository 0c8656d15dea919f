import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

/// A device of the simulated world: its files, and what is not lost when it dies.
///
/// SAFETY of `@unchecked Sendable`: everything here runs on the machine's only thread.
final class Device: @unchecked Sendable {
  let number: Int
  let directory: String
  let keepsRecords: Bool
  /// The running process, if it runs.
  var life: Life?
  /// One that has died and whose tasks have not all ended.
  var dying: Life?
  var lifeCount = 0
  /// What the app has stored of who is signed in.
  var signedIn: Data?
  /// The app's own stores, one for each area, as an app has a file for each.
  var apps: [AreaID: AppStore] = [:]
  /// A backup of them.
  var appBackup: [AreaID: AppStore] = [:]
  /// How many of a thousand requests meet a fault.
  var faultRate = 0
  /// What was seen of each area last.
  var tracks: [AreaID: Track] = [:]
  /// What was written into areas and not looked at yet.
  var written: [AreaID: CanarySet] = [:]
  /// Erasures that are under way.
  var erasing = 0

  struct Track {
    var standing: AreaStanding
    var left: Set<UUID> = []
    var commitCount: UInt64?
  }

  init(number: Int, directory: String, keepsRecords: Bool) {
    self.number = number
    self.directory = directory
    self.keepsRecords = keepsRecords
  }
}

/// A process on a device: what is in memory, and gone when it dies.
///
/// SAFETY of `@unchecked Sendable`: as ``Device``.
final class Life: @unchecked Sendable {
  let number: Int
  let device: Device
  let session: AppSession
  private(set) var registry: ProfileRegistry?
  /// Effects of this process reach nobody any more.
  private(set) var isDead = false
  var isSuspended = false
  var tasks: [Int: Task<Void, Never>] = [:]
  /// The profiles that the app holds.
  var profiles: [AreaID: Profile] = [:]
  /// The operations that keep an account synchronized, by account.
  var keeping: [Int: Int] = [:]

  init(number: Int, device: Device, session: AppSession) {
    self.number = number
    self.device = device
    self.session = session
  }

  func begin(_ registry: ProfileRegistry) { self.registry = registry }

  /// Everything that it does from now on fails.
  func die() {
    isDead = true
    registry = nil
    profiles = [:]
    for number in tasks.keys.sorted() { tasks[number]?.cancel() }
  }

  /// The store.
  /// - Throws: ``Dead``.
  func store() throws -> ProfileRegistry {
    guard let registry else { throw Dead() }
    return registry
  }
}

/// The process has ended while this ran.
struct Dead: Error {}
