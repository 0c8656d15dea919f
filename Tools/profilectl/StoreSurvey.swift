import ProfileStore
import ToolSupport

/// All profiles of a store, and what is wrong with any of them.
struct StoreSurvey: Sendable {
  var profiles: [ProfileInfo]
  var registryFailure: StoreError?

  init(profiles: [ProfileInfo], registryFailure: StoreError? = nil) {
    self.profiles = profiles
    self.registryFailure = registryFailure
  }

  /// The code for what was printed.
  ///
  /// Throws ``ToolFailure`` if something is wrong, with the code of the first that is.
  func verdict() throws(ToolFailure) -> ExitCode {
    if let registryFailure {
      throw ToolFailure(StoreFailure.exitCode(of: registryFailure), registryFailure.description)
    }
    let failures = profiles.compactMap(\.failure)
    guard let first = failures.first else { return .ok }
    throw ToolFailure(
      StoreFailure.exitCode(of: first),
      "profiles that are not as they should be: \(failures.count) of \(profiles.count), the reason "
        + "stands with each")
  }
}
