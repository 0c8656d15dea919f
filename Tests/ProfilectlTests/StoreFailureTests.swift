import LMDB
import ProfileStore
import Testing
import ToolSupport

@testable import profilectl

@Suite("An error of the store")
struct StoreFailureTests {
  @Test(
    "ends the tool with its code",
    arguments: [
      (StoreError.Code.notAStore, ExitCode.noInput), (.newerFormat, .dataError),
      (.damaged, .dataError), (.undecodable, .dataError), (.registryDisagrees, .dataError),
      (.unknownArea, .checkFailed), (.erased, .checkFailed), (.storage, .inputOutput),
      (.outboxFull, .internalError),
    ])
  func code(code: StoreError.Code, exitCode: ExitCode) {
    let failure = StoreFailure.translate(StoreError(code, "a sentence"))
    #expect(failure == ToolFailure(exitCode, "a sentence"))
  }

  @Test(
    "of the files ends the tool with the code for what LMDB said",
    arguments: [
      (LMDBError.Code.ioFailed, ExitCode.inputOutput),
      (.diskFull, .inputOutput), (.other, .inputOutput), (.damaged, .dataError),
      (.versionMismatch, .dataError), (.badForm, .dataError), (.tableMissing, .dataError),
      (.missing, .dataError), (.notADirectory, .dataError), (.incompatible, .dataError),
      (.readersFull, .temporaryFailure), (.outOfResources, .temporaryFailure),
      (.busy, .temporaryFailure), (.mapResized, .temporaryFailure),
    ])
  func cause(code: LMDBError.Code, exitCode: ExitCode) {
    let cause = LMDBError(code, operation: "open", path: "/store")
    let failure = StoreFailure.translate(StoreError(.storage, "it cannot be read", cause: cause))
    #expect(failure?.exitCode == exitCode)
    #expect(failure?.message.hasPrefix("it cannot be read: open: ") == true)
  }

  @Test("that is one of rights says so, without the remedy for damage")
  func rights() {
    let cause = LMDBError(.noPermission, operation: "open", path: "/store")
    let failure = StoreFailure.translate(
      StoreError(.storage, "if it is damaged, move it away", cause: cause))
    #expect(failure?.exitCode == .noPermission)
    #expect(failure?.message.contains("/store") == true)
    #expect(failure?.message.contains("damaged") == false)
  }

  @Test("that is none of the store's is left to others")
  func foreign() {
    #expect(StoreFailure.translate(CancellationError()) == nil)
  }
}
