import Foundation
import HubClient
import HubProtocol
import HubRules
import ProfileSync

extension EventStream {
  /// The events of the stream, read out of the bytes that a connection would carry.
  func events() -> HubEvents {
    let (events, continuation) = HubEvents.makeStream(bufferingPolicy: .bufferingNewest(64))
    let following = Task { await follow() }
    let reading = Task {
      await read(into: continuation)
      abandon()
    }
    continuation.onTermination = { _ in
      abandon()
      following.cancel()
      reading.cancel()
    }
    return events
  }

  /// Ends a stream whose events nobody is going to read.
  func giveUp() async {
    abandon()
    // Only who follows it to its end stops listening; the end has come.
    await follow()
  }

  private func read(into continuation: HubEvents.Continuation) async {
    let (wakes, wake) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    var waking = wakes.makeAsyncIterator()
    var parser = EventStreamParser()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 12, alignment: 8)
    defer { buffer.deallocate() }
    while true {
      switch feed.take(buffer, park: { { wake.yield() } }) {
      case .bytes(let count):
        do throws(WireError) {
          for event in parser.take(buffer[..<count]) {
            // One of a later version is passed over, as a transport over HTTP does.
            guard let event = try HubEvent(name: event.name, data: event.data) else { continue }
            continuation.yield(event)
          }
        } catch {
          return continuation.finish(
            throwing: TransportError(
              code: .other, description: "an event cannot be read: \(error.description)"))
        }
      case .nothing: await waking.next()
      case .end: return continuation.finish()
      case .cut:
        return continuation.finish(
          throwing: TransportError(
            code: .connectionLost, description: "a fault asked for: listen again"))
      }
    }
  }
}
