import Foundation
import Holdfast

func keep(profile: Profile, account: VerifiedAccount) -> Task<Void, any Error> {
  let syncing = Task {
    try await profile.keepSynchronized(account: account)
  }
  return syncing
}

@MainActor
func keepOwnStore(
  profile: Profile, account: VerifiedAccount, store: some BatchStore
) async throws {
  try await profile.keepSynchronized(
    account: account, appPosition: store.position
  ) { batch in
    try store.save(batch)
  }
}

func keepThroughEpochs(profile: Profile, account: VerifiedAccount) async throws {
  while true {
    do {
      try await profile.keepSynchronized(account: account)
    } catch let error as SyncError where error.code == .epochChanged {
      var report = try await profile.synchronize(account: account, replayFromStart: true)
      while let continuation = report.continuation {
        report = try await profile.synchronize(account: account, continuing: continuation)
      }
    }
  }
}

func merge(profile: Profile, account: VerifiedAccount) async throws {
  let resolver = ConflictResolver { conflict in
    guard let mine = try conflict.decodeLocal(Note.self),
      let theirs = try conflict.decodeHub(Note.self)
    else { return .keepHub }
    let both = Note(title: mine.title + " / " + theirs.title)
    return .merged(try JSONEncoder().encode(both))
  }
  try await profile.synchronize(account: account, resolve: resolver)
}

@MainActor
func show(_ profile: Profile, in bar: some ProgressBar) async {
  for await event in profile.syncEvents {
    switch event {
    case .progress(let progress): bar.show(progress.fractionCompleted)
    case .passEnded: bar.hide()
    case .waiting(.forNewToken): bar.say("Please sign in again.")
    case .passStopped(_, let message): bar.say(message)
    default: break
    }
  }
}

struct Metrics: SyncObserver {
  let counters: Counters

  func requestEnded(_ request: RequestMeasurement) {
    counters.add("requests_\(request.call)", 1)
    counters.add("bytes_received", request.receivedByteCount)
  }

  func securityEvent() { counters.add("security_events", 1) }
}

func measure(_ registry: ProfileRegistry, with counters: Counters) {
  registry.observe(with: Metrics(counters: counters))
}

/// Stands for a metrics library.
struct Counters: Sendable {
  func add(_ name: String, _ value: Int) {}
}

/// Stands for what a person sees.
@MainActor
protocol ProgressBar {
  func show(_ fraction: Double)
  func hide()
  func say(_ text: String)
}

/// Stands for an app's own store.
@MainActor
protocol BatchStore: AnyObject {
  var position: BatchPosition { get }
  func save(_ batch: borrowing ChangeBatch) throws
}
