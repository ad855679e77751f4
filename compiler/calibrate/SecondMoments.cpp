// Threads take runs of rows of the matrix. A row's part of one call is summed
// apart and then added, four input rows at a time: vectors run along the
// matrix's row, so no sum crosses lanes.
#include "compiler/calibrate/SecondMoments.h"

#include "compiler/calibrate/VectorClones.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace ingot {
namespace {

// part[j] += sum over four rows of factor * row[j], in their order.
INGOT_VECTOR_CLONES
void addFour(float *part, const float *const rows[4], const float factors[4],
             std::int64_t count) {
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  float fa = factors[0], fb = factors[1], fc = factors[2], fd = factors[3];
  for (std::int64_t j = 0; j < count; ++j)
    part[j] = part[j] + fa * a[j] + fb * b[j] + fc * c[j] + fd * d[j];
}

} // namespace

SecondMoments::SecondMoments(std::int64_t width)
    : width_(width), sums_(std::size_t(width * width), 0.0f),
      magnitude_(std::size_t(width), 0.0) {}

std::uint64_t SecondMoments::bytes(std::int64_t width) {
  return std::uint64_t(width) * std::uint64_t(width) * sizeof(float) +
         std::uint64_t(width) * sizeof(double);
}

void SecondMoments::add(std::span<const float> rows, unsigned threads) {
  std::int64_t count = std::ssize(rows) / width_;
  std::vector<float> zeros(std::size_t(width_), 0.0f);
  std::atomic<std::int64_t> next{0};
  constexpr std::int64_t run = 16;
  runOnThreads(threads, [&] {
    std::vector<float> part(static_cast<std::size_t>(width_), 0.0f);
    for (std::int64_t begin = next.fetch_add(run); begin < width_;
         begin = next.fetch_add(run))
      for (std::int64_t i = begin; i < std::min(begin + run, width_); ++i) {
        std::fill_n(part.begin(), i + 1, 0.0f);
        for (std::int64_t t = 0; t < count; t += 4) {
          const float *inputs[4];
          float factors[4];
          for (std::int64_t r = 0; r < 4; ++r) {
            bool isThere = t + r < count;
            inputs[r] =
                isThere ? &rows[std::size_t((t + r) * width_)] : zeros.data();
            factors[r] = isThere ? inputs[r][i] : 0.0f;
          }
          addFour(part.data(), inputs, factors, i + 1);
        }
        float *row = &sums_[std::size_t(i * width_)];
        for (std::int64_t j = 0; j <= i; ++j)
          row[j] += part[std::size_t(j)];
      }
  });
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t k = 0; k < width_; ++k)
      magnitude_[std::size_t(k)] +=
          std::fabs(double(rows[std::size_t(t * width_ + k)]));
  numRows_ += count;
}

std::vector<float> SecondMoments::mean() const {
  std::vector<float> full(sums_.size(), 0.0f);
  if (numRows_ == 0)
    return full;
  for (std::int64_t i = 0; i < width_; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      float value = sums_[std::size_t(i * width_ + j)] / float(numRows_);
      full[std::size_t(i * width_ + j)] = value;
      full[std::size_t(j * width_ + i)] = value;
    }
  return full;
}

std::vector<float> SecondMoments::meanMagnitude() const {
  std::vector<float> means;
  for (double sum : magnitude_)
    means.push_back(numRows_ ? float(sum / double(numRows_)) : 0.0f);
  return means;
}

} // namespace ingot
