// Loops that are worth wider vectors than the build's own level get a clone a
// level, chosen when the program starts. Contraction is off and sums never cross
// lanes in them, so all clones give the same bits. Sanitizers take the plain
// one: their runtime is not up when the choice is made.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define INGOT_VECTOR_CLONES
#endif
#endif
#ifndef INGOT_VECTOR_CLONES
#define INGOT_VECTOR_CLONES                                                    \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define INGOT_VECTOR_CLONES
#endif
