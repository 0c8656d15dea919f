/// Stops the program with a sentence unless the caller kept a rule.
///
/// `precondition` stops a release build without a word; this speaks there, too.
@inline(__always)
func trapUnless(_ isKept: Bool, _ sentence: @autoclosure () -> String) {
  if !isKept { trap(sentence()) }
}

/// Stops the program with a sentence: a caller broke a rule that the compiler cannot see.
@inline(never)
@usableFromInline
func trap(_ sentence: String) -> Never { fatalError("LMDB: \(sentence)") }
