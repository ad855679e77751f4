// What `clang++ -fsanitize=thread` calls for every load and store. This file takes
// the place of its runtime, so libtsan must never be linked beside it.
#include "test/simt/Block.h"

#include <cstring>

using ingot::simt::access;

#define CALLER __builtin_return_address(0)
#define HOOKS(SIZE)                                                            \
  extern "C" void __tsan_read##SIZE(void *at) {                                \
    access(at, SIZE, false, CALLER);                                           \
  }                                                                            \
  extern "C" void __tsan_write##SIZE(void *at) {                               \
    access(at, SIZE, true, CALLER);                                            \
  }                                                                            \
  extern "C" void __tsan_unaligned_read##SIZE(void *at) {                      \
    access(at, SIZE, false, CALLER);                                           \
  }                                                                            \
  extern "C" void __tsan_unaligned_write##SIZE(void *at) {                     \
    access(at, SIZE, true, CALLER);                                            \
  }                                                                            \
  extern "C" void __tsan_read_write##SIZE(void *at) {                          \
    access(at, SIZE, false, CALLER);                                           \
    access(at, SIZE, true, CALLER);                                            \
  }                                                                            \
  extern "C" void __tsan_unaligned_read_write##SIZE(void *at) {                \
    access(at, SIZE, false, CALLER);                                           \
    access(at, SIZE, true, CALLER);                                            \
  }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" void __tsan_read_range(void *at, std::size_t bytes) {
  access(at, bytes, false, CALLER);
}
extern "C" void __tsan_write_range(void *at, std::size_t bytes) {
  access(at, bytes, true, CALLER);
}
extern "C" void *__tsan_memcpy(void *to, const void *from, std::size_t bytes) {
  access(from, bytes, false, CALLER);
  access(to, bytes, true, CALLER);
  return std::memcpy(to, from, bytes);
}
extern "C" void *__tsan_memmove(void *to, const void *from, std::size_t bytes) {
  access(from, bytes, false, CALLER);
  access(to, bytes, true, CALLER);
  return std::memmove(to, from, bytes);
}
extern "C" void *__tsan_memset(void *to, int value, std::size_t bytes) {
  access(to, bytes, true, CALLER);
  return std::memset(to, value, bytes);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
