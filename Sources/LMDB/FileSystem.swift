internal import CLMDB
import Foundation

/// The kind of file system that an environment lies on.
///
/// LMDB needs memory that all processes share and locks that hold between them. A network file system
/// gives neither between machines, and some not even on one: damage is what comes of it.
struct FileSystem {
  /// Its name where it is a network file system.
  let remoteName: String?

  /// - Throws: what the file system says when it cannot be told.
  init(of directory: String) throws(LMDBError) {
    let kind = unsafe clmdb_file_system(directory)
    guard kind != -1 else { throw LMDBError.from(errno, operation: "statfs", path: directory) }
    self.init(kind: kind)
  }

  /// - Parameter kind: Linux's number, or -2 for one that another system calls remote.
  init(kind: Int64) { remoteName = Self.remoteKinds[kind] }

  /// - Throws: `networkFileSystem`, unless it is local or the configuration allows it.
  func requireLocal(
    _ directory: String, _ configuration: Environment.Configuration
  ) throws(LMDBError) {
    guard let remoteName, !configuration.allowsNetworkFileSystem else { return }
    throw LMDBError(
      .networkFileSystem, operation: "open", path: directory, detail: remoteName)
  }

  /// From Linux's `magic.h` and the file systems' own sources.
  private static let remoteKinds: [Int64: String] = [
    -2: "remote", 0x6969: "NFS", 0x517B: "SMB", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB 2",
    0x0102_1997: "9p", 0x6573_5546: "FUSE", 0x5346_414F: "AFS", 0x6B41_4653: "AFS",
    0x7375_7245: "Coda", 0x00C3_6400: "Ceph", 0x0BD0_0BD0: "Lustre", 0x564C: "NCP",
    0x786F_4256: "VirtualBox shared folder", 0xBACB_ACBC: "VMware shared folder",
  ]
}
