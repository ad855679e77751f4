// SHA-256 (FIPS 180-4), to tell whether goldens belong to the weights at hand.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace ingot::test {

class Sha256 {
public:
  void update(std::span<const std::uint8_t> bytes);
  // The digest of all bytes so far, in hexadecimal; the object is used up.
  std::string finish();

private:
  void compress(const std::uint8_t *block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                         0xa54ff53a, 0x510e527f, 0x9b05688c,
                                         0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_ = {};
  std::uint64_t sizeBytes_ = 0;
};

} // namespace ingot::test
