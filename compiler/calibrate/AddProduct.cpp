// Tiles of 4 rows and 64 columns, whose sums stay in registers for all terms. A
// tile's sums begin at zero and are added to the matrix at their end.
#include "compiler/calibrate/AddProduct.h"

#include "compiler/calibrate/VectorClones.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>

namespace ingot {
namespace {

constexpr std::int64_t kTileRows = 4;
constexpr std::int64_t kTileColumns = 64;

INGOT_VECTOR_CLONES
void addTile(float *out, const ProductTerms &product, std::int64_t row,
             std::int64_t column) {
  float sums[kTileRows][kTileColumns] = {};
  const float *left = product.left + row * product.leftRowStride;
  const float *right = product.right + column;
  for (std::int64_t p = 0; p < product.terms; ++p) {
    const float *term = right + p * product.columns;
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      float factor =
          left[p * product.leftTermStride + i * product.leftRowStride];
      for (std::int64_t j = 0; j < kTileColumns; ++j)
        sums[i][j] = sums[i][j] + factor * term[j];
    }
  }
  for (std::int64_t i = 0; i < kTileRows; ++i)
    for (std::int64_t j = 0; j < kTileColumns; ++j)
      out[(row + i) * product.columns + column + j] += sums[i][j];
}

// The same for what is left of whole tiles.
void addRest(float *out, const ProductTerms &product, std::int64_t row,
             std::int64_t column) {
  for (std::int64_t i = row; i < std::min(row + kTileRows, product.rows); ++i)
    for (std::int64_t j = column;
         j < std::min(column + kTileColumns, product.columns); ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < product.terms; ++p)
        sum = sum + product.left[p * product.leftTermStride +
                                 i * product.leftRowStride] *
                        product.right[p * product.columns + j];
      out[i * product.columns + j] += sum;
    }
}

} // namespace

void addProduct(float *out, const ProductTerms &product, unsigned threads) {
  std::atomic<std::int64_t> next{0};
  runOnThreads(threads, [&] {
    for (std::int64_t row = next.fetch_add(kTileRows); row < product.rows;
         row = next.fetch_add(kTileRows))
      for (std::int64_t column = 0; column < product.columns;
           column += kTileColumns)
        if (row + kTileRows <= product.rows &&
            column + kTileColumns <= product.columns)
          addTile(out, product, row, column);
        else
          addRest(out, product, row, column);
  });
}

} // namespace ingot
