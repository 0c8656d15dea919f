// The process that CrashTests starts, kills, and lets run into full disks and damaged files. Not a
// product.
//
// One word names its story; what it has to say goes to standard output, a line at a time, written at
// once so that a killed child has said all that it did.
import Foundation

do {
  let child = try Child(CommandLine.arguments.dropFirst())
  switch child.story {
  case "provision": try await child.provision()
  case "bind": try await child.bind()
  case "adopt": try await child.adopt()
  case "erase": try await child.erase()
  case "rebuild": try await child.rebuild()
  case "enqueue": try await child.enqueue()
  case "growth": try await child.grow()
  case "push", "apply", "replay": try await child.pass()
  case "read": try await child.readStores()
  case "write": try await child.write()
  case "hang": try await child.hang()
  default: throw Child.BadWords()
  }
} catch {
  say("failed \(describe(error))")
}
