package import Foundation

/// How many files below a directory have these bytes in them.
package func files(under directory: String, with bytes: String) throws -> Int {
  try contents(of: directory).values.count { $0.range(of: Data(bytes.utf8)) != nil }
}

/// The files below a directory by their path, without those that only lock.
package func contents(of directory: String) throws -> [String: Data] {
  var found: [String: Data] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
    let path = directory + "/" + name
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
      !isDirectory.boolValue, !name.hasSuffix("lock.mdb"), !name.hasSuffix(".lock")
    else { continue }
    found[name] = try Data(contentsOf: URL(filePath: path))
  }
  return found
}
