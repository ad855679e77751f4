// What calibration keeps of the rows that a linear operator reads: the sums of
// x x' and of |x|. Rows are seen once and not kept, so memory is a function of
// the width alone, whatever the text. Sums are float32, in an order that
// depends on neither threads nor vector width.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

class SecondMoments {
public:
  explicit SecondMoments(std::int64_t width);

  std::int64_t width() const { return width_; }
  std::int64_t numRows() const { return numRows_; }
  // Bytes that an object of this width takes.
  static std::uint64_t bytes(std::int64_t width);

  // `rows` holds rows of `width` numbers, one after another.
  void add(std::span<const float> rows, unsigned threads = 1);

  // The mean of x x' [width, width], symmetric; zeros where nothing was added.
  std::vector<float> mean() const;
  // The mean of |x_k| for each column.
  std::vector<float> meanMagnitude() const;

private:
  std::int64_t width_;
  std::int64_t numRows_ = 0;
  std::vector<float> sums_;       // [width, width], the lower half
  std::vector<double> magnitude_; // [width]
};

} // namespace ingot
