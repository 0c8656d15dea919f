import Foundation
import ProfileStore
import ProfileSync

// A step is begun here; what it begins goes on beside the next ones.
extension World {
  func take(_ step: Step) {
    let device = device(step.device)
    switch step.kind {
    case .operate: return operate(step)
    case .weather: return changeWeather(step, device)
    case .wait: return letTimePass(step)
    case .restart: return start(device)
    case .crash: return planCrash(step, device)
    case .restoreApp: return restoreApp(step, device)
    case .signOut: return signOut(device)
    case .letGo: return letGo(device)
    default: break
    }
    guard let life = life(of: device) else { return }
    // A person who does something with an app has brought it back.
    if life.isSuspended, step.kind != .suspend, step.c % 3 == 0 { suspend(life) }
    switch step.kind {
    case .enqueue: enqueue(step, life)
    case .burst: for _ in 0..<(2 + step.a % 6) { enqueue(step, life) }
    case .trespass: trespass(step, life)
    case .pass: pass(step, life)
    case .replay: replay(step, life)
    case .keep: keep(step, life)
    case .cancel: cancel(step, life)
    case .signIn: signIn(step, life)
    case .adoptByName: adoptByName(step, life)
    case .decide: decide(step, life)
    case .sendAgain: sendAgain(step, life)
    case .erase: erase(step, life)
    case .suspend: suspend(life)
    default: break
    }
  }

  private func changeWeather(_ step: Step, _ device: Device) {
    device.faultRate = [0, 30, 200, 600, 1_000][step.a % 5]
  }

  /// Everything goes on for a while, with what is due meanwhile.
  private func letTimePass(_ step: Step) {
    let end = machine.now + UInt64(step.a % 90) * 1_000_000_000
    while machine.now < end, violations.isEmpty {
      if machine.readyCount() == 0, !machine.wake() { return }
      guard runJob() else { return }
    }
  }

  private func planCrash(_ step: Step, _ device: Device) {
    guard device.life != nil else { return }
    // Mostly within what runs now or begins next.
    let count = step.a % 4 == 0 ? step.b % 60 : step.b % 12
    if count == 0 {
      machine.kill(device.number)
    } else {
      machine.planDeath(of: device.number, atStep: UInt64(count), after: step.c % 2 == 0)
    }
  }

  private func signOut(_ device: Device) {
    guard let life = device.life else { return }
    counts.switches += 1
    device.signedIn = nil
    life.session.signOut()
  }

  private func letGo(_ device: Device) { device.life?.profiles = [:] }

  private func cancel(_ step: Step, _ life: Life) {
    let running = life.tasks.keys.sorted()
    guard !running.isEmpty else { return }
    let number = running[step.a % running.count]
    note("cancel \(number)")
    life.tasks[number]?.cancel()
  }

  /// The app's own store is copied, or put back.
  private func restoreApp(_ step: Step, _ device: Device) {
    guard !device.keepsRecords else { return }
    if step.a % 2 == 0 || device.appBackup.isEmpty {
      device.appBackup = device.apps
    } else {
      counts.faults += 1
      // What was promised to be sent since then is not lost with the file; what was on the list then is
      // on it again, and settled if it was.
      for (area, app) in device.appBackup {
        var restored = app
        let listed = Set(restored.unsent.map(\.id))
        restored.unsent += (device.apps[area]?.unsent ?? []).filter { !listed.contains($0.id) }
        // It shows edits again that were given up since; where the hub loses them, too, nobody says so.
        restored.doubtful.formUnion(restored.rows.keys)
        device.apps[area] = restored
        note("app of area \(area) is back at \(app.position.number)")
      }
    }
  }

  func suspend(_ life: Life) {
    if life.isSuspended {
      begin("resume", life) { life in
        try await life.store().resume()
        life.isSuspended = false
        return "ok"
      }
    } else {
      // Not looked at meanwhile.
      life.isSuspended = true
      begin("suspend", life) { life in
        do {
          try await life.store().suspend(patience: .milliseconds(200))
          return "ok"
        } catch {
          life.isSuspended = false
          throw error
        }
      }
    }
  }
}
