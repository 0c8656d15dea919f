import CMachine
import Foundation
import Simulation

// `simulator`: runs seeds, each in a process of its own, and says what must not have happened. Called by
// Tools/simulate, which builds it and explains its options.
machine_settle(CommandLine.unsafeArgv)
guard let order = Order(Array(CommandLine.arguments.dropFirst())) else {
  fail(64, "the command line was not understood; see Tools/simulate --help")
}
guard machine_works() else {
  fail(69, "needs Linux with glibc, and no sanitizer")
}
exit(Runner(order).run() ? 0 : 1)

func fail(_ status: Int32, _ sentence: String) -> Never {
  FileHandle.standardError.write(Data("simulator: \(sentence)\n".utf8))
  exit(status)
}
