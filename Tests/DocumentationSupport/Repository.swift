package import Foundation

/// The files of this repository, as a reader sees them.
package enum Repository {
  package static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  package static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The files under a directory whose names have this ending, in the order of their paths.
  package static func files(under directory: String, ending: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(
      atPath: root.appending(path: directory).resolvingSymlinksInPath().path
    )
    .filter { $0.hasSuffix(ending) }.map { "\(directory)/\($0)" }.sorted()
  }

  /// The pages of a catalogue: their names, without the ending, and their texts.
  package static func pages(of catalogue: String) throws -> [(name: String, text: String)] {
    try files(under: catalogue, ending: ".md").map { path in
      (URL(filePath: path).deletingPathExtension().lastPathComponent, try text(path))
    }
  }
}

/// A fenced block of a Markdown text.
package struct Block {
  package let language: String
  /// What stands between the fences, each line with its end.
  package let content: String
  /// The number of the line with the closing fence, from 1.
  package let lastLine: Int

  package var lines: [Substring] {
    content.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
  }
}

extension String {
  /// The fenced blocks, in order.
  package var fencedBlocks: [Block] {
    var blocks: [Block] = []
    var open: (language: String, content: String)?
    for (index, line) in split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if let block = open {
        if line == "```" {
          blocks.append(
            Block(language: block.language, content: block.content, lastLine: index + 1))
          open = nil
        } else {
          open = (block.language, block.content + line + "\n")
        }
      } else if line.hasPrefix("```") {
        open = (String(line.dropFirst(3)), "")
      }
    }
    return blocks
  }

  /// Whether these lines stand here one after the other, all moved right by the same spaces.
  package func contains(movedRight block: [Substring]) -> Bool {
    let lines = split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = block.first, block.count <= lines.count else { return false }
    return (0...(lines.count - block.count)).contains { start in
      let indentation = lines[start].count - first.count
      guard indentation >= 0, lines[start].prefix(indentation).allSatisfy({ $0 == " " }) else {
        return false
      }
      let margin = String(repeating: " ", count: indentation)
      return zip(lines[start...], block).allSatisfy { line, wanted in
        line == (wanted.isEmpty ? "" : margin + wanted)
      }
    }
  }

  /// Everything that a pattern's first group catches, in order.
  package func captures(_ pattern: Regex<(Substring, Substring)>) -> [String] {
    matches(of: pattern).map { String($0.output.1) }
  }
}
