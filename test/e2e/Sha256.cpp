#include "test/e2e/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ingot::test {
namespace {

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
std::array<std::uint32_t, 64> roundConstants() {
  std::array<std::uint32_t, 64> constants;
  std::size_t found = 0;
  for (std::uint64_t n = 2; found < constants.size(); ++n) {
    bool isPrime = true;
    for (std::uint64_t d = 2; d * d <= n; ++d)
      isPrime = isPrime && n % d != 0;
    if (!isPrime)
      continue;
    // The largest r with r^3 <= n * 2^96, bit by bit.
    unsigned __int128 root = 0;
    for (int bit = 35; bit >= 0; --bit) {
      unsigned __int128 tried = root | (unsigned __int128)1 << bit;
      if (tried * tried * tried <= (unsigned __int128)n << 96)
        root = tried;
    }
    constants[found++] = std::uint32_t(root);
  }
  return constants;
}

const std::array<std::uint32_t, 64> kRound = roundConstants();

} // namespace

void Sha256::compress(const std::uint8_t *block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = std::uint32_t(block[4 * i]) << 24 |
           std::uint32_t(block[4 * i + 1]) << 16 |
           std::uint32_t(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    std::uint32_t s0 =
        std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    std::uint32_t s1 =
        std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    state_[i] += added[i];
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    std::size_t held = sizeBytes_ % 64;
    std::size_t taken = std::min(64 - held, bytes.size());
    std::memcpy(block_.data() + held, bytes.data(), taken);
    sizeBytes_ += taken;
    bytes = bytes.subspan(taken);
    if (held + taken == 64)
      compress(block_.data());
  }
}

std::string Sha256::finish() {
  std::uint64_t sizeBits = sizeBytes_ * 8;
  const std::uint8_t one = 0x80, zero = 0;
  update({&one, 1});
  while (sizeBytes_ % 64 != 56)
    update({&zero, 1});
  std::uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = std::uint8_t(sizeBits >> (56 - 8 * i));
  update(length);
  std::string text;
  for (std::uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4)
      text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

} // namespace ingot::test
