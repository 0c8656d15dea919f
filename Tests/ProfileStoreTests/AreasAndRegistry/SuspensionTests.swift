import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Synchronization
import Testing

extension AreasAndRegistry {
  @Suite("a store that is suspended")
  struct Suspending {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let adas: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, adas) = try await store.signedInProfile("ada", in: registry)
      try await adas.enqueue(.put("a", Data("1".utf8)), account: ada)
    }

    #if os(Linux)
      @Test("has no file open and holds no lock, of areas in use, kept, and the registry")
      func nothingHeld() async throws {
        _ = try await registry.profile(for: verified("bob"))
        store.session.signOut()
        let guest = try await registry.unownedProfile()
        let turn = try #require(try await adas.area.passes.turn(timeout: nil))
        turn.end()
        #expect(try !openFiles(under: store.path).isEmpty)
        #expect(try !locks(under: store.path).isEmpty)
        try await registry.suspend()
        #expect(registry.isSuspended)
        #expect(try openFiles(under: store.path) == [])
        #expect(try locks(under: store.path) == [])
        #expect(try maps(under: store.path) == [])
        try await registry.resume()
        withExtendedLifetime(guest) {}
      }
    #endif

    @Test("refuses every call with a typed error, and nothing is changed")
    func refuses() async throws {
      let table = try adas.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await registry.suspend()
      try await registry.suspend()
      #expect(await code { _ = try await registry.profile(for: ada) } == .suspended)
      #expect(await code { _ = try await registry.profile(for: verified("new")) } == .suspended)
      #expect(await code { _ = try await registry.currentProfile() } == .suspended)
      #expect(await code { _ = try await registry.unownedProfile() } == .suspended)
      #expect(await code { _ = try await registry.profiles() } == .suspended)
      #expect(await code { _ = try await registry.signOutSummary(of: ada) } == .suspended)
      #expect(await code { try await registry.erase(ada, discardingPending: true) } == .suspended)
      #expect(
        await code { try await adas.enqueue(.put("b", Data()), account: ada) } == .suspended)
      #expect(await code { try await adas.discard(UUID(), account: ada) } == .suspended)
      #expect(await code { _ = try adas.record("a") } == .suspended)
      #expect(await code { _ = try adas.owner } == .suspended)
      #expect(await code { _ = try adas.pendingSummary() } == .suspended)
      #expect(
        await code { _ = try adas.read { try $0.value(of: "k", in: table) } } == .suspended)
      #expect(
        await code { _ = try adas.table("more", key: TextCodec.self, value: TextCodec.self) }
          == .suspended)
      #expect(await code { _ = try await adas.area.passes.turn(timeout: nil) } == .suspended)
      #expect(await code { _ = try store.registry() } == .suspended)
      try await registry.resume()
      #expect(try adas.outbox().map(\.record) == ["a"])
    }

    @Test("goes on where it was: profiles and tables that the app holds stay good")
    func resumes() async throws {
      let table = try adas.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await adas.enqueue([.put("b", Data())], account: ada) {
        try $0.put("v", for: "k", in: table)
      }
      let second = try store.registry()
      for round in 0..<3 {
        // Whoever opened the store since shares its fate, too.
        let third = try store.registry()
        try await third.suspend()
        #expect(registry.isSuspended && second.isSuspended)
        #expect(await code { _ = try await second.profile(for: ada) } == .suspended)
        try await registry.resume()
        #expect(!registry.isSuspended)
        #expect(try adas.text("a") == "1")
        #expect(try adas.read { try $0.value(of: "k", in: table) } == "v")
        try await adas.enqueue([.put(RecordID("round \(round)"), Data())], account: ada) {
          try $0.put("\(round)", for: "round", in: table)
        }
        #expect(try await registry.profile(for: ada).area === adas.area)
        #expect(try await second.profile(for: ada).area === adas.area)
        #expect(try await third.profile(for: ada).area === adas.area)
      }
      #expect(try adas.outbox().count == 5)
      #expect(try adas.area.violations() == [])
      try await registry.resume()
    }

    @Test("takes writes that came before it, and gives later ones the error, never between")
    func writesAtOnce() async throws {
      let outcomes = try await withThrowingTaskGroup(of: String?.self) {
        [adas, ada, registry] group in
        for number in 0..<200 {
          if number == 100 {
            group.addTask {
              try await registry.suspend()
              return nil
            }
          }
          group.addTask {
            do {
              try await adas.enqueue(.put(RecordID("n\(number)"), Data()), account: ada)
              return "n\(number)"
            } catch let error as StoreError where error.code == .suspended {
              return nil
            }
          }
        }
        return try await group.reduce(into: [String?]()) { $0.append($1) }
      }
      try await registry.resume()
      #expect(outcomes.count == 201)
      let found = Set(
        try adas.outbox().map { String(decoding: $0.record.bytes, as: UTF8.self) })
      #expect(found == Set(outcomes.compactMap { $0 }).union(["a"]))
    }

    @Test("stops a pass first: its wait for the hub is cancelled, and those that wait are told")
    func passes() async throws {
      let queue = adas.area.passes
      let turn = try #require(try await queue.turn(timeout: nil))
      let isWaiting = Mutex(false)
      let running = Task {
        defer { turn.end() }
        try await queue.interruptible {
          isWaiting.withLock { $0 = true }
          try await Task.sleep(for: .seconds(3_600))
        }
      }
      let waiting = Task { try await queue.turn(timeout: nil) }
      try await eventually { isWaiting.withLock { $0 } && queue.count == 2 }
      try await registry.suspend()
      #expect(queue.count == 0)
      #expect(await code { try await running.value } == .suspended)
      #expect(await code { _ = try await waiting.value } == .suspended)
      #expect(await code { try await queue.interruptible {} } == .suspended)
      try await registry.resume()
      let next = try #require(try await queue.turn(timeout: .zero))
      try await queue.interruptible {}
      next.end()
    }

    @Test("waits for a pass's step to end, and says so when it does not")
    func patience() async throws {
      let turn = try #require(try await adas.area.passes.turn(timeout: nil))
      #expect(await code { try await registry.suspend(patience: .milliseconds(20)) } == .stillInUse)
      #expect(await code { _ = try adas.record("a") } == nil)
      #expect(await code { _ = try await registry.profile(for: verified("b")) } == .suspended)
      turn.end()
      try await registry.suspend()
      #expect(await code { _ = try adas.record("a") } == .suspended)
      try await registry.resume()
    }

    @Test("one that still waits is over when the store is resumed")
    func resumedMeanwhile() async throws {
      let turn = try #require(try await adas.area.passes.turn(timeout: nil))
      let suspending = Task { [registry] in try await registry.suspend(patience: .seconds(600)) }
      try await eventually { registry.isSuspended }
      try await registry.resume()
      // The person is back: it closes nothing any more, whatever it waited for.
      try await suspending.value
      turn.end()
      #expect(!registry.isSuspended)
      #expect(try adas.text("a") == "1")
      let next = try #require(try await adas.area.passes.turn(timeout: .zero))
      next.end()
    }

    @Test("waits for a read closure of the app, and says so when it does not return")
    func longRead() async throws {
      let begun = DispatchSemaphore(value: 0)
      let mayEnd = DispatchSemaphore(value: 0)
      let reader = Thread { [adas] in
        do {
          try adas.read { _ in
            begun.signal()
            mayEnd.wait()
          }
        } catch { Issue.record(error) }
      }
      reader.start()
      await wait(for: begun)
      #expect(await code { try await registry.suspend(patience: .milliseconds(50)) } == .stillInUse)
      mayEnd.signal()
      try await registry.suspend()
      try await registry.resume()
      #expect(try adas.text("a") == "1")
    }

    @Test("cannot be asked for inside an apply closure of its own")
    func insideClosure() async throws {
      let pass = PassContext.Pass(area: adas.id, session: store.session)
      let isBusy = await PassContext.$passes.withValue([pass]) {
        await code { try await registry.suspend() }
      }
      #expect(isBusy == .stillInUse)
      #expect(!registry.isSuspended)
      #expect(try adas.text("a") == "1")
    }

    @Test("learns what another process did meanwhile: an area that it erased throws erased")
    func erasedMeanwhile() async throws {
      let bob = try await registry.profile(for: verified("bob"))
      try await registry.suspend()
      await #expect(processExitsWith: .success) { [path = store.path as String] in
        let ada = try verified("ada")
        let session = AppSession()
        session.signIn(ada, token: "token")
        let registry = try ProfileRegistry(directory: URL(fileURLWithPath: path), session: session)
        let profile = try await registry.profile(for: ada)
        try await profile.enqueue(.put("theirs", Data()), account: ada)
        try await registry.erase(verified("bob"))
      }
      #expect(try store.entries() == [adas.id.description])
      try await registry.resume()
      #expect(try adas.outbox().map(\.record) == ["a", "theirs"])
      #expect(await code { _ = try bob.owner } == .erased)
      #expect(try await registry.profile(for: verified("bob")).id != bob.id)
    }

    @Test("an area that was restored from a copy meanwhile becomes a client of its own")
    func replacedMeanwhile() async throws {
      let client = try adas.area.facts().client.id
      try await adas.area.environment.copy(to: store.path + "/copied")
      try await adas.enqueue(.put("later", Data()), account: ada)
      try await registry.suspend()
      let directory = registry.directory(of: adas.id)
      try FileManager.default.removeItem(atPath: directory + "/data.mdb")
      try FileManager.default.moveItem(
        atPath: store.path + "/copied/data.mdb", toPath: directory + "/data.mdb")
      try FileManager.default.removeItem(atPath: store.path + "/copied")
      try await registry.resume()
      #expect(try adas.area.facts().client.id != client)
      #expect(try adas.waiting().map(\.record) == ["a"])
      #expect(try adas.waiting().map(\.firstSent) == [0])
      #expect(try await registry.profile(for: ada).area === adas.area)
    }

    @Test("one that another area took the place of stays closed, and resume says so")
    func foreignMeanwhile() async throws {
      store.expectDamage()
      let bob = try await registry.profile(for: verified("bob"))
      try await registry.suspend()
      let places = [registry.directory(of: adas.id), registry.directory(of: bob.id)]
      try FileManager.default.removeItem(atPath: places[1] + "/data.mdb")
      try FileManager.default.copyItem(
        atPath: places[0] + "/data.mdb", toPath: places[1] + "/data.mdb")
      #expect(await code { try await registry.resume() } == .damaged)
      #expect(try adas.text("a") == "1")
      #expect(await code { _ = try bob.owner } == .suspended)
    }

    private func wait(for semaphore: DispatchSemaphore) async {
      await withCheckedContinuation { continuation in
        Thread {
          semaphore.wait()
          continuation.resume()
        }.start()
      }
    }
  }
}

#if os(Linux)
  /// The locks of any process on files under a directory, as the kernel lists them.
  private func locks(under path: String) throws -> [Substring] {
    var inodes: Set<String> = []
    for file in FileManager.default.enumerator(atPath: path)?.allObjects ?? [] {
      guard let file = file as? String else { continue }
      let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + file)
      if let inode = attributes[.systemFileNumber] as? NSNumber { inodes.insert("\(inode)") }
    }
    return try kernelFile("/proc/locks").split(separator: "\n").filter { line in
      line.split(separator: " ").contains { field in
        let parts = field.split(separator: ":")
        return parts.count == 3 && inodes.contains(String(parts[2]))
      }
    }
  }

  /// The mappings of this process of files under a directory.
  private func maps(under path: String) throws -> [Substring] {
    let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    return try kernelFile("/proc/self/maps").split(separator: "\n").filter {
      $0.contains(real + "/")
    }
  }

  private func kernelFile(_ path: String) throws -> String {
    let handle = try #require(FileHandle(forReadingAtPath: path))
    return String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
  }
#endif
