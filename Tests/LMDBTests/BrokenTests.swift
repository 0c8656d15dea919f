#if os(Linux)
  import Foundation
  import Testing

  @testable import LMDB

  @Suite("An environment whose meta page could not be written")
  struct BrokenTests {
    /// LMDB writes it through a descriptor of its own, opened for synchronous writing.
    private static func breakMetaDescriptor(_ file: String) throws {
      let inode = try #require(FileNumbers(path: file)).inode
      for descriptor in Int32(3)..<256
      where FileNumbers(descriptor: descriptor)?.inode == inode
        && fcntl(descriptor, F_GETFL) & O_DSYNC != 0
      {
        let readOnly = open(file, O_RDONLY)
        try #require(dup2(readOnly, descriptor) == descriptor)
        close(readOnly)
        return
      }
      Issue.record("no descriptor found")
    }

    @Test("is broken, keeps what was committed, and can be opened again in the same process")
    func opensAgain() async {
      await #expect(processExitsWith: .success) {
        let directory = try TemporaryDirectory()
        let path = directory.file("env")
        let environment = try Environment.open(at: path)
        let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
        try await environment.write { try $0.put(1, for: 1, in: table) }
        try Self.breakMetaDescriptor(path + "/data.mdb")
        let first = await #expect(throws: LMDBError.self) {
          try await environment.write { try $0.put(2, for: 1, in: table) }
        }
        #expect(first != nil)
        let second = await #expect(throws: LMDBError.self) {
          try await environment.write { try $0.put(3, for: 1, in: table) }
        }
        #expect(second?.code == .broken)
        let again = try Environment.open(at: path)
        #expect(again !== environment)
        let found = try again.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
        #expect(try again.read { try $0.value(of: 1, in: found) } == 1)
        try await again.write { try $0.put(4, for: 1, in: found) }
        #expect(try again.read { try $0.value(of: 1, in: found) } == 4)
      }
    }
  }
#endif
