// A sum of outer products, added to a matrix: what healing sums up of what a
// projection reads, and what it adds to the stream. Each number is summed in
// ascending order of the term, so threads and vector width change no bit.
#pragma once

#include <cstdint>

namespace ingot {

// out[i, j] += the sum over p of left[p, i] * right[p, j], for i of `rows`, j of
// `columns` and p of `terms`. The number left[p, i] is at p * leftTermStride + i *
// leftRowStride; rows of `right` and `out` are `columns` long.
struct ProductTerms {
  const float *left = nullptr;
  std::int64_t leftTermStride = 0, leftRowStride = 0;
  const float *right = nullptr;
  std::int64_t rows = 0, columns = 0, terms = 0;
};
void addProduct(float *out, const ProductTerms &product, unsigned threads);

} // namespace ingot
