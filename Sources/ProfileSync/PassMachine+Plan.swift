import HubProtocol
import ProfileStore

// The order of the steps, once the hub has said where it stands. (Contract sections 5.3 and 6.)
extension PassMachine {
  /// The hub has purged tombstones that the request needs. It is asked again where it stands, since a
  /// scan that ends below its minimum would be refused like the request.
  mutating func scanFromZero() -> Action {
    guard !hasScanned, expiryCount < Self.expiryCountMax else { return .stop(.cursorExpired) }
    expiryCount += 1
    switch scan {
    case let scan? where scan.isForced: demanded = scan.kind
    case .some where plan.first == .leg: demanded = .replay
    default: demanded = .expired
    }
    plan = [.verify]
    return .perform(.verify)
  }

  /// Decides the order after the hub has said where it stands.
  /// - Returns: why the pass has to stop.
  mutating func makePlan(_ answer: SessionAnswer) -> SyncError.Code? {
    plan = isRegistered ? [] : [.register]
    let forced = scan.flatMap { $0.isForced ? $0 : nil }
    func begin(_ kind: ScanState.Kind) -> PassStep {
      .begin(kind, epoch: answer.epoch, until: answer.highWater)
    }
    guard let epoch = forced?.epoch ?? cursor?.epoch else {
      plan += [begin(.first)] + scanSteps
      return nil
    }
    if epoch != answer.epoch {
      // Only a replay takes up another epoch; one that was left is never taken up again.
      if lineage.contains(where: { $0.epoch == answer.epoch }) { return .epochAlreadyLeft }
      guard goal == .replay else { return .epochChanged }
      plan += [begin(.newEpoch)] + scanSteps
      return nil
    }
    if let kind = scanToBegin(answer, forced) {
      plan += [begin(kind)] + (kind == .replay ? Self.replaySteps : scanSteps)
      return nil
    }
    if let forced {
      plan += forced.phase == .legs ? scanSteps : tailSteps
      return nil
    }
    plan += sendSteps
    switch goal {
    case .ordinary: plan += [.pull]
    case .replay: plan += [begin(.replay)] + Self.replaySteps
    case .continuing where scan?.phase == .tail: plan += [.finishScan, .pull]
    case .continuing:
      // 410 for its own `until` begins it again.
      if let scan, scan.until < answer.minimumCursor { plan += [begin(.replay)] }
      plan += Self.replaySteps
    }
    return nil
  }

  /// Conflicts that wait already are decided before anything is sent, new ones at once.
  private var sendSteps: [PassStep] {
    resolves ? [.discards, .resolve, .push, .resolve] : [.discards, .push]
  }
  /// Pulled first and sent after.
  private var scanSteps: [PassStep] { [.leg, .finishLegs] + tailSteps }
  private var tailSteps: [PassStep] { [.pull, .finishScan] + sendSteps }
  /// Of a replay that nothing forces.
  private static let replaySteps: [PassStep] = [.leg, .finishLegs, .finishScan, .pull]

  /// A scan that has to begin before anything is sent; nil when none has.
  private mutating func scanToBegin(
    _ answer: SessionAnswer, _ forced: ScanState?
  ) -> ScanState.Kind? {
    defer { demanded = nil }
    if let forced {
      // Its own end, or the cursor that it has raised, lies below what the hub still tells whole.
      let end = forced.phase == .legs ? forced.until : cursor?.sequence ?? forced.until
      let mustBegin = goal == .replay || demanded != nil || end < answer.minimumCursor
      return mustBegin ? forced.kind : nil
    }
    if !hasFinishedScan { return .first }
    if let cursor, cursor.sequence < answer.minimumCursor { return .expired }
    return demanded
  }
}
