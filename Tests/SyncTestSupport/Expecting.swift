package import HubProtocol
package import ProfileStore
package import ProfileSync
package import Testing

/// Expects a pass to stop with this code.
@discardableResult
package func expect(
  _ code: SyncError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> Void
) async -> SyncError? {
  do {
    try await body()
    Issue.record("nothing was thrown instead of \(code)", sourceLocation: sourceLocation)
  } catch let error as SyncError {
    #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
    return error
  } catch {
    Issue.record("another error instead of \(code): \(error)", sourceLocation: sourceLocation)
  }
  return nil
}

/// Expects the store to refuse with this code.
package func expect(
  _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> Void
) async {
  do {
    try await body()
    Issue.record("nothing was thrown instead of \(code)", sourceLocation: sourceLocation)
  } catch let error as StoreError {
    #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
  } catch {
    Issue.record("another error instead of \(code): \(error)", sourceLocation: sourceLocation)
  }
}

/// The failure that an app's closure throws in a test.
package struct AppFailure: Error, Equatable {
  package init() {}
}

/// IDs with numbers, in their order.
package func ids(_ range: ClosedRange<Int>, _ prefix: String = "r") -> [RecordID] {
  range.map { number in
    let digits = String(number)
    return RecordID("\(prefix)\(String(repeating: "0", count: 4 - digits.count))\(digits)")
  }
}
