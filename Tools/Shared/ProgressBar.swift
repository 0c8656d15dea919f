import Synchronization

/// A bar that shows how far a long step is, in one line in place on standard error.
///
/// It draws only if standard error is a terminal, and at most ten times a second, so that it may be
/// advanced for every record. May be advanced from several tasks.
public final class ProgressBar: Sendable {
  /// What is printed for a step where no bar can be drawn.
  public enum Fallback: Sendable {
    /// Nothing at all.
    case nothing
    /// One line on standard error when the step is done.
    case finalLine
  }

  private struct State {
    var line: ProgressLine
    var drawnAt: Duration?
    var isFinished = false
  }

  private let console: Console
  private let fallback: Fallback
  private let now: @Sendable () -> Duration
  private let startedAt: Duration
  private let state: Mutex<State>
  private static let drawingInterval = Duration.milliseconds(100)

  init(
    _ line: ProgressLine, on console: Console, fallback: Fallback,
    now: @escaping @Sendable () -> Duration
  ) {
    self.console = console
    self.fallback = fallback
    self.now = now
    startedAt = now()
    state = Mutex(State(line: line))
    draw { _ in }
  }

  /// Adds to what is done.
  public func advance(by count: Int = 1) {
    draw { $0.done += count }
  }

  /// Sets what is done, and how much there is in all if that became known.
  public func update(done: Int, total: Int? = nil) {
    draw { line in
      line.done = done
      line.total = total ?? line.total
    }
  }

  /// Takes the bar away and leaves the final line in its place. Later calls do nothing.
  public func finish() {
    end(showsFinalLine: console.showsStatus || fallback == .finalLine)
  }

  /// Takes the bar away without a final line, for a step that failed; the error says the rest.
  /// Later calls do nothing.
  public func abandon() {
    end(showsFinalLine: false)
  }

  private func draw(_ change: (inout ProgressLine) -> Void) {
    let elapsed = now() - startedAt
    state.withLock { state in
      guard !state.isFinished else { return }
      change(&state.line)
      guard console.showsStatus else { return }
      if let drawnAt = state.drawnAt, elapsed - drawnAt < Self.drawingInterval { return }
      state.drawnAt = elapsed
      state.line.elapsed = elapsed
      // Under the lock, so that an older state can't be drawn over a newer one.
      console.showStatus(state.line.text(width: console.statusWidth))
    }
  }

  private func end(showsFinalLine: Bool) {
    let elapsed = now() - startedAt
    state.withLock { state in
      guard !state.isFinished else { return }
      state.isFinished = true
      state.line.elapsed = elapsed
      console.showStatus(nil)
      if showsFinalLine { console.note(state.line.finalText) }
    }
  }
}

extension Console {
  /// Begins a bar for a step; end it with ``ProgressBar/finish()`` or ``ProgressBar/abandon()``.
  ///
  /// - Parameters:
  ///   - label: what is being done: `Sending`.
  ///   - total: how much there is in all; `nil` if that isn't known, which draws a count.
  ///   - unit: what is counted, in the plural: `records`.
  ///   - fallback: what is printed where no bar can be drawn.
  public func progress(
    _ label: String, total: Int?, unit: String, fallback: ProgressBar.Fallback = .finalLine
  ) -> ProgressBar {
    let origin = ContinuousClock.now
    return progress(label, total: total, unit: unit, fallback: fallback) {
      origin.duration(to: .now)
    }
  }

  /// The same with a clock of the caller's: the time since any fixed moment.
  func progress(
    _ label: String, total: Int?, unit: String, fallback: ProgressBar.Fallback,
    now: @escaping @Sendable () -> Duration
  ) -> ProgressBar {
    ProgressBar(
      ProgressLine(label: label, unit: unit, total: total), on: self, fallback: fallback, now: now)
  }
}
