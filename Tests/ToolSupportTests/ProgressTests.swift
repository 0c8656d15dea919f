import Synchronization
import Testing

@testable import ToolSupport

@Suite("Progress")
struct ProgressTests {
  private final class ManualClock: Sendable {
    private let time = Mutex(Duration.zero)
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
    var now: Duration { time.withLock { $0 } }
  }

  static let widths: [(width: Int, text: String)] = [
    (79, "Sending  [############------------]   52 %  6,800 of 13,000 records  34,000/s"),
    (77, "Sending  [############------------]   52 %  6,800 of 13,000 records  34,000/s"),
    (76, "Sending   52 %  6,800 of 13,000 records  34,000/s"),
    (48, "Sending   52 %  6,800 of 13,000 records"), (20, "Sending   52 %"), (10, "Sending"),
    (6, "Sendi…"), (1, "…"),
  ]

  @Test("shows what fits the terminal", arguments: widths)
  func width(width: Int, text: String) {
    let line = ProgressLine(
      label: "Sending", unit: "records", done: 6800, total: 13_000, elapsed: .milliseconds(200))
    #expect(line.text(width: width) == text)
  }

  static let amounts: [(done: Int, total: Int?, text: String)] = [
    (0, 10, "Sending  [------------------------]    0 %  0 of 10 records"),
    (10, 10, "Sending  [########################]  100 %  10 of 10 records  10/s"),
    (999, 1000, "Sending  [#######################-]   99 %  999 of 1,000 records  999/s"),
    (12, 10, "Sending  [########################]  100 %  12 of 10 records  12/s"),
    (5, nil, "Sending  5 records  5/s"), (0, 0, "Sending  0 of 0 records"),
  ]

  @Test("says 100 % when it is so, and a count where the total is unknown", arguments: amounts)
  func amount(done: Int, total: Int?, text: String) {
    let line = ProgressLine(
      label: "Sending", unit: "records", done: done, total: total, elapsed: .seconds(1))
    #expect(line.text(width: 100) == text)
  }

  @Test("is drawn in place at most ten times a second, and leaves one line")
  func drawing() {
    let clock = ManualClock()
    let recorded = RecordedConsole(errorOutput: RecordingSink(terminalOf: 40))
    let bar = recorded.console.progress(
      "Up", total: 1000, unit: "records", fallback: .nothing, now: { clock.now })
    for _ in 1...500 {
      bar.advance()
      clock.advance(by: .milliseconds(1))
    }
    bar.update(done: 1000)
    bar.finish()
    bar.finish()
    bar.advance()
    let lines = recorded.errorOutput.text.split(separator: "\r").map(String.init)
    #expect(
      lines == [
        "Up    0 %  0 of 1,000 records\u{1B}[K",
        "Up   10 %  101 of 1,000 records\u{1B}[K",
        "Up   20 %  201 of 1,000 records\u{1B}[K",
        "Up   30 %  301 of 1,000 records\u{1B}[K",
        "Up   40 %  401 of 1,000 records\u{1B}[K",
        "Up  100 %  1,000 of 1,000 records\u{1B}[K",
        "\u{1B}[KUp: 1,000 records in 500 ms (2,000/s)\n",
      ])
  }

  @Test("without a terminal is one final line, or nothing, as asked")
  func noTerminal() {
    let final = RecordedConsole(output: RecordingSink(terminalOf: 80))
    let bar = final.console.progress("Up", total: nil, unit: "records", fallback: .finalLine) {
      .zero
    }
    bar.advance(by: 3)
    bar.finish()
    #expect(final.errorOutput.text == "Up: 3 records in 0.00 ms (-)\n")

    let silent = RecordedConsole()
    let other = silent.console.progress("Up", total: nil, unit: "records", fallback: .nothing) {
      .zero
    }
    other.advance(by: 3)
    other.finish()
    #expect(silent.errorOutput.text == "")
  }

  @Test("of a step that failed is taken away without a final line")
  func abandoned() {
    let recorded = RecordedConsole(errorOutput: RecordingSink(terminalOf: 40))
    let bar = recorded.console.progress("Up", total: nil, unit: "records")
    bar.abandon()
    bar.finish()
    #expect(recorded.errorOutput.text == "\rUp  0 records\u{1B}[K\r\u{1B}[K")
  }
}
