import Foundation

/// Which environments this thread is inside of: what the compiler cannot see.
///
/// LMDB hangs on a write within a write of one thread and reports nothing, so both are remembered per
/// thread and trapped with a sentence.
final class ThreadState {
  private(set) var writing: [ObjectIdentifier] = []
  private(set) var reading: [ObjectIdentifier] = []

  /// This thread's state, made on first use and released when the thread ends.
  static var current: ThreadState {
    if let pointer = unsafe pthread_getspecific(key) {
      // SAFETY: the slot holds only what `passRetained` below put there, until the thread ends.
      return unsafe Unmanaged<ThreadState>.fromOpaque(pointer).takeUnretainedValue()
    }
    let state = ThreadState()
    // SAFETY: the destructor given to `pthread_key_create` releases this reference.
    unsafe pthread_setspecific(key, Unmanaged.passRetained(state).toOpaque())
    return state
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let result: Int32
    #if canImport(Darwin)
      result = unsafe pthread_key_create(&key) { pointer in
        unsafe Unmanaged<ThreadState>.fromOpaque(pointer).release()
      }
    #else
      result = unsafe pthread_key_create(&key) { pointer in
        guard let pointer = unsafe pointer else { return }
        unsafe Unmanaged<ThreadState>.fromOpaque(pointer).release()
      }
    #endif
    precondition(result == 0, "LMDB: the process has no thread key left")
    return key
  }()

  func isWriting(_ environment: Environment) -> Bool {
    !writing.isEmpty && writing.contains(ObjectIdentifier(environment))
  }

  func isReading(_ environment: Environment) -> Bool {
    !reading.isEmpty && reading.contains(ObjectIdentifier(environment))
  }

  func beginWriting(_ environment: Environment) { writing.append(ObjectIdentifier(environment)) }
  func endWriting() { writing.removeLast() }
  func beginReading(_ environment: Environment) { reading.append(ObjectIdentifier(environment)) }
  func endReading() { reading.removeLast() }
}
