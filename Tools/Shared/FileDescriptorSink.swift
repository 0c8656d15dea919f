import Foundation

/// A file descriptor that stays open as long as the process, such as 1 or 2.
///
/// Writes go to `write(2)` at once, with no buffer, so that nothing is lost when the process is
/// killed and that lines of both outputs stay in order. Print long output as few large texts.
public struct FileDescriptorSink: ConsoleSink {
  /// Standard output.
  public static let standardOutput = FileDescriptorSink(descriptor: STDOUT_FILENO)
  /// Standard error.
  public static let standardError = FileDescriptorSink(descriptor: STDERR_FILENO)

  private let descriptor: Int32

  /// Writes to a descriptor, which is not closed.
  public init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Corresponds to `isatty(3)`.
  public var isTerminal: Bool {
    isatty(descriptor) == 1
  }

  /// Corresponds to `TIOCGWINSZ`.
  public var columns: Int? {
    var size = winsize()
    // SAFETY: the request fills exactly the `winsize` that lives until the call returns.
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Writes all of the text, waiting where the descriptor doesn't block.
  ///
  /// The process must ignore `SIGPIPE`, else a closed pipe ends it; ``Tool/main()`` sees to it.
  public func write(_ text: String) throws(OutputError) {
    var rest = ArraySlice(text.utf8)
    while !rest.isEmpty {
      // SAFETY: the buffer is valid for the call, which reads no more than its count.
      let written = rest.withUnsafeBytes { systemWrite(descriptor, $0) }
      if written >= 0 {
        rest = rest.dropFirst(written)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN: awaitWritable()
      case EPIPE: throw .closedPipe
      case let code: throw .failed(code: code)
      }
    }
  }

  private func awaitWritable() {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // SAFETY: one entry, valid for the call. Its result needs no look: whatever happened, the
    // next write tells it.
    _ = poll(&entry, 1, -1)
  }
}

// Inside the type the name `write` means its own method.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}

func systemMessage(_ code: Int32) -> String {
  // SAFETY: strerror answers a terminated text for every code; it is copied at once.
  strerror(code).map { String(cString: $0) } ?? "error \(code)"
}
