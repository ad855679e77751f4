#include "test/bench/kernels/MachineLimits.h"

#include <ctime>
#include <immintrin.h>

namespace ingot::bench {
namespace {

double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// Best of a few runs of `body`, which does `work` multiply-adds.
template <typename Body> double best(double work, Body body) {
  double most = 0;
  for (int run = 0; run < 20; ++run) {
    const double start = threadSeconds();
    body();
    const double seconds = threadSeconds() - start;
    most = work / seconds > most ? work / seconds : most;
  }
  return most;
}

constexpr long kLoops = 1000000;

} // namespace

double peakInt8() {
  return best(kLoops * 8.0 * 16, [] {
    __m256i sums[8], x = _mm256_set1_epi16(1);
    for (__m256i &sum : sums)
      sum = _mm256_setzero_si256();
    for (long i = 0; i < kLoops; ++i)
#pragma clang loop unroll(full)
      for (int j = 0; j < 8; ++j) {
        __m256i y = x;
        asm volatile("" : "+x"(y));
        sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(x, y));
      }
    for (__m256i &sum : sums)
      asm volatile("" : "+x"(sum));
  });
}

double peakInt4() {
  return best(kLoops * 8.0 * 32, [] {
    __m256i sums[8], x = _mm256_set1_epi8(1);
    for (__m256i &sum : sums)
      sum = _mm256_setzero_si256();
    for (long i = 0; i < kLoops; ++i)
#pragma clang loop unroll(full)
      for (int j = 0; j < 8; ++j) {
        __m256i y = x;
        asm volatile("" : "+x"(y));
        sums[j] = _mm256_add_epi16(sums[j], _mm256_maddubs_epi16(x, y));
      }
    for (__m256i &sum : sums)
      asm volatile("" : "+x"(sum));
  });
}

double peakFloat() {
  return best(kLoops * 8.0 * 8, [] {
    __m256 sums[8], x = _mm256_set1_ps(1);
    for (__m256 &sum : sums)
      sum = _mm256_setzero_ps();
    for (long i = 0; i < kLoops; ++i)
#pragma clang loop unroll(full)
      for (int j = 0; j < 8; ++j) {
        asm volatile("" : "+x"(sums[j]));
        sums[j] = _mm256_fmadd_ps(x, x, sums[j]);
      }
    for (__m256 &sum : sums)
      asm volatile("" : "+x"(sum));
  });
}

unsigned long long readBuffer(const unsigned char *bytes, std::size_t size) {
  __m256i sums[4] = {};
  for (std::size_t i = 0; i + 128 <= size; i += 128)
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j)
      sums[j] = _mm256_add_epi64(
          sums[j], _mm256_loadu_si256(
                       reinterpret_cast<const __m256i *>(bytes + i + 32 * j)));
  const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]),
                                       _mm256_add_epi64(sums[2], sums[3]));
  return static_cast<unsigned long long>(_mm256_extract_epi64(sum, 0));
}

} // namespace ingot::bench
