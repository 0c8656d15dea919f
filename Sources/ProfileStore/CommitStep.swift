/// The places around each durable commit of an area: where a test ends the process, or lets the commit
/// fail, to prove that the next pass finds its way.
package enum CommitStep: Sendable {
  /// Everything is written in the transaction, nothing is on disk. What is thrown here undoes it.
  case commits
  /// It is on disk, and nobody has been told yet.
  case committed
}
