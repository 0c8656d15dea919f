import Foundation
import Testing

@testable import ToolSupport

@Suite("A file descriptor as output")
struct FileDescriptorSinkTests {
  @Test("that is a terminal says so, and how wide it is now")
  func terminal() throws {
    var (terminal, device): (Int32, Int32) = (-1, -1)
    // SAFETY: the call fills both descriptors; the name, settings and size may be absent.
    try #require(openpty(&terminal, &device, nil, nil, nil) == 0)
    defer {
      close(device)
      close(terminal)
    }
    let sink = FileDescriptorSink(descriptor: device)
    #expect(sink.isTerminal)
    for columns in [97, 41] {
      var size = winsize(ws_row: 24, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
      // SAFETY: the request reads one `winsize`.
      #expect(ioctl(terminal, UInt(TIOCSWINSZ), &size) == 0)
      #expect(sink.columns == columns)
    }
  }

  @Test("that is a full disk tells so with the system's word for it")
  func fullDisk() throws {
    let device = open("/dev/full", O_WRONLY)
    try #require(device >= 0)
    defer { close(device) }
    let sink = FileDescriptorSink(descriptor: device)
    #expect(!sink.isTerminal)
    #expect(sink.columns == nil)
    let error = #expect(throws: OutputError.self) { try sink.write("text") }
    #expect(error == .failed(code: ENOSPC))
    #expect(
      error?.description == "the output could not be written: No space left on device")
  }

  @Test("that doesn't block gets all of a text that is larger than its pipe")
  func nonBlockingPipe() async throws {
    let pipe = Pipe()
    let writeEnd = pipe.fileHandleForWriting.fileDescriptor
    try #require(fcntl(writeEnd, F_SETFL, O_NONBLOCK) == 0)
    let text = String(repeating: "0123456789", count: 100_000)
    async let read = pipe.fileHandleForReading.readToEnd()
    try FileDescriptorSink(descriptor: writeEnd).write(text)
    try pipe.fileHandleForWriting.close()
    #expect(try await read == Data(text.utf8))
  }

  @Test("whose reader is gone ends the tool without a word and without a failure")
  func closedPipe() async throws {
    let result = try await #require(
      processExitsWith: .exitCode(0), observing: [\.standardErrorContent]
    ) {
      var ends: [Int32] = [-1, -1]
      // SAFETY: two descriptors into an array of two.
      precondition(pipe(&ends) == 0)
      close(ends[0])
      dup2(ends[1], STDOUT_FILENO)
      // An observed output that stays empty is not reported as empty.
      Console.standard().note("begins")
      await SampleTool.tool.main(["--help"])
    }
    #expect(String(decoding: result.standardErrorContent, as: UTF8.self) == "begins\n")
  }

  @Test("that is full ends the tool with the code for it")
  func fullOutput() async throws {
    let result = try await #require(
      processExitsWith: .exitCode(ExitCode.inputOutput.rawValue),
      observing: [\.standardErrorContent]
    ) {
      dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO)
      await SampleTool.tool.main(["--help"])
    }
    #expect(
      String(decoding: result.standardErrorContent, as: UTF8.self)
        == "sample: the output could not be written: No space left on device\n")
  }
}
