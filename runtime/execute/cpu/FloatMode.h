// The floating-point environment of docs/numerics.md: round to nearest even,
// denormals kept, exceptions masked. Set in every worker for good, and around
// each step in the caller's thread, whose own mode is put back.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ingot {

class FloatModeScope {
public:
#if defined(__x86_64__)
  FloatModeScope() : saved_(_mm_getcsr()) { _mm_setcsr(kDefaultMxcsr); }
  ~FloatModeScope() { _mm_setcsr(saved_); }
#else
  FloatModeScope() {}
  ~FloatModeScope() {}
#endif
  FloatModeScope(const FloatModeScope &) = delete;
  FloatModeScope &operator=(const FloatModeScope &) = delete;

private:
#if defined(__x86_64__)
  static constexpr unsigned kDefaultMxcsr = 0x1f80;
  unsigned saved_;
#endif
};

} // namespace ingot
