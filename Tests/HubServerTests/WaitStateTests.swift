import HubRules
import HubServer
import Testing

@Suite("One who waits")
struct WaitStateTests {
  enum Event: Hashable, Sendable {
    /// A wait begins, with its preparation.
    case wait
    case change
    /// The alarm of the wait that was prepared last, or of so many before it.
    case alarm(before: UInt64 = 0)
    case end(WaitEnd)
  }

  /// Each event with the signal that it gives to somebody.
  struct Step: Sendable {
    let event: Event
    let signal: WaitSignal?

    init(_ event: Event, _ signal: WaitSignal? = nil) {
      self.event = event
      self.signal = signal
    }
  }

  @Test(
    "is told each thing once, and an end for ever",
    arguments: [
      [.init(.wait), .init(.change, .changed), .init(.wait), .init(.alarm(), .timeUp)],
      // Before and between waits a change is kept, once.
      [.init(.change), .init(.wait, .changed), .init(.wait), .init(.change, .changed)],
      [
        .init(.wait), .init(.change, .changed), .init(.change), .init(.change),
        .init(.wait, .changed), .init(.wait),
      ],
      // An alarm counts for its own wait.
      [.init(.wait), .init(.change, .changed), .init(.wait), .init(.alarm(before: 1))],
      [
        .init(.wait), .init(.change, .changed), .init(.alarm()), .init(.wait),
        .init(.alarm(), .timeUp),
      ],
      // An end wins over a change, and the first reason counts.
      [.init(.change), .init(.end(.hungUp)), .init(.wait, .over(.hungUp))],
      [
        .init(.wait), .init(.end(.stopping), .over(.stopping)), .init(.end(.hungUp)),
        .init(.change), .init(.alarm()), .init(.wait, .over(.stopping)),
        .init(.wait, .over(.stopping)),
      ],
    ] as [[Step]])
  func signals(steps: [Step]) {
    var state = WaitState()
    var turn: UInt64 = 0
    for step in steps {
      let signal: WaitSignal?
      switch step.event {
      case .wait:
        turn = state.prepare()
        signal = state.begin()
      case .change: signal = state.change()
      case .alarm(let before): signal = state.alarm(of: turn - before)
      case .end(let reason): signal = state.end(reason)
      }
      #expect(signal == step.signal, "\(step.event)")
    }
  }

  @Test("whose time is up before the wait begins is told so, unless something has changed")
  func early() {
    var state = WaitState()
    let turn = state.prepare()
    #expect(state.alarm(of: turn) == nil)
    #expect(state.begin() == .timeUp)
    let next = state.prepare()
    #expect(state.alarm(of: next) == nil)
    #expect(state.change() == nil)
    #expect(state.begin() == .changed)
  }

  @Test("rings alarms at their tick, late ones with the next, and none that was removed")
  func wheel() {
    var wheel = AlarmWheel<String, Int>()
    #expect(wheel.isEmpty)
    let first = wheel.set("a", 1, at: 3)
    _ = wheel.set("b", 2, at: 5)
    _ = wheel.set("c", 3, at: 4)
    wheel.remove("a", at: first)
    #expect(wheel.takeDue(through: 3).isEmpty)
    #expect(wheel.takeDue(through: 5).map(\.value) == [3, 2])
    #expect(wheel.isEmpty)
    // That tick is over.
    #expect(wheel.set("d", 4, at: 5) == 6)
    wheel.remove("d", at: 5)
    #expect(wheel.takeDue(through: 5).isEmpty)
    #expect(wheel.takeDue(through: 6).map(\.value) == [4])
  }
}
