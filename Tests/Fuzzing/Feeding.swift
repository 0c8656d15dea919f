import Foundation

/// The decoders, and the one that is fed.
enum Feeding {
  static var decoders: [any FuzzedDecoder.Type] {
    [
      CBORMessages.self, JSONMessages.self, Problems.self, Events.self, Requests.self, Answers.self,
      Tokens.self, StoredValues.self, DataFiles.self,
    ]
  }

  // SAFETY: set before the first bytes come, and used by the one thread that feeds.
  private nonisolated(unsafe) static var fed: (any FuzzedDecoder)?

  /// Makes a decoder.
  static func begin(_ name: String) throws {
    guard let decoder = decoders.first(where: { $0.name == name }) else {
      fail("there is no decoder '\(name)'; see --list")
    }
    fed = try decoder.init()
  }

  static func feed(_ bytes: [UInt8]) { fed?.take(bytes) }

  static func fail(_ sentence: String) -> Never {
    FileHandle.standardError.write(Data((sentence + "\n").utf8))
    exit(64)
  }
}

#if FUZZING
  /// libFuzzer's loop. It takes a pointer to `argc`, one to `argv` and a function, and three words are
  /// passed alike in both languages.
  @_silgen_name("LLVMFuzzerRunDriver")
  func runDriver(
    _ count: UnsafeMutableRawPointer, _ words: UnsafeMutableRawPointer,
    _ feed: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
  ) -> Int32

  extension Feeding {
    /// Feeds until libFuzzer's words on the command line say that it is enough.
    static func runFuzzer() -> Int32 {
      var count = CommandLine.argc
      var words = CommandLine.unsafeArgv
      return runDriver(&count, &words, { testOneInput($0, $1) })
    }
  }

  // Called by the loop: once at its beginning, then for each input.

  @_cdecl("LLVMFuzzerInitialize")
  func initializeFuzzer(_ count: OpaquePointer, _ words: OpaquePointer) -> Int32 {
    do {
      try Feeding.begin(ProcessInfo.processInfo.environment["FUZZED_DECODER"] ?? "")
    } catch { Feeding.fail("the decoder cannot be made: \(error)") }
    return 0
  }

  @_cdecl("LLVMFuzzerTestOneInput")
  func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    Feeding.feed(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
  }
#endif
