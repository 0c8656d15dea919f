import Foundation
import LMDB

/// Does what it is told, a command a line on standard input, and answers each with a line: `ok` and
/// what there is to say, or an error in words.
final class Session {
  private var environment: Environment?
  private var table: Table<UInt64Codec, BytesCodec>?
  private var held: [HeldReader] = []
  private var descriptors: [Int32] = []

  struct NotOpen: Error {}
  struct UnknownCommand: Error {}
  struct CallFailed: Error {
    let number: Int32
  }

  func run() throws {
    while let line = readLine() {
      let words = line.split(separator: " ").map(String.init)[...]
      guard let first = words.first else { continue }
      do {
        let answer = try perform(first, words.dropFirst())
        say(answer.isEmpty ? "ok" : "ok \(answer)")
      } catch {
        say(describe(error))
      }
    }
  }

  private func perform(_ command: String, _ words: ArraySlice<String>) throws -> String {
    switch command {
    case "open": try open(words)
    case "put": try put(words)
    case "get": return try get(words)
    case "delete": try delete(words)
    case "deleteAll": try deleteAll()
    case "count": return "\(try count())"
    case "scan": return "\(try scan())"
    case "use": return try use(words)
    case "hold": try held.append(HeldReader(opened()))
    case "release":
      held.forEach { $0.release() }
      held = []
    case "intact":
      let report = try Environment.checkIntegrity(at: try words.word(0))
      return report.isIntact ? "intact" : "\(report.findings.prefix(3))"
    case "close":
      try opened().close()
      forget()
    case "map": return "\(try opened().mapByteCount)"
    case "tables": for index in 0..<(try words.number(0)) { try openTable("t\(index)") }
    case "limit": try limit(words)
    case "descriptors": try takeDescriptors(leaving: words.number(0))
    case "noDescriptors":
      descriptors.forEach { _ = Foundation.close($0) }
      descriptors = []
    case "become":
      let user = UInt32(try words.number(0))
      try call(setgid(user))
      try call(setuid(user))
    default: throw UnknownCommand()
    }
    return ""
  }

  private func opened() throws -> Environment {
    guard let environment else { throw NotOpen() }
    return environment
  }

  private func forget() {
    environment = nil
    table = nil
  }

  private func open(_ words: ArraySlice<String>) throws {
    var configuration = Environment.Configuration()
    for word in words.dropFirst() {
      let parts = word.split(separator: "=").map(String.init)
      switch (parts[0], Int(parts[1])) {
      case ("map", let number?): configuration.mapSizeByteCount = number
      case ("ceiling", let number?): configuration.mapSizeByteCountMax = number
      case ("readers", let number?): configuration.readerCountMax = number
      case ("tables", let number?): configuration.tableCountMax = number
      case ("check", let number?): configuration.isCheckedAtOpen = number == 1
      case ("access", _): configuration.access = parts[1] == "read" ? .read : .write
      default: throw UnknownCommand()
      }
    }
    let environment = try Environment.open(at: try words.word(0), configuration: configuration)
    self.environment = environment
    table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
  }

  private func openTable(_ name: String) throws {
    _ = try opened().table(name, key: UInt64Codec.self, value: BytesCodec.self)
  }

  private func openedTable() throws -> Table<UInt64Codec, BytesCodec> {
    guard let table else { throw NotOpen() }
    return table
  }

  /// `put KEY COUNT SIZE`: values under that many keys, each in a transaction of its own.
  private func put(_ words: ArraySlice<String>) throws {
    let table = try openedTable()
    let first = UInt64(try words.number(0))
    let size = try words.number(2)
    for key in first..<first + UInt64(try words.number(1)) {
      let value = [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: size)
      try opened().write { try $0.put(value, for: key, in: table) }
    }
  }

  private func get(_ words: ArraySlice<String>) throws -> String {
    let table = try openedTable()
    let key = UInt64(try words.number(0))
    return try opened().read { transaction in
      guard let bytes = try transaction.bytes(of: key, in: table) else { return "none" }
      return "\(bytes.byteCount)"
    }
  }

  /// `delete KEY COUNT`, each in a transaction of its own.
  private func delete(_ words: ArraySlice<String>) throws {
    let table = try openedTable()
    let first = UInt64(try words.number(0))
    for key in first..<first + UInt64(try words.number(1)) {
      try opened().write { _ = try $0.delete(key, in: table) }
    }
  }

  private func deleteAll() throws {
    let table = try openedTable()
    try opened().write { try $0.deleteAll(in: table) }
  }

  private func count() throws -> Int {
    let table = try openedTable()
    return try opened().read { try $0.count(of: table) }
  }

  /// Reads every byte in both directions.
  private func scan() throws -> Int {
    let table = try openedTable()
    return try opened().read { transaction in
      var counts = [0, 0]
      for isReversed in [false, true] {
        try transaction.scan(table, reversed: isReversed) { key, value in
          counts[isReversed ? 1 : 0] += 1
          _ = key.copiedBytes()
          _ = value.copiedBytes()
          return .next
        }
      }
      return min(counts[0], counts[1])
    }
  }

  /// `use PATH`: everything that an app does with a file: opens, reads, writes, closes.
  private func use(_ words: ArraySlice<String>) throws -> String {
    // What was opened before is closed by the last that lets go of it.
    forget()
    defer { forget() }
    do {
      try open(words)
      let scanned = try scan()
      let counted = try count()
      for key in UInt64(0)..<50 { _ = try get(["\(key * 7)"]) }
      try put(["1000000", "20", "900"])
      try delete(["1000000", "20"])
      try opened().close()
      return "\(scanned) \(counted)"
    } catch {
      // Closed whatever it was, so that the next file is opened afresh.
      try environment?.close()
      throw error
    }
  }

  /// `limit descriptors COUNT`, or `limit space COUNT`: that many bytes more than are used now.
  private func limit(_ words: ArraySlice<String>) throws {
    let isSpace = try words.word(0) == "space"
    let resource = isSpace ? RLIMIT_AS : RLIMIT_NOFILE
    var limits = rlimit()
    try call(getrlimit(__rlimit_resource_t(resource.rawValue), &limits))
    let used = isSpace ? try usedAddressSpace() : 0
    limits.rlim_cur =
      try words.word(1) == "none" ? limits.rlim_max : rlim_t(used + (try words.number(1)))
    try call(setrlimit(__rlimit_resource_t(resource.rawValue), &limits))
  }

  private func usedAddressSpace() throws -> Int {
    let numbers = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return (numbers.split(separator: " ").first.flatMap { Int($0) } ?? 0) * Int(getpagesize())
  }

  /// Opens files until only that many descriptors are free.
  private func takeDescriptors(leaving count: Int) throws {
    while true {
      let descriptor = Foundation.open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { break }
      descriptors.append(descriptor)
    }
    for _ in 0..<min(count, descriptors.count) { _ = Foundation.close(descriptors.removeLast()) }
  }

  private func call(_ result: Int32) throws {
    guard result == 0 else { throw CallFailed(number: errno) }
  }
}

/// A snapshot that another thread holds until it is told to let go.
final class HeldReader: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): the error is written before `isHeld` is signalled, read after it.
  private let isHeld = DispatchSemaphore(value: 0)
  private let mayEnd = DispatchSemaphore(value: 0)
  private let hasEnded = DispatchSemaphore(value: 0)
  private var error: (any Error)?

  init(_ environment: Environment) throws {
    Thread.detachNewThread { [self] in
      do {
        try environment.read { _ in
          isHeld.signal()
          mayEnd.wait()
        }
      } catch {
        self.error = error
        isHeld.signal()
      }
      hasEnded.signal()
    }
    isHeld.wait()
    if let error { throw error }
  }

  func release() {
    mayEnd.signal()
    hasEnded.wait()
  }
}
