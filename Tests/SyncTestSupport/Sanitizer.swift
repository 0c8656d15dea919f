import Foundation

/// Whether this process, and so each child of the same build, runs under a sanitizer: it multiplies
/// the memory, and keeps what was freed to find uses of it.
public let isSanitized =
  unsafe dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
