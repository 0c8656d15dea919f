import Foundation
import Testing

/// The program itself, which alone has the machine that worlds run on. It is no dependency: it stands
/// before functions of the C library, and would do so in all tests.
@Suite("The program simulator", .serialized)
struct SimulatorTests {
  private struct Run {
    var status: Int32
    var output: String
  }

  private static let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().appending(path: "simulator")

  private func run(_ arguments: String...) throws -> Run {
    let process = Process()
    let output = Pipe()
    process.executableURL = Self.program
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Run(
      status: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self))
  }

  /// The event log of a seed, from a process of its own.
  private func log(of seed: Int, steps: Int) throws -> Data {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).log")
    defer { try? FileManager.default.removeItem(at: file) }
    _ = try run(
      "--first", "\(seed)", "--steps", "\(steps)", "--log", file.path, "--no-shrinking")
    return try Data(contentsOf: file)
  }

  @Test("the same seed gives the same event log, byte for byte", arguments: [3, 11])
  func deterministic(seed: Int) throws {
    let first = try log(of: seed, steps: 150)
    #expect(first.count > 3_000)
    #expect(try log(of: seed, steps: 150) == first)
    #expect(try log(of: seed + 1, steps: 150) != first)
  }

  @Test("nothing is violated, and the last line says what was done")
  func clean() throws {
    let run = try run("--seeds", "6", "--steps", "120")
    #expect(run.status == 0, "\(run.output)")
    let last = try #require(run.output.split(separator: "\n").last)
    let expected = /6 seeds, 720 steps, \d+ switches, \d+ faults, 0 violations/
    #expect(try expected.wholeMatch(in: last) != nil, "\(last)")
  }

  @Test("steps can be left out")
  func taking() throws {
    let run = try run("--first", "5", "--steps", "100", "--taking", "1,2,3,99")
    #expect(run.status == 0, "\(run.output)")
    #expect(run.output.contains("1 seeds, 4 steps, "))
  }

  @Test(
    "a command line that is not understood does nothing",
    arguments: [["--seeds"], ["--seeds", "0"], ["--taking", "a"], ["--unknown", "1"]])
  func misunderstood(arguments: [String]) throws {
    let process = Process()
    process.executableURL = Self.program
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 64)
  }
}
