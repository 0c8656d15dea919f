import Foundation
import Synchronization

/// Outlives files that are damaged inside.
///
/// LMDB checks no page, so a damaged one may be a signal: a wild pointer, or an assertion that
/// fails. The program then begins again in the same process, with the names of what it could not
/// read in its environment, and shows those as unreadable. Commands read before they print, so
/// nothing is said twice.
enum CrashGuard {
  /// What earlier runs of this process could not read.
  static let crashed: Set<String> = {
    let names = ProcessInfo.processInfo.environment[variable] ?? ""
    return Set(names.split(separator: ",").map(String.init))
  }()

  private static let variable = "PROFILECTL_UNREADABLE"
  private static let signals = [SIGSEGV, SIGBUS, SIGABRT]

  /// Lets this process begin again; for the program itself, not for one that only calls a command.
  static func arm() {
    guard let program = Bundle.main.executablePath else { return }
    let environment = ProcessInfo.processInfo.environment.filter { $0.key != variable }
    // Kept as long as the process: a signal may come at any time.
    let kept = UnsafeMutablePointer<Restart>.allocate(capacity: 1)
    kept.initialize(
      to: Restart(program: program, environment: environment.map { "\($0.key)=\($0.value)" }))
    restartAddress.store(UInt(bitPattern: kept), ordering: .releasing)
  }

  /// Reads something; a crash meanwhile is because of it.
  static func reading<R>(_ name: String, _ body: () throws -> R) rethrows -> R {
    guard let restart = Restart.armed, !crashed.contains(name) else { return try body() }
    let names = crashed.union([name]).sorted().joined(separator: ",")
    // SAFETY: made by `arm`, never freed, and changed by one reading at a time.
    restart.pointee.last.pointee = strdup("\(variable)=\(names)")
    let before = signals.map { ($0, catchSignal($0)) }
    defer {
      for (signal, action) in before { restore(signal, action) }
      free(restart.pointee.last.pointee)
      restart.pointee.last.pointee = nil
    }
    return try body()
  }

  private static func catchSignal(_ signal: Int32) -> sigaction {
    var action = sigaction()
    #if canImport(Darwin)
      action.__sigaction_u.__sa_handler = beginAgain
    #else
      action.__sigaction_handler.sa_handler = beginAgain
    #endif
    // The signal must not stay blocked in the program that begins again.
    action.sa_flags = Int32(bitPattern: UInt32(SA_NODEFER))
    var before = sigaction()
    // SAFETY: both structures live until the call returns. It fails for no signal that is caught.
    _ = sigaction(signal, &action, &before)
    return before
  }

  private static func restore(_ signal: Int32, _ action: sigaction) {
    var action = action
    // SAFETY: the structure lives until the call returns.
    _ = sigaction(signal, &action, nil)
  }
}

/// What `execve` is given to begin again; never freed.
private struct Restart {
  let program: UnsafeMutablePointer<CChar>?
  let environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  /// The place of the variable, behind all others.
  let last: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

  /// Where it is kept once the process may begin again.
  static var armed: UnsafeMutablePointer<Restart>? {
    UnsafeMutablePointer(bitPattern: restartAddress.load(ordering: .acquiring))
  }

  init(program: String, environment entries: [String]) {
    self.program = strdup(program)
    // SAFETY: one place for each entry, one for the variable, and the null that ends them.
    environment = .allocate(capacity: entries.count + 2)
    environment.initialize(repeating: nil, count: entries.count + 2)
    for (index, entry) in entries.enumerated() { environment[index] = strdup(entry) }
    last = environment + entries.count
  }
}

private let restartAddress = Atomic<UInt>(0)

/// The handler: calls nothing but what a handler may.
private func beginAgain(_ signal: Int32) {
  if let restart = Restart.armed, let program = restart.pointee.program {
    var nothing = sigset_t()
    // SAFETY: the set outlives both calls; the words of the command line are those of this process.
    sigemptyset(&nothing)
    pthread_sigmask(SIG_SETMASK, &nothing, nil)
    execve(program, CommandLine.unsafeArgv, restart.pointee.environment)
  }
  _exit(70)
}
