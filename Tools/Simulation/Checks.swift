package import Foundation
package import HubProtocol
package import ProfileStore

/// What must hold after every step: pure functions from what was seen to what is wrong with it.
package enum Checks {
  /// Which canaries lie where they do not belong.
  package static func isolation(
    found: CanarySet, allowed: CanarySet, place: String
  ) -> [Violation] {
    let strangers = found.subtracting(allowed)
    if strangers.isEmpty { return [] }
    let names = strangers.members.map { "\($0.number)" }.joined(separator: ", ")
    return [Violation(.isolation, "\(place) has bytes of \(names)")]
  }

  /// Which accepted mutations are neither settled nor waiting anywhere.
  /// - Parameters:
  ///   - accepted: those that were stored and not settled since.
  ///   - waiting: those that lie in any outbox of their device.
  package static func keeping(
    accepted: [UUID], waiting: Set<UUID>, place: String
  ) -> [Violation] {
    accepted.filter { !waiting.contains($0) }.map {
      Violation(.keeping, "\(place): the accepted mutation \($0) waits nowhere and was not applied")
    }
  }

  /// Which refused mutations lie in an outbox or a request.
  package static func refusing(
    refused: Set<UUID>, found: [UUID], place: String
  ) -> [Violation] {
    found.filter(refused.contains).map {
      Violation(.refusing, "\(place): the mutation \($0) was refused and is there")
    }
  }

  /// What went back in an area between two looks at it.
  /// - Parameter left: the epochs that the area was in before that of `before`.
  package static func monotony(
    before: AreaStanding, after: AreaStanding, left: Set<UUID>, place: String
  ) -> [Violation] {
    var found: [Violation] = []
    if let old = before.cursor {
      switch after.cursor {
      case nil: found.append(Violation(.monotony, "\(place): the cursor is gone"))
      case let new? where new.epoch == old.epoch:
        if new.sequence < old.sequence {
          found.append(
            Violation(
              .monotony, "\(place): the cursor went from \(old.sequence) to \(new.sequence)"))
        }
      case let new?:
        if left.contains(new.epoch) {
          found.append(Violation(.monotony, "\(place): a left epoch was taken up again"))
        }
      }
    }
    if after.position < before.position {
      found.append(Violation(.monotony, "\(place): the position of the last batch went back"))
    }
    for (record, old) in before.applied.sorted(by: { $0.key < $1.key }) {
      guard let new = after.applied[record], new.epoch == old.epoch, new.version < old.version
      else { continue }
      found.append(
        Violation(
          .monotony,
          "\(place): \(record.text) went from version \(old.version) to \(new.version)"))
    }
    return found
  }

  /// Whether an area has another owner than before.
  package static func ownership(
    before: Data?, after: Data?, place: String
  ) -> [Violation] {
    guard let before, before != after else { return [] }
    return [
      Violation(.ownership, "\(place): its owner was \(name(before)) and is \(name(after))")
    ]
  }

  /// Whether an account owns more than one living area of a device.
  package static func oneArea(owners: [Data], place: String) -> [Violation] {
    var seen: Set<Data> = []
    return owners.filter { !seen.insert($0).inserted }.map {
      Violation(.ownership, "\(place): \(name($0)) has two areas")
    }
  }

  private static func name(_ owner: Data?) -> String {
    owner.map { String(decoding: $0.dropFirst(16), as: UTF8.self) } ?? "nobody"
  }

  /// Where a device that is caught up differs from the hub.
  package static func catchingUp(
    device: [RecordID: Data], hub: [RecordID: Data], place: String
  ) -> [Violation] {
    Set(device.keys).union(hub.keys).sorted().compactMap { record in
      let (here, there) = (device[record], hub[record])
      guard here != there else { return nil }
      func text(_ payload: Data?) -> String {
        payload.map { String(decoding: $0.prefix(60), as: UTF8.self) } ?? "nothing"
      }
      return Violation(
        .catchingUp,
        "\(place): \(record.text) is \(text(here)), at the hub it is \(text(there))")
    }
  }
}
