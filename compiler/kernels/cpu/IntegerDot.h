// Exact dot products of activation codes with a tile of 16 rows of int8 or int4
// codes, over 32 elements of K at a time: the one part of the kernels that is
// written for each feature level. int8 weights are widened to 16 bits, pairs of
// even and pairs of odd bytes, and meet activations of 16 bits; int4 weights
// meet activations of 8.
//   INGOT_WIDE  512-bit tiles: vpdpwssd for int8, vpdpbusd for int4. Without
//               AVX512-VNNI their wrappers have portable bodies, so that the same
//               logic runs on any machine.
//   else        256-bit halves: vpmaddwd for int8; int4 codes are at most 15, so
//               vpmaddubsw adds 8 times within int16: 8 * 2 * 15 * 127 = 30480.
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "compiler/kernels/cpu/WeightCodes.h"
#include "runtime/plan/KernelAbi.h"

#include <immintrin.h>

namespace ingot::kernels {

// Bytes of an activation code.
constexpr int64_t activationBytes(WeightCode code) {
  return code == WeightCode::I8 ? 2 : 1;
}

// Where many tokens share a tile, its weights are first laid out as the dot
// products read them, 64 bytes a step of K:
//   int8  pairs of 16 bits with the offset taken out, even elements of four
//         before odd ones
//   int4  four codes of a byte each
constexpr int preparedSteps(WeightCode code) {
  return code == WeightCode::I8 ? 16 : 8;
}
// Bytes of 32 elements of K.
constexpr int64_t preparedBytes(WeightCode code) {
  return 64 * preparedSteps(code);
}

// Prepares 32 elements of K of one tile. With `minimum`, codes have no offset.
template <WeightCode Code>
INGOT_INLINE void prepareBlock(uint8_t *to, const uint8_t *codes,
                               bool minimum) {
  if constexpr (Code == WeightCode::I8) {
    typedef int16_t Shorts __attribute__((ext_vector_type(32)));
    const Shorts offset = (Shorts)(int16_t)(minimum ? 0 : 128);
    INGOT_UNROLL for (int quad = 0; quad < 8; ++quad) {
      const VecI w = loadAs<VecI>(codes + 64 * quad);
      const VecI even = w & 0x00ff00ff;
      const VecI odd = (VecI)((VecU)w >> 8) & 0x00ff00ff;
      storeAs(to + 128 * quad, (Shorts)even - offset);
      storeAs(to + 128 * quad + 64, (Shorts)odd - offset);
    }
  } else {
    INGOT_UNROLL for (int eight = 0; eight < 4; ++eight) {
      const VecI w = loadAs<VecI>(codes + 64 * eight);
      storeAs(to + 128 * eight, w & 0x0f0f0f0f);
      storeAs(to + 128 * eight + 64, (w >> 4) & 0x0f0f0f0f);
    }
  }
}

INGOT_INLINE int32_t loadWord(const uint8_t *from) {
  int32_t word;
  __builtin_memcpy(&word, from, 4);
  return word;
}

#if INGOT_WIDE

// Adds to each lane the dot product of its four unsigned weight bytes with the
// four signed bytes of `x`.
INGOT_INLINE VecI dotBytes(VecI sum, VecI weights, VecI x) {
#if defined(__AVX512VNNI__)
  return (VecI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)x);
#else
  INGOT_UNROLL for (int byte = 0; byte < 4; ++byte) {
    VecI w = (VecI)((VecU)weights >> (8 * byte)) & 255;
    sum += w * ((x << (24 - 8 * byte)) >> 24);
  }
  return sum;
#endif
}

// Adds to each lane the dot product of its two 16-bit halves with those of `x`.
INGOT_INLINE VecI dotPairs(VecI sum, VecI weights, VecI x) {
#if defined(__AVX512VNNI__)
  return (VecI)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)weights, (__m512i)x);
#else
  return sum + (weights >> 16) * (x >> 16) +
         ((weights << 16) >> 16) * ((x << 16) >> 16);
#endif
}

// Tokens that one pass over a tile serves: the sums of 8 tokens hide the latency
// of the dot products.
inline constexpr int kManyTokens = 8;

// Tokens that share a pass over prepared weights.
inline constexpr int kPreparedTokens = 8;

template <int Tokens> struct TileSums {
  VecI lanes[Tokens];
  INGOT_MEMBER void clear() {
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) lanes[t] = splat(0);
  }
  INGOT_MEMBER VecI of(int t) const { return lanes[t]; }
};

// `codes`: 32 elements of K of one tile. `x[t]`: the token's row, whose codes are
// wanted from element `at` on.
template <WeightCode Code, int Tokens>
INGOT_INLINE void addBlock(TileSums<Tokens> &sums, const uint8_t *codes,
                           const uint8_t *const *x, int64_t at) {
  if constexpr (Code == WeightCode::I8) {
    INGOT_UNROLL for (int quad = 0; quad < 8; ++quad) {
      const VecI w = loadAs<VecI>(codes + 64 * quad);
      const VecI even = w & 0x00ff00ff;
      const VecI odd = (VecI)((VecU)w >> 8) & 0x00ff00ff;
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) sums.lanes[t] = dotPairs(
          sums.lanes[t], even, splat(loadWord(x[t] + 2 * at + 8 * quad)));
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) sums.lanes[t] = dotPairs(
          sums.lanes[t], odd, splat(loadWord(x[t] + 2 * at + 8 * quad + 4)));
    }
  } else {
    INGOT_UNROLL for (int eight = 0; eight < 4; ++eight) {
      const VecI w = loadAs<VecI>(codes + 64 * eight);
      const VecI low = w & 0x0f0f0f0f;
      const VecI high = (w >> 4) & 0x0f0f0f0f;
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) sums.lanes[t] =
          dotBytes(sums.lanes[t], low, splat(loadWord(x[t] + at + 8 * eight)));
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) sums.lanes[t] = dotBytes(
          sums.lanes[t], high, splat(loadWord(x[t] + at + 8 * eight + 4)));
    }
  }
}

// The same over prepared weights (prepareBlock). `First`: sums begin here.
template <WeightCode Code, bool First, int Tokens>
INGOT_INLINE void addPrepared(TileSums<Tokens> &sums, const uint8_t *weights,
                              const uint8_t *const *x, int64_t at) {
  if constexpr (First)
    sums.clear();
  INGOT_UNROLL for (int step = 0; step < preparedSteps(Code); ++step) {
    const VecI w = loadAs<VecI>(weights + 64 * step);
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
      const VecI four =
          splat(loadWord(x[t] + activationBytes(Code) * at + 4 * step));
      sums.lanes[t] = Code == WeightCode::I8 ? dotPairs(sums.lanes[t], w, four)
                                             : dotBytes(sums.lanes[t], w, four);
    }
  }
}

#else // 256-bit halves

inline constexpr int kManyTokens = 4;

inline constexpr int kPreparedTokens = 4;

// Ends a step: sums stay in registers and nothing that follows starts early.
// Without it the optimiser adds up the products of many steps first and spills
// every one of them; 8 sums, 2 halves of weights, an activation, a product and a
// mask just fit 16 registers.
template <int Tokens> INGOT_INLINE void endStep(__m256i (&sums)[Tokens][2]) {
  INGOT_UNROLL for (int t = 0; t < Tokens; ++t)
      INGOT_UNROLL for (int h = 0; h < 2;
                        ++h) asm volatile("" : "+x"(sums[t][h])::"memory");
}

template <int Tokens> struct TileSums {
  __m256i half[Tokens][2];
  INGOT_MEMBER void clear() {
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) half[t][0] = half[t][1] =
        _mm256_setzero_si256();
  }
  INGOT_MEMBER VecI of(int t) const {
    typedef int32_t Half __attribute__((ext_vector_type(8)));
    return __builtin_shufflevector((Half)half[t][0], (Half)half[t][1], 0, 1, 2,
                                   3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
};

template <WeightCode Code, int Tokens>
INGOT_INLINE void addBlock(TileSums<Tokens> &sums, const uint8_t *codes,
                           const uint8_t *const *x, int64_t at) {
  if constexpr (Code == WeightCode::I8) {
    const __m256i evenBytes = _mm256_set1_epi16(0x00ff);
    INGOT_UNROLL for (int quad = 0; quad < 8; ++quad)
        INGOT_UNROLL for (int odd = 0; odd < 2; ++odd) {
      __m256i w[2];
      INGOT_UNROLL for (int h = 0; h < 2; ++h) {
        w[h] = loadAs<__m256i>(codes + 64 * quad + 32 * h);
        w[h] = odd ? _mm256_srli_epi16(w[h], 8)
                   : _mm256_and_si256(w[h], evenBytes);
      }
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
        const __m256i pair =
            _mm256_set1_epi32(loadWord(x[t] + 2 * at + 8 * quad + 4 * odd));
        INGOT_UNROLL for (int h = 0; h < 2; ++h) sums.half[t][h] =
            _mm256_add_epi32(sums.half[t][h], _mm256_madd_epi16(w[h], pair));
      }
      endStep(sums.half);
    }
  } else {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i pairs[Tokens][2];
    INGOT_UNROLL for (int step = 0; step < 8; ++step) {
      const bool high = (step & 1) != 0;
      __m256i w[2];
      INGOT_UNROLL for (int h = 0; h < 2; ++h) {
        w[h] = loadAs<__m256i>(codes + 64 * (step / 2) + 32 * h);
        w[h] =
            _mm256_and_si256(high ? _mm256_srli_epi16(w[h], 4) : w[h], nibble);
      }
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
        const __m256i four = _mm256_set1_epi32(loadWord(x[t] + at + 4 * step));
        INGOT_UNROLL for (int h = 0; h < 2; ++h) {
          const __m256i products = _mm256_maddubs_epi16(w[h], four);
          pairs[t][h] =
              step == 0 ? products : _mm256_add_epi16(pairs[t][h], products);
        }
      }
      endStep(pairs);
    }
    const __m256i ones = _mm256_set1_epi16(1);
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t)
        INGOT_UNROLL for (int h = 0; h < 2; ++h) sums.half[t][h] =
        _mm256_add_epi32(sums.half[t][h], _mm256_madd_epi16(pairs[t][h], ones));
  }
}

// The same over prepared weights (prepareBlock). `First`: sums begin here.
template <WeightCode Code, bool First, int Tokens>
INGOT_INLINE void addPrepared(TileSums<Tokens> &sums, const uint8_t *weights,
                              const uint8_t *const *x, int64_t at) {
  constexpr bool wide = Code == WeightCode::I8;
  __m256i own[Tokens][2]; // of 16 bits, for int4
  auto &into = wide ? sums.half : own;
  INGOT_UNROLL for (int step = 0; step < preparedSteps(Code); ++step) {
    __m256i w[2];
    INGOT_UNROLL for (int h = 0; h < 2; ++h) w[h] =
        loadAs<__m256i>(weights + 64 * step + 32 * h);
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
      const __m256i four = _mm256_set1_epi32(
          loadWord(x[t] + activationBytes(Code) * at + 4 * step));
      INGOT_UNROLL for (int h = 0; h < 2; ++h) {
        if (step == 0 && (!wide || First))
          into[t][h] = wide ? _mm256_madd_epi16(w[h], four)
                            : _mm256_maddubs_epi16(w[h], four);
        else
          into[t][h] =
              wide ? _mm256_add_epi32(into[t][h], _mm256_madd_epi16(w[h], four))
                   : _mm256_add_epi16(into[t][h],
                                      _mm256_maddubs_epi16(w[h], four));
      }
    }
    endStep(into);
  }
  if constexpr (!wide) {
    const __m256i ones = _mm256_set1_epi16(1);
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t)
        INGOT_UNROLL for (int h = 0; h < 2; ++h) {
      const __m256i sum = _mm256_madd_epi16(own[t][h], ones);
      sums.half[t][h] = First ? sum : _mm256_add_epi32(sums.half[t][h], sum);
    }
  }
}

#endif

} // namespace ingot::kernels
