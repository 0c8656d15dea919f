public import Foundation
import HubProtocol

extension HubConfiguration {
  /// Reads a configuration file and the key files it names.
  ///
  /// Relative paths in it count from the file's own directory. A key that it leaves out has its
  /// default; one that is not known is an error, so that a slip of the pen is not a silent default.
  /// - Throws: ``HubServerError`` `configurationInvalid` or `keyInvalid`, naming file and key.
  public static func read(from file: URL) throws(HubServerError) -> HubConfiguration {
    let bytes: Data
    do { bytes = try Data(contentsOf: file) } catch {
      throw HubServerError(
        .configurationInvalid, "\(file.path) cannot be read; check its path and rights",
        cause: error)
    }
    guard let tree = JSONTree(bytes), tree.root.isObject else {
      throw HubServerError(
        .configurationInvalid, "\(file.path) is no JSON object, or names a key twice")
    }
    do {
      let configuration = try HubConfiguration(
        root: ConfigurationSection(tree.root), directory: file.deletingLastPathComponent())
      try configuration.validate()
      return configuration
    } catch  where error.code == .configurationInvalid {
      throw HubServerError(.configurationInvalid, "\(file.path): \(error.message)")
    }
  }

  private init(root: ConfigurationSection, directory: URL) throws(HubServerError) {
    func location(_ path: String, isDirectory: Bool = false) -> URL {
      URL(
        filePath: path, directoryHint: isDirectory ? .isDirectory : .notDirectory,
        relativeTo: directory
      ).absoluteURL.standardizedFileURL
    }
    let tokenSection = try root.section("tokens")
    var keys: [SigningKey] = []
    for section in try tokenSection.sections("keys") {
      let file = location(try section.required(section.path("file"), "file"))
      let algorithms = try section.texts("algorithms")?.map(section.algorithm)
      try section.requireNothingElse()
      keys += try SigningKey.read(file: file, algorithms: algorithms)
    }
    let data = try root.required(root.path("dataDirectory"), "dataDirectory")
    self.init(dataDirectory: location(data, isDirectory: true), keys: keys)
    try tokenSection.read("issuer", into: &tokens.issuer)
    try tokenSection.read("audience", into: &tokens.audience)
    try tokenSection.requireNothingElse()
    if let text = try root.text("hubID") {
      guard let id = UUID(uuidString: text) else {
        throw HubServerError(.configurationInvalid, "hubID is no UUID")
      }
      hubID = id
    }
    try readListen(root.section("listen"))
    try readLimits(root.section("limits"))
    let store = try root.section("store")
    try store.read("bytesMax", into: &storeByteCountMax)
    try store.requireNothingElse()
    let log = try root.section("requestLog")
    requestLog = try log.path("file").map { location($0) }
    try log.requireNothingElse()
    let faults = try root.section("faults")
    faultsEnabled = try faults.boolean("enabled") ?? false
    try faults.requireNothingElse()
    let debug = try root.section("debug")
    captureDirectory = try debug.path("captureDirectory").map { location($0, isDirectory: true) }
    try debug.requireNothingElse()
    try root.requireNothingElse()
  }

  private mutating func readListen(_ section: ConfigurationSection) throws(HubServerError) {
    try section.read("address", into: &listen.address)
    if let number = try section.integer("port") {
      guard let port = UInt16(exactly: number) else {
        throw HubServerError(
          .configurationInvalid, "listen.port is \(number); it may be 0 to 65535")
      }
      listen.port = port
    }
    try section.read("connections", into: &listen.connectionCountMax)
    try section.read("idleSeconds", into: &listen.idleSeconds)
    try section.read("headSeconds", into: &listen.headSeconds)
    try section.read("bodySeconds", into: &listen.bodySeconds)
    try section.read("stopSeconds", into: &listen.stopSeconds)
    try section.requireNothingElse()
  }

  private mutating func readLimits(_ section: ConfigurationSection) throws(HubServerError) {
    try section.read("pullRecords", into: &limits.pullRecords)
    try section.read("pullBytes", into: &limits.pullBytes)
    try section.read("pushMutations", into: &limits.pushMutations)
    try section.read("pushBytes", into: &limits.pushBytes)
    try section.read("payloadBytes", into: &limits.payloadBytes)
    try section.read("waitSeconds", into: &limits.waitSeconds)
    try section.requireNothingElse()
  }
}
