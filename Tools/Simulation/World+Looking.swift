import Foundation
import LMDB
import ProfileStore

// What is looked at after each step, and, with everything in it, now and then.
extension World {
  /// Looks at what was written since the last time.
  func look() {
    machine.looking {
      collectWrites()
      for device in devices where device.life.map({ !$0.isSuspended }) ?? false {
        for area in changedAreas(of: device) { look(at: area, on: device) }
        lookAtOutboxes(of: device)
      }
    }
  }

  /// Looks at every area of every living device, its files whole.
  func lookDeep() {
    machine.looking {
      for device in devices where device.life.map({ !$0.isSuspended }) ?? false {
        lookDeep(at: device)
      }
    }
  }

  private func collectWrites() {
    while let (directory, found) = machine.nextWrites() {
      guard let device = devices.first(where: { directory.hasPrefix($0.directory + "/") }),
        let area = Self.area(in: directory)
      else { continue }
      device.written[area, default: CanarySet()].formUnion(found)
    }
  }

  /// The area that a directory of environments belongs to: its own, or one below it.
  private static func area(in directory: String) -> AreaID? {
    directory.split(separator: "/").reversed().lazy.compactMap { name in
      AreaID(String(name.prefix { $0 != "." }))
    }.first
  }

  private func changedAreas(of device: Device) -> [AreaID] {
    guard let life = device.life else { return [] }
    var changed = Set(device.written.keys)
    for (id, profile) in life.profiles {
      if profile.area.environment.commitCount != device.tracks[id]?.commitCount {
        changed.insert(id)
      }
    }
    return changed.sorted { $0.description < $1.description }
  }

  private func path(of area: AreaID, on device: Device) -> String {
    ProfileRegistry.directory(of: area, in: device.directory)
  }

  /// - Returns: false when it cannot be looked at now.
  @discardableResult
  private func look(at id: AreaID, on device: Device) -> Bool {
    guard FileManager.default.fileExists(atPath: path(of: id, on: device)) else {
      if FileManager.default.fileExists(atPath: path(of: id, on: device) + ".making") {
        return true
      }
      device.tracks[id] = nil
      device.written[id] = nil
      return true
    }
    do {
      try read(id, of: device)
    } catch let error as StoreError where error.code == .storage && error.cause?.code == .closed {
      // It was erased, and somebody still has it open.
      device.tracks[id] = nil
    } catch let error as StoreError where error.code == .suspended {
      // As soon as it is resumed.
      device.tracks[id]?.commitCount = nil
      return false
    } catch {
      violate([Violation(.failing, "an area cannot be looked at: \(Failure.name(error))")])
    }
    return true
  }

  private func read(_ id: AreaID, of device: Device) throws {
    let area = try Area.open(
      id, directory: path(of: id, on: device), limits: StoreLimits(), registry: nil)
    let commitCount = area.environment.commitCount
    let standing = try area.standing()
    let place = "area \(id) of device \(device.number)"
    if var track = device.tracks[id] {
      violate(
        Checks.ownership(before: track.standing.owner, after: standing.owner, place: place)
          + Checks.monotony(
            before: track.standing, after: standing, left: track.left, place: place))
      if let old = track.standing.cursor?.epoch, old != standing.cursor?.epoch {
        track.left.insert(old)
      }
      track.standing = standing
      track.commitCount = commitCount
      device.tracks[id] = track
    } else {
      device.tracks[id] = Device.Track(standing: standing, commitCount: commitCount)
    }
    violate(
      Checks.refusing(
        refused: Set(standing.outbox.map(\.mutation).filter(ledger.isRefused)),
        found: standing.outbox.map(\.mutation), place: place))
    if let found = device.written.removeValue(forKey: id) {
      look(at: found, in: standing, id, device)
    }
  }

  private func look(
    at found: CanarySet, in standing: AreaStanding, _ id: AreaID, _ device: Device
  ) {
    let place = "area \(id) of device \(device.number)"
    if let owner = standing.owner {
      guard let account = account(owner) else {
        violate([Violation(.ownership, "\(place) belongs to nobody known")])
        return
      }
      violate(isolation(found, account: account, place: "\(place), account \(account)"))
    } else {
      violate(
        Checks.isolation(
          found: found, allowed: CanarySet([guest(of: id, on: device)]), place: place))
    }
  }

  /// Whether everything that was accepted lies somewhere.
  private func lookAtOutboxes(of device: Device) {
    guard device.erasing == 0 else { return }
    let open = ledger.open(on: device.number)
    if open.isEmpty { return }
    var waiting = Self.waiting(in: device)
    guard open.contains(where: { !waiting.contains($0) }) else { return }
    // It may have changed place: an area that is not held open, or one that is new.
    for id in areas(of: device) {
      guard look(at: id, on: device) else { return }
    }
    waiting = Self.waiting(in: device)
    violate(
      Checks.keeping(accepted: open, waiting: waiting, place: "device \(device.number)"))
  }

  private static func waiting(in device: Device) -> Set<UUID> {
    var waiting: Set<UUID> = []
    for track in device.tracks.values {
      switch track.standing.state {
      // What it had lives in another area, or nowhere.
      case .moved, .erased: continue
      case .active, .frozen: waiting.formUnion(track.standing.outbox.map(\.mutation))
      }
    }
    return waiting
  }

  private func areas(of device: Device) -> [AreaID] {
    do {
      return try ProfileRegistry.areas(in: device.directory)
        .sorted { $0.description < $1.description }
    } catch {
      violate([Violation(.failing, "the areas cannot be listed: \(Failure.name(error))")])
      return []
    }
  }

  func lookDeep(at device: Device) {
    let ids = areas(of: device)
    var owners: [Data] = []
    for id in ids {
      device.written[id, default: CanarySet()].formUnion(canaries(inFileOf: id, on: device))
      look(at: id, on: device)
      lookIntoArea(id, on: device)
      if let standing = device.tracks[id]?.standing, let owner = standing.owner,
        standing.state != .erased
      {
        owners.append(owner)
      }
    }
    violate(Checks.oneArea(owners: owners, place: "device \(device.number)"))
    lookAtOutboxes(of: device)
  }

  private func canaries(inFileOf id: AreaID, on device: Device) -> CanarySet {
    let file = path(of: id, on: device) + "/data.mdb"
    guard let data = FileManager.default.contents(atPath: file) else { return CanarySet() }
    return data.withUnsafeBytes { machine.canaries(in: $0) }
  }

  private func lookIntoArea(_ id: AreaID, on device: Device) {
    guard let state = device.tracks[id]?.standing.state, state != .erased else { return }
    do {
      let area = try Area.open(
        id, directory: path(of: id, on: device), limits: StoreLimits(), registry: nil)
      violate(
        try area.violations().map {
          Violation(.soundness, "area \(id) of device \(device.number): \($0)")
        })
    } catch let error as StoreError where error.cause?.code == .closed || error.code == .suspended {
      return
    } catch {
      violate([Violation(.failing, "an area cannot be looked into: \(Failure.name(error))")])
    }
  }
}
