import Foundation
import HubProtocol
import ProfileStore

// What changes which areas there are, and whose they are.
extension Child {
  /// A fresh area for `ada`, in a store that has one of `bob`.
  func provision() async throws {
    let registry = try openStore()
    try await makeBob(registry)
    let ada = try verified("ada")
    begin()
    _ = try await registry.profile(for: ada)
    end()
  }

  /// The signed-out area becomes that of `ada`.
  func bind() async throws {
    let registry = try openStore()
    let guest = try await makeGuest(registry)
    let ada = try verified("ada")
    begin()
    try await guest.bindAccount(ada, adoptingUnownedData: true)
    end()
  }

  /// The content of the signed-out area goes into the area that `ada` has already.
  func adopt() async throws {
    let registry = try openStore()
    let (ada, profile) = try await signIn("ada", registry)
    try await profile.enqueue(.put("own", canary("ada", "own")), account: ada)
    signOut(registry)
    let guest = try await makeGuest(registry)
    begin()
    try await guest.bindAccount(ada, adoptingUnownedData: true)
    end()
  }

  /// The area of `ada` goes, that of `bob` stays.
  func erase() async throws {
    let registry = try openStore()
    try await makeBob(registry)
    let (ada, profile) = try await signIn("ada", registry)
    for name in ["a", "b", "c"] {
      try await profile.enqueue(.put(RecordID(name), canary("ada", name)), account: ada)
    }
    begin()
    try await registry.erase(ada, discardingPending: true)
    end()
  }

  /// The registry is lost, and made again from the areas.
  func rebuild() async throws {
    do {
      let registry = try openStore()
      try await makeBob(registry)
      let (ada, profile) = try await signIn("ada", registry)
      try await profile.enqueue(.put("own", canary("ada", "own")), account: ada)
      signOut(registry)
      _ = try await makeGuest(registry)
    }
    let lost = directory.appending(path: "registry").path
    try FileManager.default.removeItem(atPath: lost)
    begin()
    _ = try openStore()
    end()
  }

  private func makeBob(_ registry: ProfileRegistry) async throws {
    let (bob, profile) = try await signIn("bob", registry)
    try await profile.enqueue(.put("bobs", canary("bob", "bobs")), account: bob)
    signOut(registry)
  }

  private func makeGuest(_ registry: ProfileRegistry) async throws -> Profile {
    let guest = try await registry.unownedProfile()
    for name in ["g1", "g2"] {
      try await guest.enqueue(.put(RecordID(name), canary("guest", name)), account: nil)
    }
    return guest
  }

  private func signOut(_ registry: ProfileRegistry) {
    (registry.session as? AppSession)?.signOut()
  }
}
