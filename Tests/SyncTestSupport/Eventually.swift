package import Testing

/// Waits until a condition holds that another task brings about by itself, and records an issue where
/// it never does.
package func eventually(
  _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
  _ holds: () throws -> Bool
) async rethrows {
  let limit = ContinuousClock.now + .seconds(120)
  while try !holds() {
    if ContinuousClock.now > limit {
      Issue.record("it did not come to this: \(what)", sourceLocation: sourceLocation)
      return
    }
    await Task.yield()
  }
}
