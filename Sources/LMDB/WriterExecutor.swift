import Dispatch

/// The serial executor of an environment's writer.
///
/// An actor that returns it as its `unownedExecutor` runs on the thread that also serves the
/// environment's `async` writes: its synchronous methods may use the blocking `Environment.write`
/// without blocking a task's thread, and without a hop. <doc:Durability> shows one.
///
/// The actor keeps the environment, and that its executor.
public final class WriterExecutor: SerialExecutor {
  /// Made on first use: a thousand environments that are only read have none.
  let queue = DispatchQueue(label: "holdfast.lmdb.writer")

  /// Runs a job of an actor. Called by the language's runtime.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// This executor, for an actor's `unownedExecutor`.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    unsafe UnownedSerialExecutor(ordinary: self)
  }

  /// Traps unless it is called on this executor. Called by the language's runtime.
  public func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
