// Feeds bytes to the decoders of what comes from a disk or a network. Not a product; see Tools/fuzz.
//
//   fuzz-decoders --list              the names of all decoders
//   fuzz-decoders --seeds DIRECTORY   writes what to begin with, a folder for each
//   fuzz-decoders NAME FILE|FOLDER…   feeds these once
//
// Built with -sanitize=fuzzer -DFUZZING it is libFuzzer's program, and FUZZED_DECODER has the name.
//
// A decoder may refuse bytes with its typed error. It may not crash, hang, or read what it has written
// as something else.
import Foundation

#if FUZZING
  exit(Feeding.runFuzzer())
#else
  try feedFiles()
#endif
