import Foundation

/// What the command line asks for.
struct Order {
  var seedCount: UInt64 = 1
  var stepCount = 400
  var firstSeed: UInt64 = 1
  /// How many seeds run at the same time, each in a process of its own.
  var workerCount = 2
  /// Where the devices' files lie while a seed runs.
  var directory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
  /// Where the event log of the seed goes; of one seed only.
  var log: String?
  /// The steps that are taken, by their index; nil: all.
  var taking: Set<Int>?
  /// Whether a failing seed's steps are made fewer.
  var shrinks = true

  /// Reads the command line.
  /// - Returns: nil when it is not understood.
  init?(_ words: [String]) {
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--no-shrinking" {
        shrinks = false
        continue
      }
      guard let value = rest.popFirst() else { return nil }
      switch word {
      case "--seeds":
        guard let number = UInt64(value), number > 0 else { return nil }
        seedCount = number
      case "--steps":
        guard let number = Int(value), number >= 0 else { return nil }
        stepCount = number
      case "--first":
        guard let number = UInt64(value) else { return nil }
        firstSeed = number
      case "--workers":
        guard let number = Int(value), number > 0 else { return nil }
        workerCount = number
      case "--directory": directory = value
      case "--log": log = value
      case "--taking":
        let numbers = value.split(separator: ",").map { Int($0) }
        guard !numbers.contains(nil) else { return nil }
        taking = Set(numbers.compactMap { $0 })
      default: return nil
      }
    }
    guard log == nil || seedCount == 1,
      firstSeed.addingReportingOverflow(seedCount).overflow == false
    else { return nil }
  }
}
