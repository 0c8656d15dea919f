internal import CLMDB

/// Asks the processor to have a line of memory at hand before it is read.
///
/// - Parameter address: any at all: nothing is read, and one that is in no map is no fault.
/// - Cost: one instruction, and nobody waits for what it does.
@inline(__always)
package func askForMemory(at address: UInt) { clmdb_ask_for(address) }
