internal import CLMDB
import Foundation

/// What LMDB, the file system or this module refused, with the thing it was about and the remedy.
///
/// The C code stays readable in ``rawCode``. No key and no value is part of an error. Corresponds to
/// the return codes of `lmdb.h` and `errno`.
public struct LMDBError: Error, Sendable, CustomStringConvertible {
  /// Why it was refused. Open: a later version may add codes, so a `switch` needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name as it is written in Swift.
    public let description: String

    private init(_ name: String) { description = name }

    /// The key exists and the call was asked not to replace it, or an append was out of order.
    public static let keyExists = Code("keyExists")
    /// The map is at its ceiling: raise ``Environment/Configuration/mapSizeByteCountMax``.
    public static let mapFull = Code("mapFull")
    /// More named tables than ``Environment/Configuration/tableCountMax``.
    public static let tablesFull = Code("tablesFull")
    /// All reader slots are taken by living readers.
    public static let readersFull = Code("readersFull")
    /// One transaction touched more pages than LMDB can hold: split it.
    public static let transactionFull = Code("transactionFull")
    /// Another process enlarged the map; handled inside, seen only when adopting it failed.
    public static let mapResized = Code("mapResized")
    /// A key of 0 or more than 511 bytes.
    public static let badKeySize = Code("badKeySize")
    /// A value longer than 1 GiB.
    public static let valueTooLarge = Code("valueTooLarge")
    /// The table does not exist and the environment may not create it.
    public static let tableMissing = Code("tableMissing")
    /// A table was opened with flags that its file does not have.
    public static let incompatible = Code("incompatible")
    /// The file is no LMDB environment, is cut short, or a page of it is not what it should be.
    public static let damaged = Code("damaged")
    /// The file was written by an LMDB of another format.
    public static let versionMismatch = Code("versionMismatch")
    /// There is no environment at that place.
    public static let missing = Code("missing")
    /// There is something already where a copy was to be made.
    public static let exists = Code("exists")
    /// The place is not a directory.
    public static let notADirectory = Code("notADirectory")
    /// The process may not read or write there.
    public static let noPermission = Code("noPermission")
    /// The environment or the file system is read-only.
    public static let readOnly = Code("readOnly")
    /// No space is left on the device; nothing of the transaction was stored.
    public static let diskFull = Code("diskFull")
    /// The device answered with an error; nothing of the transaction is known to be stored.
    public static let ioFailed = Code("ioFailed")
    /// A limit of the process or machine: memory, address space, descriptors.
    public static let outOfResources = Code("outOfResources")
    /// The file system gives no locks, as network file systems may not: use a local one.
    public static let noLocks = Code("noLocks")
    /// The place is on a network file system, on which LMDB loses data: use a local one, see
    /// ``Environment/Configuration/allowsNetworkFileSystem``.
    public static let networkFileSystem = Code("networkFileSystem")
    /// The closure went on after a call in its transaction had failed for good; nothing was stored.
    public static let transactionFailed = Code("transactionFailed")
    /// The environment was closed.
    public static let closed = Code("closed")
    /// An earlier failure left the environment unusable in this process: open it again.
    public static let broken = Code("broken")
    /// The environment was opened before `fork` and is used in the child.
    public static let forked = Code("forked")
    /// Other processes have the data file open under another lock file: theirs was deleted, or the
    /// file is reached through a hard link. Both would write at once. Close it there first.
    public static let lockMismatch = Code("lockMismatch")
    /// Transactions of this process did not end within the time allowed.
    public static let busy = Code("busy")
    /// Every environment that an ``EnvironmentPool`` may have open is leased.
    public static let poolExhausted = Code("poolExhausted")
    /// Stored bytes do not have the form their codec expects.
    public static let badForm = Code("badForm")
    /// Any other code; see ``LMDBError/rawCode``.
    public static let other = Code("other")
  }

  /// Why it was refused.
  public let code: Code
  /// LMDB's own code or an `errno`; nil when this module decided.
  public let rawCode: Int32?
  /// The call that was refused, a C name where there is one.
  public let operation: String
  /// The environment's directory.
  public let path: String?
  /// The table's name.
  public let table: String?
  /// Numbers that belong to the error (lengths, sizes), in words.
  public let detail: String?

  /// Makes an error; for code that wraps this module.
  public init(
    _ code: Code, rawCode: Int32? = nil, operation: String, path: String? = nil,
    table: String? = nil, detail: String? = nil
  ) {
    self.code = code
    self.rawCode = rawCode
    self.operation = operation
    self.path = path
    self.table = table
    self.detail = detail
  }

  /// One sentence that names the thing and the remedy.
  public var description: String {
    var text = "\(operation): \(remedy)"
    if let table { text += ", table \(table)" }
    if let path { text += ", in \(path)" }
    if let detail { text += " (\(detail))" }
    if let rawCode { text += " [\(rawCode)]" }
    return text
  }

  private var remedy: String {
    switch code {
    case .keyExists: "the key exists already"
    case .mapFull: "the map is at its ceiling; raise mapSizeByteCountMax or delete data"
    case .tablesFull: "too many tables; raise tableCountMax"
    case .readersFull: "every reader slot is taken; end readers or raise readerCountMax"
    case .transactionFull: "the transaction is too large; split it"
    case .mapResized: "another process enlarged the map; try again"
    case .badKeySize: "a key has 1 to 511 bytes"
    case .valueTooLarge: "a value has at most 1 GiB"
    case .tableMissing: "the table does not exist"
    case .incompatible: "the table has other flags on disk"
    case .damaged: "the file is damaged or no LMDB environment; restore it from a copy"
    case .versionMismatch: "the file has another LMDB format; dump it with the tool that wrote it"
    case .missing: "there is no environment"
    case .exists: "there is something at that place; choose another or remove it"
    case .notADirectory: "the place is not a directory"
    case .noPermission: "permission denied"
    case .readOnly: "it is read-only"
    case .diskFull: "no space is left on the device; free some and try again"
    case .ioFailed: "the device reported an error"
    case .outOfResources: "the process is out of memory, address space or descriptors"
    case .noLocks: "the file system gives no locks; use a local one"
    case .networkFileSystem: "LMDB loses data on network file systems; use a local one"
    case .transactionFailed: "an earlier call ended the transaction; pass its error on"
    case .closed: "the environment is closed"
    case .broken: "the environment failed earlier; open it again"
    case .forked: "the environment was opened before fork; open it in the child"
    case .lockMismatch: "others have it open under another lock file; close it there first"
    case .busy: "transactions of this process did not end in time"
    case .poolExhausted: "all environments of the pool are leased; end leases or raise its limit"
    case .badForm: "stored bytes do not have the expected form"
    default: "refused"
    }
  }
}

extension LMDBError {
  /// The one place where C codes become ours.
  /// - Parameter descriptor: the data file's, which the path may not lead to any more.
  static func from(
    _ raw: Int32, operation: String, path: String?, table: String? = nil, detail: String? = nil,
    descriptor: Int32 = -1
  ) -> LMDBError {
    let words = unsafe String(cString: mdb_strerror(raw))
    return LMDBError(
      code(for: raw, path: path, descriptor), rawCode: raw, operation: operation, path: path,
      table: table, detail: detail.map { "\(words); \($0)" } ?? words)
  }

  private static func code(for raw: Int32, path: String?, _ descriptor: Int32) -> Code {
    switch raw {
    case MDB_KEYEXIST: .keyExists
    case MDB_MAP_FULL: .mapFull
    case MDB_DBS_FULL: .tablesFull
    case MDB_READERS_FULL: .readersFull
    case MDB_TXN_FULL, MDB_CURSOR_FULL, MDB_PAGE_FULL: .transactionFull
    case MDB_MAP_RESIZED: .mapResized
    case MDB_BAD_VALSIZE: .badKeySize
    case MDB_NOTFOUND: .tableMissing
    case MDB_INCOMPATIBLE: .incompatible
    case MDB_INVALID, MDB_CORRUPTED, MDB_PAGE_NOTFOUND: .damaged
    case MDB_BAD_TXN: .transactionFailed
    case MDB_VERSION_MISMATCH: .versionMismatch
    case MDB_PANIC: .broken
    case ENOENT: .missing
    case EEXIST: .exists
    case ENOTDIR: .notADirectory
    case EACCES, EPERM: .noPermission
    case EROFS: .readOnly
    case ENOSPC, EDQUOT: .diskFull
    // LMDB 0.9 reports a short write as EIO, so a full disk has to be asked for.
    case EIO: isFull(at: path, descriptor) ? .diskFull : .ioFailed
    case ENOLCK, ENOSYS, EOPNOTSUPP: .noLocks
    case ENOMEM, EMFILE, ENFILE, EAGAIN: .outOfResources
    default: .other
    }
  }

  private static func isFull(at path: String?, _ descriptor: Int32) -> Bool {
    var numbers = statvfs()
    let isKnown =
      unsafe fstatvfs(descriptor, &numbers) == 0
      || path.map { unsafe statvfs($0, &numbers) == 0 } == true
    return isKnown && UInt64(numbers.f_bavail) * UInt64(numbers.f_frsize) < 1 << 20
  }
}
