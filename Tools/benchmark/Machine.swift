import CBench
import Foundation
import LMDB
import Measuring

/// Where the run takes place, and with what.
enum Machine {
  static func described(directory: String) -> Report.Machine {
    Report.Machine(
      processor: processor, cores: ProcessInfo.processInfo.activeProcessorCount,
      memoryByteCount: ProcessInfo.processInfo.physicalMemory, system: system,
      fileSystem: fileSystem(of: directory))
  }

  static var versions: [String: String] {
    [
      "lmdb": String(cString: cbench_lmdb_version()),
      "sqlite": String(cString: cbench_sqlite_version()),
      "c": String(cString: cbench_compiler()),
      "swift": firstLine(of: "swift", ["--version"]) ?? "unknown",
    ]
  }

  /// The commit that was built, `-changed` if the tree is not as committed.
  static var commit: String {
    let directory = URL(filePath: CommandLine.executable).deletingLastPathComponent()
      .path(percentEncoded: false)
    guard let commit = firstLine(of: "git", ["-C", directory, "rev-parse", "HEAD"]) else {
      return "unknown"
    }
    let top = firstLine(of: "git", ["-C", directory, "rev-parse", "--show-toplevel"]) ?? directory
    let changes = firstLine(of: "git", ["-C", top, "status", "--porcelain"])
    return changes == nil ? commit : commit + "-changed"
  }

  private static var processor: String {
    let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("model name") }
    let name = line?.split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
    return name ?? "unknown"
  }

  private static var system: String {
    let kernel = firstLine(of: "uname", ["-srm"]) ?? "unknown"
    return "\(ProcessInfo.processInfo.operatingSystemVersionString), \(kernel)"
  }

  private static func fileSystem(of directory: String) -> String {
    firstLine(of: "stat", ["-f", "-c", "%T", directory]) ?? "unknown"
  }

  /// What a program says first; nil if it is not there, fails or says nothing.
  private static func firstLine(of name: String, _ arguments: [String]) -> String? {
    guard
      let program = ChildProcess.find(name),
      let text = try? ChildProcess.output(program, arguments)
    else { return nil }
    return text.split(separator: "\n").first.map(String.init)
  }
}
