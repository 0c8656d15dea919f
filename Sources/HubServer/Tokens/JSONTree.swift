import CJOSE
import Foundation

/// A JSON text as jansson reads it: strings byte for byte (NUL too), repeated members refused.
///
/// Claims are read with it and not with Foundation since a token's `sub` is an identity: what two
/// parsers could read differently must not be read at all.
final class JSONTree {
  private let pointer: UnsafeMutablePointer<json_t>

  /// Reads an object or array; nil when the bytes are no JSON, or a member is there twice.
  init?(_ bytes: some Collection<UInt8>) {
    let flags = Int(JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)
    let read = Array(bytes).withUnsafeBytes { buffer in
      // SAFETY: jansson reads `count` bytes and copies what it keeps.
      json_loadb(buffer.baseAddress, buffer.count, flags, nil)
    }
    guard let read else { return nil }
    pointer = read
  }

  deinit { json_decref(pointer) }

  /// The outermost value.
  var root: Value { Value(tree: self, pointer: pointer) }

  /// One value; it keeps its tree alive.
  struct Value {
    private let tree: JSONTree
    /// The value as C calls take it, valid as long as `self` is.
    let pointer: UnsafeMutablePointer<json_t>

    fileprivate init(tree: JSONTree, pointer: UnsafeMutablePointer<json_t>) {
      self.tree = tree
      self.pointer = pointer
    }
  }
}

extension JSONTree.Value {
  // SAFETY: `pointer` belongs to `tree`, which lives as long as this value, and nothing changes it
  // after it was read. The accessors below check the type before they read the value.
  private var type: json_type { pointer.pointee.type }

  var isObject: Bool { type == JSON_OBJECT }

  /// The member of that name; nil when this is no object, or has none.
  subscript(_ name: String) -> JSONTree.Value? {
    guard isObject, let member = json_object_get(pointer, name) else { return nil }
    return JSONTree.Value(tree: tree, pointer: member)
  }

  /// The UTF-8 bytes of a string; nil for any other type.
  var string: [UInt8]? {
    guard type == JSON_STRING, let text = json_string_value(pointer) else { return nil }
    return UnsafeBufferPointer(start: text, count: json_string_length(pointer)).map {
      UInt8(bitPattern: $0)
    }
  }

  /// An integer or a fraction; nil for any other type.
  var number: Double? {
    guard type == JSON_INTEGER || type == JSON_REAL else { return nil }
    return json_number_value(pointer)
  }

  /// The elements of an array; nil for any other type.
  var array: [JSONTree.Value]? {
    guard type == JSON_ARRAY else { return nil }
    return (0..<json_array_size(pointer)).compactMap { index in
      json_array_get(pointer, index).map { JSONTree.Value(tree: tree, pointer: $0) }
    }
  }

  /// An integer; nil for any other type, fractions too.
  var integer: Int? {
    type == JSON_INTEGER ? Int(json_integer_value(pointer)) : nil
  }

  /// A truth value; nil for any other type.
  var boolean: Bool? {
    type == JSON_TRUE ? true : type == JSON_FALSE ? false : nil
  }

  /// The names of an object's members; empty for any other type.
  var memberNames: [String] {
    guard isObject else { return [] }
    var names: [String] = []
    var place = json_object_iter(pointer)
    while let here = place {
      if let name = json_object_iter_key(here) { names.append(String(cString: name)) }
      place = json_object_iter_next(pointer, here)
    }
    return names
  }
}
