// The noise of sampling: a pure function of (seed, position, token id). Adding
// Gumbel noise to logits and taking the largest draws from their softmax, so a
// token depends on nothing but the request's seed and where the token stands:
// not on the batch, not on the order of work, not on speculation.
#pragma once

#include <cstdint>

namespace ingot {

// 64 well-mixed bits of the three numbers. `key` is noiseKey(seed, position).
std::uint64_t noiseKey(std::uint64_t seed, std::uint64_t position);

inline std::uint64_t noiseBits(std::uint64_t key, std::uint64_t token) {
  // A finaliser of splitmix64 over a Weyl sequence keyed by the request.
  std::uint64_t x = key + token * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Uniform in (0, 1): never 0, never 1.
inline double noiseUniform(std::uint64_t bits) {
  return (double(bits >> 12) + 0.5) * 0x1p-52;
}

// -log(-log(1 - u)), which is at most kMaxGumbel for every u.
double gumbel(double uniform);
inline constexpr double kMaxGumbel = 36.8;

} // namespace ingot
