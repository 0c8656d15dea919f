import Foundation

/// Paths as C wants them.
final class PathList {
  let paths: [String]
  let pointers: UnsafeMutablePointer<UnsafePointer<CChar>?>

  var count: Int { paths.count }

  init(_ paths: [String]) {
    self.paths = paths
    pointers = .allocate(capacity: max(paths.count, 1))
    for (index, path) in paths.enumerated() {
      (pointers + index).initialize(to: UnsafePointer(strdup(path)))
    }
  }

  deinit {
    for index in paths.indices { free(UnsafeMutablePointer(mutating: pointers[index])) }
    pointers.deallocate()
  }
}
