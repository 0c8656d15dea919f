import Foundation

/// Looks for an account's canary strings in files where they must not be.
enum CanaryScan {
  /// Every file below a directory that holds the text.
  static func files(below directory: URL, holding text: String) throws -> [String] {
    let wanted = Data(text.utf8)
    var found: [String] = []
    let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: file.path, isDirectory: &isDirectory),
        // Opening a lock file in this process would drop its locks.
        !isDirectory.boolValue, file.lastPathComponent != "lock.mdb"
      else { continue }
      if try Data(contentsOf: file).range(of: wanted) != nil { found.append(file.path) }
    }
    return found
  }
}
