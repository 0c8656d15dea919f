import Foundation

extension Environment {
  /// A data file on this machine, by whatever path it is reached.
  package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64

    init(_ id: EnvironmentRegistry.FileID) { (device, inode) = (id.device, id.inode) }
  }

  /// The data file that is open, or was.
  package var dataFile: FileIdentity { FileIdentity(fileID) }

  /// The data file that lies in a directory now; nil when there is none, with the reason in `errno`.
  ///
  /// Corresponds to `statx` without the times: who asks for those makes the next write slower.
  package static func dataFile(in directory: String) -> FileIdentity? {
    EnvironmentRegistry.FileID(file: directory + "/data.mdb").map(FileIdentity.init)
  }
}
