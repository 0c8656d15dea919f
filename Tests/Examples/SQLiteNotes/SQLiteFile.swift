import CSQLite
import Foundation

/// What SQLite refused.
struct SQLiteError: Error, CustomStringConvertible {
  let description: String
}

/// A value of a column.
enum SQLiteValue {
  case null
  case integer(Int64)
  case text(String)
  case blob(Data)

  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var text: String? { if case .text(let value) = self { value } else { nil } }
  var blob: Data? { if case .blob(let value) = self { value } else { nil } }
}

/// As much of SQLite as this example needs: statements and transactions on one connection.
final class SQLiteFile {
  private let connection: OpaquePointer

  /// Opens the file, made if there is none. Each commit is on disk when it returns.
  init(_ url: URL) throws {
    var opened: OpaquePointer?
    let code = sqlite3_open(url.path, &opened)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close(opened)
      throw SQLiteError(description: "\(url.lastPathComponent) cannot be opened")
    }
    connection = opened
    try run("PRAGMA synchronous = FULL")
  }

  deinit { sqlite3_close(connection) }

  /// Runs a statement and returns its rows.
  @discardableResult
  func run(_ statement: String, _ values: [SQLiteValue] = []) throws -> [[SQLiteValue]] {
    var prepared: OpaquePointer?
    try check(sqlite3_prepare_v2(connection, statement, -1, &prepared, nil))
    defer { sqlite3_finalize(prepared) }
    for (index, value) in values.enumerated() {
      try check(bind(value, to: prepared, at: Int32(index + 1)))
    }
    var rows: [[SQLiteValue]] = []
    while true {
      switch sqlite3_step(prepared) {
      case SQLITE_ROW:
        rows.append((0..<sqlite3_column_count(prepared)).map { column(prepared, $0) })
      case SQLITE_DONE: return rows
      case let code: try check(code)
      }
    }
  }

  /// Runs the statements of `body` in one transaction: all of them or none.
  func transaction<R>(_ body: () throws -> R) throws -> R {
    try run("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      try run("ROLLBACK")
      throw error
    }
  }

  private func check(_ code: Int32) throws {
    guard code != SQLITE_OK else { return }
    throw SQLiteError(description: "SQLite: \(String(cString: sqlite3_errmsg(connection)))")
  }

  private func bind(_ value: SQLiteValue, to statement: OpaquePointer?, at index: Int32) -> Int32 {
    // Tells SQLite to copy the bytes before the call returns.
    let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch value {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let value): return sqlite3_bind_int64(statement, index, value)
    case .text(let value):
      return sqlite3_bind_text(statement, index, value, Int32(value.utf8.count), copied)
    case .blob(let value):
      guard !value.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
      return value.withUnsafeBytes {
        sqlite3_bind_blob(statement, index, $0.baseAddress, Int32($0.count), copied)
      }
    }
  }

  private func column(_ statement: OpaquePointer?, _ index: Int32) -> SQLiteValue {
    switch sqlite3_column_type(statement, index) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, index))
    case SQLITE_TEXT: return .text(String(decoding: bytes(statement, index), as: UTF8.self))
    case SQLITE_BLOB: return .blob(bytes(statement, index))
    default: return .null
    }
  }

  private func bytes(_ statement: OpaquePointer?, _ index: Int32) -> Data {
    guard let start = sqlite3_column_blob(statement, index) else { return Data() }
    return Data(bytes: start, count: Int(sqlite3_column_bytes(statement, index)))
  }
}
