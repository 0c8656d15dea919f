import Foundation
import Testing

@testable import ProfileStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("a lock on a file")
struct FileLocks {
  @Test("ends with its holder, also while a program that was being started has a copy of it")
  func inherited() throws {
    let path = NSTemporaryDirectory() + "/lock-test-" + UUID().uuidString
    defer { unlink(path) }
    var copy: Int32 = -1
    do {
      let lock = try FileLock.exclusive(path)
      #expect(try FileLock.ifFree(path) == nil)
      // As a process between its fork and its exec has it.
      copy = dup(lock.descriptor)
      #expect(try FileLock.ifFree(path) == nil)
    }
    #expect(try FileLock.ifFree(path) != nil)
    close(copy)
  }
}
