#include "runtime/plan/CpuFeatures.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ingot {

#if defined(__x86_64__)
namespace {

// Which registers the operating system saves; a bit of CPUID alone does not
// make AVX usable.
std::uint64_t enabledStates() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t(high) << 32) | low;
}

std::set<std::string> detect() {
  std::set<std::string> found;
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return found;
  auto add = [&](bool present, const char *name) {
    if (present)
      found.insert(name);
  };
  auto bit = [](std::uint32_t word, int index) {
    return ((word >> index) & 1u) != 0;
  };
  bool osSaves = bit(c, 27);
  std::uint64_t states = osSaves ? enabledStates() : 0;
  bool avx = (states & 0x6) == 0x6;
  bool avx512 = avx && (states & 0xe0) == 0xe0;
  bool amx = (states & 0x60000) == 0x60000;

  add(bit(d, 8), "cx8");
  add(bit(d, 15), "cmov");
  add(bit(d, 23), "mmx");
  add(bit(d, 24), "fxsr");
  add(bit(d, 25), "sse");
  add(bit(d, 26), "sse2");
  add(bit(c, 0), "sse3");
  add(bit(c, 1), "pclmul");
  add(bit(c, 9), "ssse3");
  add(bit(c, 13), "cx16");
  add(bit(c, 19), "sse4.1");
  add(bit(c, 20), "sse4.2");
  add(bit(c, 22), "movbe");
  add(bit(c, 23), "popcnt");
  add(bit(c, 25), "aes");
  add(bit(c, 26), "xsave");
  add(avx && bit(c, 12), "fma");
  add(avx && bit(c, 28), "avx");
  add(avx && bit(c, 29), "f16c");
  add(bit(c, 30), "rdrnd");

  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    add(bit(b, 0), "fsgsbase");
    add(bit(b, 3), "bmi");
    add(avx && bit(b, 5), "avx2");
    add(bit(b, 8), "bmi2");
    add(avx512 && bit(b, 16), "avx512f");
    add(avx512 && bit(b, 17), "avx512dq");
    add(bit(b, 18), "rdseed");
    add(bit(b, 19), "adx");
    add(avx512 && bit(b, 21), "avx512ifma");
    add(avx512 && bit(b, 28), "avx512cd");
    add(bit(b, 29), "sha");
    add(avx512 && bit(b, 30), "avx512bw");
    add(avx512 && bit(b, 31), "avx512vl");
    add(avx512 && bit(c, 1), "avx512vbmi");
    add(avx512 && bit(c, 6), "avx512vbmi2");
    add(bit(c, 8), "gfni");
    add(avx && bit(c, 9), "vaes");
    add(avx && bit(c, 10), "vpclmulqdq");
    add(avx512 && bit(c, 11), "avx512vnni");
    add(avx512 && bit(c, 12), "avx512bitalg");
    add(avx512 && bit(c, 14), "avx512vpopcntdq");
    add(avx512 && bit(d, 23), "avx512fp16");
    add(amx && bit(d, 22), "amx-bf16");
    add(amx && bit(d, 24), "amx-tile");
    add(amx && bit(d, 25), "amx-int8");
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    add(avx && bit(a, 4), "avxvnni");
    add(avx512 && bit(a, 5), "avx512bf16");
    add(avx && bit(d, 4), "avxvnniint8");
  }
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) {
    add(bit(c, 0), "sahf");
    add(bit(c, 5), "lzcnt");
    add(bit(c, 6), "sse4a");
    add(bit(c, 8), "prfchw");
    add(bit(d, 29), "64bit");
  }
  return found;
}

} // namespace

const std::set<std::string> &hostCpuFeatures() {
  static const std::set<std::string> features = detect();
  return features;
}
#else
const std::set<std::string> &hostCpuFeatures() {
  static const std::set<std::string> features;
  return features;
}
#endif

std::vector<std::string> missingFeatures(const std::vector<std::string> &needed,
                                         const std::set<std::string> &present) {
  std::vector<std::string> missing;
  for (const std::string &name : needed)
    if (!present.count(name))
      missing.push_back(name);
  return missing;
}

} // namespace ingot
