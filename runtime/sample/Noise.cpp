#include "runtime/sample/Noise.h"

#include <cmath>

namespace ingot {

std::uint64_t noiseKey(std::uint64_t seed, std::uint64_t position) {
  return noiseBits(noiseBits(0x6a09e667f3bcc909u, seed), position);
}

double gumbel(double uniform) { return -std::log(-std::log1p(-uniform)); }

} // namespace ingot
