import CBench
import Measuring

/// What one engine did in one go.
struct Pass {
  var nanoseconds: UInt64 = 0
  var operations = 0
  /// XOR of the touched values.
  var digest: UInt64 = 0
  var commits = 0
  /// Beside a writer: the records that both readers saw. Of HTTP: the bytes that came.
  var readerOperations = 0

  var seconds: Double { Double(nanoseconds) / 1e9 }

  /// Operations in a second.
  var speed: Double { Double(operations) * 1e9 / Double(max(nanoseconds, 1)) }
}

extension Pass {
  /// - Throws: ``BenchFailure`` when the C pass failed.
  init(
    _ pass: cbench_pass, _ engine: Engine, message: (Int32) -> UnsafePointer<CChar>?
  ) throws {
    guard pass.code == 0 else {
      let call = pass.call.map { String(cString: $0) } ?? "a call"
      let reason = message(pass.code).map { String(cString: $0) } ?? "code \(pass.code)"
      throw BenchFailure(sentence: "\(engine.rawValue): \(call): \(reason)")
    }
    nanoseconds = pass.nanoseconds
    operations = Int(pass.operations)
    digest = pass.digest
    commits = Int(pass.commits)
    readerOperations = Int(pass.extra)
  }

  /// - Throws: ``Disagreement`` unless as much was read or written as it had to be, and the same.
  func verified(
    _ engine: Engine, _ what: String, operations: Int, digest expected: UInt64
  ) throws -> Pass {
    guard self.operations == operations, digest == expected else {
      throw Disagreement(
        sentence: "\(engine.rawValue), \(what): \(self.operations) of \(operations), "
          + "digest \(digest == expected ? "right" : "wrong")")
    }
    return self
  }
}

/// The engines' common way to read a value.
@inline(__always)
func touch(_ value: RawSpan) -> UInt64 {
  value.withUnsafeBytes { cbench_touch($0.baseAddress, $0.count) }
}
