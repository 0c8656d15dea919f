/// The values of all parameters of one command line, each converted and checked.
struct ParameterValues: Sendable {
  // A box keeps the static type: a cast of a bare `any Sendable` would look through optionals.
  private struct Box<Value: Sendable>: Sendable {
    let value: Value
  }

  private var boxes: [String: any Sendable] = [:]

  mutating func add<P: Parameter>(_ parameter: P, texts: [String]) throws(UsageError) {
    let value = try parameter.value(of: texts)
    boxes[parameter.declaration.key] = Box(value: value)
  }

  func value<P: Parameter>(of parameter: P) -> P.Value? {
    (boxes[parameter.declaration.key] as? Box<P.Value>)?.value
  }
}
