// The process that the tests of LMDBFaultTests start, command and kill. Not a product.
//
// One word names what it does; what it has to say goes to standard output, a line at a time, written
// at once so that a killed child has said all that it did.
import Foundation

let words = Array(CommandLine.arguments.dropFirst())
do {
  switch words.first {
  case "session": try Session().run()
  case "commit": try CommitStreams(words.dropFirst()).run()
  case "count": try TwoWriters(words.dropFirst()).run()
  case "fork": try Forking(words.dropFirst()).run()
  case "group": try FullGroup(words.dropFirst()).run()
  case "tasks": try EndingTasks(words.dropFirst()).run()
  default:
    say("unknown word \(words)")
    exit(64)
  }
} catch {
  say("failed \(describe(error))")
  exit(1)
}
