import Foundation
import LMDB

/// Everything that the files say of one profile, for `profilectl show`. No payload and no record ID
/// is in it.
package struct ProfileDetails: Sendable {
  /// A file below the area's directory.
  package struct File: Sendable, Hashable {
    /// Its path from there.
    package var name: String
    /// Its length.
    package var byteCount: Int

    package init(name: String, byteCount: Int) {
      self.name = name
      self.byteCount = byteCount
    }
  }

  /// What the registry notes of the area.
  package struct RegistryNote: Sendable, Hashable {
    /// `owned`, `unowned`, `setAside` or `moved`; nil: it does not know the area.
    package var state: String?
    /// A step that a process began and has not completed: `provision`, `bind`, `adopt`, `erase`.
    package var intent: String?

    package init(state: String?, intent: String?) {
      self.state = state
      self.intent = intent
    }
  }

  /// What a list shows of it.
  package var profile: ProfileInfo
  /// The area's directory.
  package var directory: String
  /// Its files, sorted by name. Lock files are sparse: their length takes no room.
  package var files: [File] = []
  /// What the registry notes; nil when it cannot be read.
  package var registry: RegistryNote?
  /// What the area holds; nil when it is erased, missing or cannot be read.
  package var contents: AreaContents?

  package init(profile: ProfileInfo, directory: String) {
    self.profile = profile
    self.directory = directory
  }

  /// A profile that turns out to be damaged here becomes unreadable.
  mutating func read(index: RegistryIndex?, open: (AreaID) throws -> Area) throws {
    if let note = try index?.note(of: profile.area) {
      registry = RegistryNote(
        state: note.row.map { "\($0.state)" }, intent: note.intent.map { "\($0.kind)" })
    }
    files = Self.files(in: directory)
    switch profile.state {
    case .erased, .missing, .unreadable: return
    case .owned, .unowned, .setAside, .frozen, .moved: break
    }
    do {
      contents = try AreaContents(reading: try open(profile.area))
    } catch {
      let failure = StoreError.reading("the profile", error)
      profile.state = failure.code == .erased ? .erased : .unreadable
      profile.failure = failure.code == .erased ? nil : failure
    }
  }

  /// Only looks at them: opening a lock file would drop this process's locks on it.
  private static func files(in directory: String) -> [File] {
    guard let names = FileManager.default.enumerator(atPath: directory) else { return [] }
    return names.compactMap { $0 as? String }.sorted().compactMap { name in
      var numbers = stat()
      // One that went meanwhile is not there.
      guard lstat(directory + "/" + name, &numbers) == 0, numbers.st_mode & S_IFMT == S_IFREG
      else { return nil }
      return File(name: name, byteCount: Int(numbers.st_size))
    }
  }
}
