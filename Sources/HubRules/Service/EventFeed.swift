import Foundation
package import HubProtocol
import Synchronization

/// What one event stream still has to send: filled by a task, emptied by the listener's thread.
///
/// It holds a few events at most, however slowly the client reads: of several changes only the last
/// one counts, and a comment is for a stream that has nothing else to say.
package final class EventFeed: Sendable {
  private struct State {
    /// Events as bytes, in order; hello and bye, and the change or comment that is on its way.
    var bytes = Data()
    /// A change that was not made into bytes yet.
    var highWater: UInt64?
    var isEnded = false
    /// Takes the connection up again that has nothing to send.
    var resume: (@Sendable () -> Void)?
    /// How many bytes may be sent before the connection breaks; nil for any number.
    var byteCountLeft: Int?

    mutating func add(_ event: HubEvent) {
      if let highWater { bytes.append(EventFeed.bytes(of: .change(highWater: highWater))) }
      highWater = nil
      bytes.append(EventFeed.bytes(of: event))
    }

    mutating func takeResume() -> (@Sendable () -> Void)? {
      defer { resume = nil }
      return resume
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// What the listener gets.
  package enum Taken: Hashable, Sendable {
    case bytes(count: Int)
    /// Nothing now; `park` was called.
    case nothing
    case end
    /// The connection is to break here, for the fault `cut-body`.
    case cut
  }

  /// Adds an event; nothing once it has ended.
  package func add(_ event: HubEvent) {
    change { state in
      if case .change(let highWater) = event {
        state.highWater = highWater
      } else {
        state.add(event)
      }
    }
  }

  /// Adds a comment, unless there is something to send.
  package func addComment() {
    change { state in
      if state.bytes.isEmpty, state.highWater == nil { state.bytes.append(Data(":\n\n".utf8)) }
    }
  }

  /// Nothing follows what is there, but for a last event.
  package func end(_ event: HubEvent? = nil) {
    change { state in
      if let event { state.add(event) }
      state.isEnded = true
    }
  }

  /// Lets the connection break after so many bytes; nil means in the middle of what is there.
  package func cut(afterByteCount byteCount: Int?) {
    state.withLock { $0.byteCountLeft = byteCount ?? $0.bytes.count / 2 }
  }

  /// Takes the next bytes.
  /// - Parameter park: makes the connection wait, and returns what takes it up again. It is called
  ///   before anybody can add something.
  package func take(
    _ buffer: UnsafeMutableRawBufferPointer, park: () -> @Sendable () -> Void
  ) -> Taken {
    state.withLock { state in
      if state.bytes.isEmpty, let highWater = state.highWater {
        state.bytes = EventFeed.bytes(of: .change(highWater: highWater))
        state.highWater = nil
      }
      if state.byteCountLeft == 0 { return .cut }
      let count = min(state.bytes.count, buffer.count, state.byteCountLeft ?? .max)
      guard count > 0 else {
        if state.isEnded { return .end }
        state.resume = park()
        return .nothing
      }
      state.bytes.copyBytes(to: buffer, count: count)
      // A new value: what is left begins at 0 again.
      state.bytes = Data(state.bytes.dropFirst(count))
      state.byteCountLeft? -= count
      return .bytes(count: count)
    }
  }

  /// Changes what there is to send, and takes the connection up again outside of the lock.
  private func change(_ body: (inout State) -> Void) {
    let resume = state.withLock { state -> (@Sendable () -> Void)? in
      guard !state.isEnded else { return nil }
      body(&state)
      guard state.isEnded || !state.bytes.isEmpty || state.highWater != nil else { return nil }
      return state.takeResume()
    }
    resume?()
  }

  /// An event in the form of `text/event-stream`. (WHATWG HTML, section 9.2.)
  private static func bytes(of event: HubEvent) -> Data {
    Data("event: \(event.name)\ndata: ".utf8) + event.encoded() + Data("\n\n".utf8)
  }
}
