import Foundation
import Testing

/// Every file is opened and used by a child, so that a signal is a finding about that file.
///
/// A file that is cut short while it is open is no part of this: the pages behind its new end are
/// gone from the map of whoever has it open, and reading them ends the process with SIGBUS. No check
/// can come between. Nothing of this package cuts a file that is in use.
@Suite("A damaged data file", .ownThread)
struct DamagedFileTests {
  static let pageByteCount = 4_096

  let scratch: Scratch
  let whole: Data
  /// The same records, and pages at the end that are free.
  let withFreePages: Data
  let tester: FileTester

  init() throws {
    scratch = try Scratch(inMemory: true)
    let session = try FaultChild(["session"])
    try session.expect("open \(scratch.file("good"))")
    // Records in leaves, and some on pages of their own.
    try session.expect("put 0 60 900")
    try session.expect("put 100 6 9000")
    try session.expect("close")
    whole = try Data(contentsOf: URL(filePath: scratch.file("good/data.mdb")))
    try session.expect("open \(scratch.file("good"))")
    try session.expect("put 200 40 900")
    try session.expect("delete 200 40")
    try session.expect("close")
    withFreePages = try Data(contentsOf: URL(filePath: scratch.file("good/data.mdb")))
    tester = FileTester(scratch)
  }

  @Test("is whole to begin with")
  func undamaged() throws {
    #expect(try tester.use(whole) == "ok 66 66")
  }

  @Test("is an error when it was cut at any page, or a byte beside it")
  func truncated() throws {
    var sizes: [Int] = [1, 100]
    for boundary in stride(from: 0, through: whole.count, by: Self.pageByteCount) {
      sizes += [boundary - 1, boundary, boundary + 1]
    }
    let needed = usedByteCount(of: whole)
    var refused = 0
    for size in sizes where size >= 0 && size <= whole.count {
      let answer = try tester.use(whole.prefix(size))
      if size < needed {
        #expect(answer.hasPrefix("damaged "), "cut to \(size) of \(needed) bytes: \(answer)")
        refused += 1
      } else {
        #expect(answer == "ok 66 66", "cut to \(size) of \(needed) bytes")
      }
    }
    // Of pages that are free nothing can be lost.
    for size in stride(from: Self.pageByteCount, to: withFreePages.count, by: Self.pageByteCount) {
      let answer = try tester.use(withFreePages.prefix(size))
      #expect(answer.hasPrefix("damaged ") || answer == "ok 66 66", "cut to \(size): \(answer)")
    }
    print("truncated data file: \(refused) lengths")
    #expect(refused > 40)
  }

  @Test("is an error when it is garbage, empty or all zero")
  func garbage() throws {
    var seed = FaultSeed(100)
    var count = 0
    for size in [0, 1, 151, 152, 4_095, 4_096, 4_097, 8_191, 8_192, 8_193, 65_536, 1 << 20] {
      let random = Data((0..<size).map { _ in UInt8(truncatingIfNeeded: seed.next()) })
      for bytes in [random, Data(count: size)] {
        #expect(try tester.use(bytes).hasPrefix("damaged "), "\(size) bytes")
        count += 1
      }
    }
    print("garbage data file: \(count) files")
  }

  @Test("is an error when it was written with another page size or version")
  func foreign() throws {
    for size in [512, 1_024, 2_048, 8_192, 16_384, 32_768, 65_536] {
      // As a machine with such pages writes it: the second meta page lies one page behind.
      var bytes = Data(count: max(size * 16, whole.count))
      for page in 0..<2 {
        let meta = whole[page * Self.pageByteCount..<page * Self.pageByteCount + 160]
        bytes.replaceSubrange(page * size..<page * size + 160, with: meta)
        bytes.set(UInt32(size), at: page * size + 40)
      }
      #expect(try tester.use(bytes).hasPrefix("versionMismatch "), "pages of \(size) bytes")
    }
    for version: UInt32 in [0, 2, 99, 999, .max] {
      var bytes = whole
      for page in 0..<2 { bytes.set(version, at: page * Self.pageByteCount + 20) }
      #expect(try tester.use(bytes).hasPrefix("versionMismatch "), "version \(version)")
    }
    // The other byte order.
    var swapped = whole
    for page in 0..<2 {
      swapped.set(UInt32(0xBEEF_C0DE).byteSwapped, at: page * Self.pageByteCount + 16)
    }
    #expect(try tester.use(swapped).hasPrefix("damaged "))
  }

  @Test("is an error when both meta pages are bad, or one of them is torn in its head")
  func badMetaPages() throws {
    var seed = FaultSeed(101)
    for pages in [[0], [1], [0, 1]] {
      for kind in ["zero", "garbage"] {
        var bytes = whole
        for page in pages {
          let start = page * Self.pageByteCount
          bytes.replaceSubrange(
            start..<start + Self.pageByteCount,
            with: (0..<Self.pageByteCount).map { _ in
              kind == "zero" ? 0 : UInt8(truncatingIfNeeded: seed.next())
            })
        }
        #expect(try tester.use(bytes).hasPrefix("damaged "), "\(kind) in \(pages)")
      }
    }
  }

  @Test("never ends the process when a word of a meta page is wrong")
  func wrongMetaWords() throws {
    var seed = FaultSeed(102)
    var count = 0
    for page in 0..<2 {
      for offset in stride(from: 0, to: 152, by: 4) {
        for value in [0, 1, .max, UInt32(truncatingIfNeeded: seed.next())] {
          var bytes = whole
          bytes.set(value, at: page * Self.pageByteCount + offset)
          let answer = try tester.use(bytes)
          #expect(
            !answer.hasPrefix("untyped"), "page \(page), byte \(offset) = \(value): \(answer)")
          count += 1
        }
      }
    }
    print("wrong word in a meta page: \(count) files, \(tester.crashes.count) signals")
    #expect(tester.crashes == [])
  }

  @Test("is an error when any page in the middle is garbage and it is checked at open")
  func garbagePages() throws {
    var seed = FaultSeed(103)
    var outcomes: [String: Int] = [:]
    for page in 2..<(usedByteCount(of: withFreePages) / Self.pageByteCount) {
      // A word, parts of the page, all of it, and a single bit.
      for size in [2, 8, 16, 64, 512, 4_096, 4_096, 0] {
        var bytes = withFreePages
        let place = UInt64(Self.pageByteCount - size)
        let start = page * Self.pageByteCount + (size < 4_096 ? Int(seed.next() % place) : 0)
        // Mostly in the head of the page: behind it stand values, which have no form to be wrong.
        let head = page * Self.pageByteCount + Int(seed.next() % 40)
        if size == 0 {
          bytes[head] ^= 1 << UInt8(seed.next() % 8)
        } else {
          let first = size <= 16 ? head : start
          bytes.replaceSubrange(
            first..<first + size,
            with: (0..<size).map { _ in UInt8(truncatingIfNeeded: seed.next()) })
        }
        let answer = try tester.use(bytes, "check=1")
        let first = answer.split(separator: " ").first.map(String.init) ?? ""
        #expect(["ok", "damaged"].contains(first), "\(size) bytes in page \(page): \(answer)")
        outcomes[first, default: 0] += 1
      }
    }
    print("garbage in the middle: \(outcomes)")
    #expect(tester.crashes == [])
    #expect(outcomes["damaged", default: 0] > 100)
  }
}

/// Lets a child open and use one data file after the other.
final class FileTester {
  private let scratch: Scratch
  private var session: FaultChild?
  private var fileCount = 0
  /// The answers that were signals.
  private(set) var crashes: [String] = []

  init(_ scratch: Scratch) { self.scratch = scratch }

  /// What the child answered; `signal N` when the file was the end of it.
  func use(_ bytes: Data, _ options: String = "") throws -> String {
    fileCount += 1
    let directory = scratch.file("file\(fileCount)")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { unlink(directory + "/data.mdb") }
    try bytes.write(to: URL(filePath: directory + "/data.mdb"))
    let session = try session ?? FaultChild(["session"])
    self.session = session
    do {
      return try session.ask("use \(directory) \(options)", within: 20)
    } catch FaultChildError.ended(let ending, _) {
      self.session = nil
      crashes.append("\(ending)")
      return "\(ending)"
    } catch FaultChildError.hung {
      self.session = nil
      crashes.append("hung")
      return "hung"
    }
  }
}

/// The bytes that a file must have by its newer meta page.
func usedByteCount(of file: Data) -> Int {
  func word(_ offset: Int) -> UInt64 {
    file.subdata(in: offset..<offset + 8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
  }
  let pages = [0, DamagedFileTests.pageByteCount]
  let newest = pages.max { word($0 + 144) < word($1 + 144) } ?? 0
  return (Int(word(newest + 136)) + 1) * DamagedFileTests.pageByteCount
}

extension Data {
  mutating func set<T: FixedWidthInteger>(_ value: T, at offset: Int) {
    replaceSubrange(
      offset..<offset + MemoryLayout<T>.size, with: Swift.withUnsafeBytes(of: value) { Data($0) })
  }
}
