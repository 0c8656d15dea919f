import Foundation

/// What the program does without libFuzzer.
func feedFiles() throws {
  let words = Array(CommandLine.arguments.dropFirst())
  switch words.first {
  case "--list": for decoder in Feeding.decoders { print(decoder.name) }
  case "--seeds":
    guard words.count == 2 else { Feeding.fail("--seeds needs a directory") }
    try writeSeeds(to: URL(filePath: words[1]))
  case let name?:
    try Feeding.begin(name)
    let all = try words.dropFirst().flatMap { try files(at: $0) }
    for file in all { Feeding.feed(Array(try Data(contentsOf: URL(filePath: file)))) }
    print("\(name): \(all.count) files")
  case nil: Feeding.fail("the name of a decoder is missing; see --list")
  }
}

private func writeSeeds(to place: URL) throws {
  for decoder in Feeding.decoders {
    let directory = place.appending(path: decoder.name)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for (number, seed) in try decoder.init().seeds.enumerated() {
      try Data(seed).write(to: directory.appending(path: "seed\(number)"))
    }
  }
}

/// The files of a folder, or the file itself.
private func files(at place: String) throws -> [String] {
  var isFolder: ObjCBool = false
  guard FileManager.default.fileExists(atPath: place, isDirectory: &isFolder), isFolder.boolValue
  else { return [place] }
  return try FileManager.default.contentsOfDirectory(atPath: place).sorted().map {
    place + "/" + $0
  }
}
