import Foundation
import HoldfastTesting
import ProfileStore
import ProfileSync

// Devices that come up, and what is left of those that died.
extension World {
  /// The running process of a device, which comes up for it where it is down.
  /// - Returns: nil when it dies while it comes up, or cannot.
  func life(of device: Device) -> Life? {
    if device.life == nil { start(device) }
    buryTheDead()
    return device.life
  }

  /// Begins a new process on a device: opens its store and restores who was signed in.
  func start(_ device: Device) {
    guard device.life == nil, end(device.dying, of: device) else { return }
    device.dying = nil
    machine.revive(device.number)
    device.lifeCount += 1
    let session = makeSession(device)
    let life = Life(number: device.lifeCount, device: device, session: session)
    do {
      let registry = try ProfileRegistry(
        directory: URL(filePath: device.directory, directoryHint: .isDirectory), session: session,
        configuration: .init(recordKeeping: device.keepsRecords ? .area : .app))
      registry.connect(to: SimulatedTransport(world: self, life: life))
      life.begin(registry)
    } catch {
      guard machine.isDead(device.number) else {
        violate([Violation(.revival, "a store cannot be opened: \(Failure.name(error))")])
        return
      }
    }
    device.life = life
    note("device \(device.number) is up, life \(life.number)")
    guard !machine.isDead(device.number) else { return }
    machine.looking { lookDeep(at: device) }
    restoreSession(life)
  }

  private func makeSession(_ device: Device) -> AppSession {
    AppSession { [self, unowned device] session in
      guard let bytes = device.signedIn, let account = account(bytes) else { return }
      session.replaceToken(token(for: account))
    }
  }

  private func restoreSession(_ life: Life) {
    guard let bytes = life.device.signedIn, let account = account(bytes) else {
      return life.session.signOut()
    }
    life.session.restore(account: bytes, token: token(for: account))
    // What the app had saved with its rows and not handed over.
    guard !life.device.keepsRecords else { return }
    begin("launch", life) { [self] life in "\(try await enqueueUnsent(account, life)) again" }
  }

  /// A new token of the hub.
  func token(for account: Int) -> String {
    let token = hub.token(for: people[account].id)
    tokens[token] = account
    return token
  }

  /// Lets the tasks of a dead process run out: nothing that they try has an effect.
  /// - Returns: false when they do not end.
  private func end(_ life: Life?, of device: Device) -> Bool {
    guard let life else { return true }
    for _ in 0..<20_000 {
      if life.tasks.isEmpty, machine.openCount(of: device.number) == 0 { return true }
      guard runJob() else { break }
    }
    violate([
      Violation(
        .revival,
        "a dead life of device \(device.number) goes on: \(life.tasks.count) operations, "
          + "\(machine.openCount(of: device.number)) open environments")
    ])
    return false
  }
}
