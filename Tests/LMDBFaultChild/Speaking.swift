import Foundation
import LMDB

/// Writes a line with one call, so that a kill cannot cut it and tasks cannot mix theirs.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(1, bytes, bytes.count)
}

/// An error in words that a test can compare: the code and the call of ours, else its type.
func describe(_ error: any Error) -> String {
  guard let error = error as? LMDBError else { return "untyped \(type(of: error)) \(error)" }
  return "\(error.code) \(error.operation) \(error.rawCode ?? 0)"
}

/// The word at a place of the command line.
struct MissingWord: Error {}

extension ArraySlice<String> {
  func word(_ index: Int) throws -> String {
    guard index < count else { throw MissingWord() }
    return self[startIndex + index]
  }

  func number(_ index: Int) throws -> Int {
    guard let number = Int(try word(index)) else { throw MissingWord() }
    return number
  }
}

/// Runs async work from the main thread, which is none of the pool's and may block.
func waitFor(_ body: @escaping @Sendable () async throws -> Void) throws {
  let outcome = WorkOutcome()
  let done = DispatchSemaphore(value: 0)
  Task {
    do {
      try await body()
    } catch {
      outcome.set(error)
    }
    done.signal()
  }
  done.wait()
  if let error = outcome.error { throw error }
}

private final class WorkOutcome: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): written before the semaphore is signalled, read after it.
  private(set) var error: (any Error)?
  func set(_ error: any Error) { self.error = error }
}
