/// One object of a configuration file: typed values by name, and no name that nobody asked for.
final class ConfigurationSection {
  private let value: JSONTree.Value?
  private let path: String
  private var asked: Set<String> = []

  /// The outermost object.
  convenience init(_ root: JSONTree.Value) { self.init(root, path: "") }

  private init(_ value: JSONTree.Value?, path: String) {
    self.value = value
    self.path = path
  }

  /// An object within this one; an empty one if the file leaves it out.
  func section(_ name: String) throws(HubServerError) -> ConfigurationSection {
    let member = member(name)
    guard member?.isObject ?? true else { throw wrongType(name, "an object") }
    return ConfigurationSection(member, path: full(name) + ".")
  }

  /// The objects of a list within this one; none if the file leaves it out.
  func sections(_ name: String) throws(HubServerError) -> [ConfigurationSection] {
    guard let member = member(name) else { return [] }
    guard let elements = member.array, elements.allSatisfy(\.isObject) else {
      throw wrongType(name, "a list of objects")
    }
    return elements.enumerated().map { index, element in
      ConfigurationSection(element, path: "\(full(name)).\(index).")
    }
  }

  func text(_ name: String) throws(HubServerError) -> String? {
    guard let member = member(name) else { return nil }
    guard let bytes = member.string else { throw wrongType(name, "a text") }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A path; an empty one would mean the configuration's own directory, which nobody wants.
  func path(_ name: String) throws(HubServerError) -> String? {
    guard let text = try text(name) else { return nil }
    guard !text.isEmpty else {
      throw HubServerError(.configurationInvalid, "\(full(name)) is empty; name a path")
    }
    return text
  }

  func texts(_ name: String) throws(HubServerError) -> [String]? {
    guard let member = member(name) else { return nil }
    let strings = member.array?.map(\.string) ?? [nil]
    guard strings.allSatisfy({ $0 != nil }) else { throw wrongType(name, "a list of texts") }
    return strings.compactMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
  }

  func integer(_ name: String) throws(HubServerError) -> Int? {
    guard let member = member(name) else { return nil }
    guard let integer = member.integer else { throw wrongType(name, "an integer") }
    return integer
  }

  func boolean(_ name: String) throws(HubServerError) -> Bool? {
    guard let member = member(name) else { return nil }
    guard let boolean = member.boolean else { throw wrongType(name, "true or false") }
    return boolean
  }

  /// Replaces a default, if the file has the key.
  func read(_ name: String, into value: inout String) throws(HubServerError) {
    if let text = try text(name) { value = text }
  }

  /// Replaces a default, if the file has the key.
  func read(_ name: String, into value: inout Int) throws(HubServerError) {
    if let integer = try integer(name) { value = integer }
  }

  /// The value, or an error that the key is missing.
  func required<Value>(_ value: Value?, _ name: String) throws(HubServerError) -> Value {
    guard let value else {
      throw HubServerError(.configurationInvalid, "\(full(name)) is missing; it has no default")
    }
    return value
  }

  /// The algorithm of that name.
  func algorithm(_ name: String) throws(HubServerError) -> TokenAlgorithm {
    guard let algorithm = TokenAlgorithm(rawValue: name) else {
      let known = TokenAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
      throw HubServerError(
        .configurationInvalid, "\(full("algorithms")) has \(name); it may have \(known)")
    }
    return algorithm
  }

  /// Refuses a name that no call above has asked for.
  func requireNothingElse() throws(HubServerError) {
    guard let unknown = value?.memberNames.filter({ !asked.contains($0) }).min() else { return }
    throw HubServerError(
      .configurationInvalid, "\(full(unknown)) is not known; Config/README.md lists the keys")
  }

  private func member(_ name: String) -> JSONTree.Value? {
    asked.insert(name)
    return value?[name]
  }

  private func full(_ name: String) -> String { path + name }

  private func wrongType(_ name: String, _ wanted: String) -> HubServerError {
    HubServerError(.configurationInvalid, "\(full(name)) is not \(wanted)")
  }
}
