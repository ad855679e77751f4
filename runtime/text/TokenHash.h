// The hash functions and flag bits of compiled tokenizer tables. Both sides of
// the contract include this file: compiler/frontend/tokenizer fills the tables,
// runtime/text probes them. Changing anything here changes TokenizerVersion.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ingot {

static_assert(std::endian::native == std::endian::little,
              "compiled tokenizer tables are little endian");

inline constexpr uint32_t TokenizerVersion = 2;

// More ids than any published vocabulary by far; bounds every allocation.
inline constexpr uint32_t MaxVocabSize = 1u << 22;

enum TokenFlag : uint8_t {
  TokenSpecial = 1, // a control token: left out of decoded text on request
  TokenAdded = 2,   // found in text before the model runs
  TokenByte = 4,    // stands for one byte (byte fallback)
  TokenLiteral = 8, // its spelling is not in the byte alphabet; never merged to
  TokenMissing = 16, // the id has no token
};

inline uint64_t mixHash(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  return h;
}

inline uint64_t hashBytes(std::string_view bytes) {
  uint64_t h = 0x51ED270B1F3A5C7Bull ^ bytes.size();
  const char *p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mixHash(h ^ word) * 0xD6E8FEB86659FD93ull;
  }
  uint64_t word = 0;
  if (left)
    std::memcpy(&word, p, left);
  return mixHash(mixHash(h ^ word) * 0xD6E8FEB86659FD93ull);
}

inline uint64_t hashMerge(int32_t left, int32_t right) {
  return mixHash((uint64_t(uint32_t(left)) << 32 | uint32_t(right)) *
                 0xD6E8FEB86659FD93ull);
}

} // namespace ingot
