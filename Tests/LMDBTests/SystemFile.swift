import Foundation

/// The whole text of a file that the kernel makes up while it is read, as those in `/proc`.
///
/// Such a file says that it has no bytes and hands itself out in pieces of about 4 KiB. Foundation
/// takes the first piece for the whole, without an error.
func textOfSystemFile(_ path: String) throws -> String {
  guard let file = FileHandle(forReadingAtPath: path) else {
    throw CocoaError(.fileReadNoSuchFile, userInfo: [NSFilePathErrorKey: path])
  }
  var bytes = Data()
  while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { bytes += piece }
  return String(decoding: bytes, as: UTF8.self)
}
