internal import CLMDB
import Foundation
import Synchronization

/// What must hold of `lock.mdb` around `mdb_env_open`. LMDB itself takes every one of it on trust.
///
/// Nobody in a process may open and close that file while LMDB has it open there (the kernel would
/// drop LMDB's locks with it); all of this happens before, or without opening it.
enum LockFile {
  static func path(in directory: String) -> String { directory + "/lock.mdb" }

  /// Enough for most: the two mutexes, and the first slots of readers.
  private static let reservedByteCount: Int64 = 8_192
  /// What stands before the slots, and a slot, each a multiple of a cache line; upper bounds.
  private static let headByteCount: Int64 = 512
  private static let slotByteCount: Int64 = 64

  /// Gives the head of the file its place on the disk, before LMDB maps it.
  ///
  /// LMDB makes it as a hole and writes it through a map: on a full disk that ends the process with
  /// SIGBUS. What is there already is left as it is.
  /// - Returns: how many readers' slots have their place.
  /// - Throws: `diskFull`, `noPermission`, `readOnly`, or what the file system says.
  static func reserve(in directory: String) throws(LMDBError) -> Int {
    let path = path(in: directory)
    let allocated = FileNumbers(path: path)?.allocatedByteCount ?? 0
    if allocated >= reservedByteCount { return slotCount(in: reservedByteCount) }
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw LMDBError.from(errno, operation: "open", path: directory)
    }
    defer { close(descriptor) }
    let result = clmdb_reserve(descriptor, reservedByteCount)
    if result == 0 || !isLackOfSpace(result) { return slotCount(in: reservedByteCount) }
    // Its first page is there, as LMDB makes it: some readers have room, and a full disk is read.
    if allocated >= 4_096 { return slotCount(in: 4_096) }
    throw LMDBError.from(result, operation: "fallocate", path: directory)
  }

  /// Whether the file system would do it if it had room; some cannot at all, and then nothing helps.
  private static func isLackOfSpace(_ number: Int32) -> Bool {
    number == ENOSPC || number == EDQUOT
  }

  private static func slotCount(in byteCount: Int64) -> Int {
    Int((byteCount - headByteCount) / slotByteCount)
  }

  /// Where the claims lie: far behind the end of any file.
  private static let claimsStart: Int64 = 1 << 61
  private static let claimsCount: Int64 = 1 << 56

  /// Says on the data file which lock file this process goes by, and finds out whether all others
  /// that have it open go by the same one.
  ///
  /// Two processes with different lock files (one was deleted while it was in use, or the data file
  /// has a hard link in another directory) would write at once and reuse what the other reads. Each
  /// user therefore holds a shared lock on a byte of the data file that stands for its lock file;
  /// it ends with the descriptor, which is LMDB's own.
  /// - Parameter isLocking: false when the file is read without a lock file; then nobody may have it
  ///   open.
  /// - Throws: `lockMismatch`.
  @unsafe static func claim(
    _ environment: OpaquePointer, in directory: String, isLocking: Bool
  ) throws(LMDBError) {
    var descriptor: Int32 = -1
    guard unsafe mdb_env_get_fd(environment, &descriptor) == 0, descriptor >= 0 else { return }
    // LMDB leaves this one, and no other, to programs that the process starts.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let end = claimsStart + claimsCount
    var place = claimsStart
    var behind = claimsStart
    if isLocking {
      guard let numbers = FileNumbers(path: path(in: directory)) else {
        throw mismatch(directory, "lock.mdb has just been removed")
      }
      place += Int64(
        truncatingIfNeeded: (numbers.inode &+ numbers.device &* 0x9E37_79B9_7F4A_7C15)
          % UInt64(claimsCount))
      behind = place + 1
      // A file system that knows no such locks cannot be asked either.
      guard clmdb_claim(descriptor, place) == 0 else { return }
    }
    // One question is enough where nobody else has it open.
    let isClaimed =
      clmdb_is_claimed(descriptor, claimsStart, claimsCount) != 0
      && (clmdb_is_claimed(descriptor, claimsStart, place - claimsStart) != 0
        || clmdb_is_claimed(descriptor, behind, end - behind) != 0)
    if isClaimed {
      unsafe disclaim(environment)
      throw mismatch(directory, nil)
    }
  }

  /// Takes the claim back, before LMDB closes the data file.
  ///
  /// The end of the descriptor alone does not do it while a program has inherited it, as one does
  /// that another thread started between LMDB's opening it and `claim`.
  @unsafe static func disclaim(_ environment: OpaquePointer) {
    var descriptor: Int32 = -1
    guard unsafe mdb_env_get_fd(environment, &descriptor) == 0, descriptor >= 0 else { return }
    clmdb_disclaim(descriptor, claimsStart, claimsCount)
  }

  private static func mismatch(_ directory: String, _ detail: String?) -> LMDBError {
    LMDBError(.lockMismatch, operation: "open", path: directory, detail: detail)
  }
}

extension LockFile {
  /// The slots of readers that have their place on the disk: all the others are a hole, too.
  struct Slots: ~Copyable {
    /// Many may begin at once; each counts itself only afterwards.
    private static let marginCount = 32

    private let reservedCount: Atomic<Int>
    /// Kept until the environment is closed, and not a moment longer: whenever a process closes any
    /// descriptor of a file, its locks on that file are gone, those of a later environment, too.
    private let descriptor = Mutex<Int32>(-1)

    init(reservedCount: Int) { self.reservedCount = Atomic(reservedCount) }

    /// With the environment's own close, before anybody can open its file again.
    ///
    /// There is no `deinit` that does it: in a forked child it would end the locks of the child's own
    /// environment, and here those of the next one where this one is kept beyond its close.
    func close() {
      descriptor.withLock { descriptor in
        if descriptor >= 0 { Foundation.close(descriptor) }
        descriptor = -1
      }
    }

    /// Before a reader takes a slot that may not have been used before.
    /// - Parameter usedCount: how many slots were ever used.
    /// - Returns: 0, or the `errno` that says why there is no room for another.
    func prepare(usedCount: Int, maximum: Int, in directory: String) -> Int32 {
      let reserved = reservedCount.load(ordering: .relaxed)
      guard usedCount + 2 * Self.marginCount > reserved, reserved < maximum else { return 0 }
      return descriptor.withLock { descriptor in
        if descriptor < 0 {
          descriptor = unsafe open(LockFile.path(in: directory), O_RDWR | O_CLOEXEC)
        }
        guard descriptor >= 0 else { return 0 }
        let result = clmdb_reserve(
          descriptor, headByteCount + Int64(maximum) * slotByteCount)
        if result == 0 || !isLackOfSpace(result) {
          reservedCount.store(maximum, ordering: .relaxed)
          return 0
        }
        return usedCount + Self.marginCount > reserved ? result : 0
      }
    }
  }
}
