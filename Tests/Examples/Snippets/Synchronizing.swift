import Foundation
import Holdfast

func managed(profile: Profile, account: VerifiedAccount) async throws {
  let report = try await profile.synchronize(account: account)
  print("\(report.acknowledged) sent, \(report.delivered) applied, \(report.parked) parked")
}

@MainActor
func ownStore(profile: Profile, account: VerifiedAccount, store: some OwnStore) async throws {
  try await profile.synchronize(account: account, appPosition: store.position) { batch in
    try store.transaction {
      for change in try batch.changes(localOwner: store.owner).copies() {
        if try batch.isPending(change.record) { continue }
        try store.save(change)
      }
      store.position = batch.position
    }
  }
}

func replay(profile: Profile, account: VerifiedAccount) async throws {
  var report = try await profile.synchronize(account: account, replayFromStart: true)
  while let continuation = report.continuation {
    report = try await profile.synchronize(account: account, continuing: continuation)
  }
}

/// What a pass that failed asks of the app.
enum Remedy {
  case tryAgain(after: Duration)
  case signIn
  case replay
  case tellThePerson(String)
}

func remedy(_ error: SyncError) -> Remedy {
  switch error.code {
  case .hubUnreachable, .hubUnavailable, .badAnswer, .busy:
    .tryAgain(after: error.retryAfter ?? .seconds(30))
  case .needsAuthentication: .signIn
  case .epochChanged, .appStoreBehind: .replay
  default: .tellThePerson(error.message)
  }
}

/// Stands for an app's own store on the main actor.
@MainActor
protocol OwnStore: AnyObject {
  var owner: Data { get throws }
  var position: BatchPosition { get set }
  func transaction(_ body: () throws -> Void) throws
  func save(_ change: Change) throws
}
