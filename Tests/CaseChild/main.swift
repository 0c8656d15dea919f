// The process that CaseTests starts, and kills or lets kill itself. Not a product.
//
// One word names what it does; what it has to say goes to standard output, a line at a time, written
// at once so that a killed child has said all that it did.
import Foundation

do {
  let child = try Child(CommandLine.arguments.dropFirst())
  switch child.task {
  case "enqueue": try await child.enqueue()
  case "pass": try await child.pass()
  case "readers": try await child.holdReaders()
  case "inspect": try child.inspect()
  case "step": try await child.endAtStep()
  case "queue": try await child.fillQueue()
  default: throw Child.BadWords()
  }
} catch {
  say("failed \(error)")
  exit(1)
}
