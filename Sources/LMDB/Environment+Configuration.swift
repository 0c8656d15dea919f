extension Environment {
  /// What a commit survives. The level holds for the whole environment and for this process.
  ///
  /// A crash of the process alone loses nothing that was committed on any level: the pages are the
  /// kernel's by then. The levels differ in what a crash of the kernel or a loss of power does, and
  /// all of them believe a disk that says it has flushed.
  public enum Durability: Sendable {
    /// A returned write survives a crash of the kernel and a loss of power. The default.
    ///
    /// Two flushes per commit: the data, then the page that makes it current.
    case durable
    /// A crash of the kernel or a loss of power may undo the last commit, with all that shared it;
    /// the one before and the file as such are whole. `sync()` makes sure of it.
    ///
    /// One flush per commit. Corresponds to `MDB_NOMETASYNC`.
    case mayLoseLastCommit
    /// A crash of the kernel or a loss of power may lose or damage everything that was written since
    /// the last `sync()`, and with it the file: scratch data only.
    ///
    /// No flush. Corresponds to `MDB_NOSYNC`.
    case unsafeWithoutSync
  }

  /// Whether an environment may be made, changed, or only read.
  public enum Access: Sendable {
    /// Opens it, or makes it where there is none.
    case createOrWrite
    /// Opens it for writing; where there is none it is an error.
    case write
    /// Opens it for reading; nothing is ever written but the reader's slot in the lock file.
    ///
    /// Where there is no lock file (a copy that nobody has opened yet) none is made: then nobody may
    /// begin to write it before the reader has closed it.
    case read
  }

  /// How an environment is opened. The first opener in a process decides.
  public struct Configuration: Sendable {
    /// Whether it may be made, changed, or only read. `createOrWrite` by default.
    public var access = Access.createOrWrite
    /// The map's size to begin with, in bytes; 64 MiB by default. Virtual: no disk is used for it.
    public var mapSizeByteCount = 64 << 20
    /// The ceiling: the size up to which the map doubles by itself, in bytes; 64 GiB by default.
    /// Writes that would need more throw `mapFull`, but for ``WritePurpose/draining`` ones. A file
    /// that is larger already keeps what it uses, and takes new entries once no more than the ceiling
    /// is in use.
    public var mapSizeByteCountMax = 64 << 30
    /// The most named tables; 32 by default. Corresponds to `mdb_env_set_maxdbs`.
    public var tableCountMax = 32
    /// The most simultaneous readers of all processes; 1,024 by default. The process that opens the
    /// environment first decides. Corresponds to `mdb_env_set_maxreaders`.
    public var readerCountMax = 1_024
    /// Whether opening checks every page first, as `checkIntegrity(at:)`
    /// does, and throws `damaged` when anything is wrong; false by default.
    ///
    /// Without it only the head of the file is looked at. LMDB believes what stands in a page: one
    /// that is garbage can end the process with a signal, not only fail a call. For a file that came
    /// from elsewhere or lay on a medium in doubt; about a second per GiB.
    public var isCheckedAtOpen = false
    /// Up to how many bytes in use a file is checked and sealed; 0 by default: never.
    ///
    /// When this process first opens such a file for writing every page is checked as with
    /// ``isCheckedAtOpen``. When it closes it, a sum over its content is kept in `data.seal` beside it,
    /// which the next check compares, so that one changed bit in a key or a value is `damaged`,
    /// too. A process that was killed leaves no sum of its last commits: of those only the form is checked.
    /// About a second per GiB, at the first open and at each close after a commit.
    public var sealedByteCountMax = 0
    /// How much room is kept ready in the file behind the data, in bytes; 1 MiB by default, 0 for
    /// none.
    ///
    /// A quarter of the data, 128 KiB at least, this at most, is written with zeros from the first
    /// write on, and twice that at once, so that the file is longer than its data by as much. It
    /// spares small durable commits lengthening the file, and lets ``WritePurpose/draining`` writes
    /// go through on a full disk: other writes are refused with `diskFull` as soon as it cannot be
    /// made up. Writes that add more than 64 KiB each only have it set aside on the disk, where the
    /// system can, and smaller ones that follow write it. The last write before the disk is full, begun
    /// while the reserve was whole, may use most of it; one that changes more than that at once
    /// leaves less. File systems that never overwrite in place (Btrfs, ZFS, APFS, any with snapshots)
    /// cannot promise that. Not used with `unsafeWithoutSync`.
    public var fileReserveByteCountMax = 1 << 20
    /// Whether it may lie on a network file system (NFS, SMB, 9p, FUSE and the like); false by
    /// default: opening throws `networkFileSystem`.
    ///
    /// Allow it only where one machine uses the files, one process at a time, and the file system is
    /// known to give memory maps and locks; LMDB's own advice is not to.
    public var allowsNetworkFileSystem = false
    /// What a commit survives; `.durable` by default.
    public var durability = Durability.durable

    /// The defaults.
    public init() {}
  }
}
