// ldmatrix and mma.sync by the fragment layouts of the PTX specification: with
// g = lane / 4 and q = lane % 4,
//   matrix of ldmatrix    lane holds row g, elements 2q and 2q+1
//   A (16 x 16)           a0: row g, 2q..   a1: row g+8   a2: row g, 2q+8..   a3: both
//   B (16 x 8)            b0: rows 2q, 2q+1 of column g   b1: eight rows further
//   C (16 x 8)            c0, c1: row g, columns 2q, 2q+1   c2, c3: row g+8
// The sum of an mma is taken in float64 and rounded once, or as tensor cores are
// measured to do (TensorCore.h): the hardware's own order is not specified.
#include "test/simt/TensorCore.h"
#include "test/simt/Block.h"
#include "test/simt/Half.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>

namespace ingot::simt {
namespace {

MmaSums mmaSums = MmaSums::Rounded;

// Towards zero.
float cutToFloat(double value) {
  const float nearest = float(value);
  return std::fabs(double(nearest)) > std::fabs(value)
             ? std::nextafter(nearest, 0.0f)
             : nearest;
}

// A piece of K by MmaSums::CutOff.
float addCutOff(float accumulator, const double (&products)[8]) {
  int largest = INT_MIN;
  auto see = [&](double term) {
    if (term != 0 && std::isfinite(term))
      largest = std::max(largest, std::ilogb(term));
  };
  see(accumulator);
  for (double product : products)
    see(product);
  if (largest == INT_MIN)
    largest = 0;
  auto cut = [&](double term) {
    return std::isfinite(term)
               ? std::ldexp(std::trunc(std::ldexp(term, 23 - largest)),
                            largest - 23)
               : term;
  };
  double sum = cut(accumulator); // exact: all are multiples of one unit
  for (double product : products)
    sum += cut(product);
  return cutToFloat(sum);
}

void exchangeMatrices(void **arguments, unsigned mask) {
  auto *lanes = reinterpret_cast<LoadMatrixArguments **>(arguments);
  if (mask != ~0u)
    return misuse("ldmatrix without all lanes of the warp", nullptr);
  const int matrices = lanes[0]->matrices;
  for (int m = 0; m < matrices; ++m)
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const int g = lane / 4;
      const int q = lane % 4;
      auto element = [&](int row, int column) {
        std::uint16_t value;
        std::memcpy(
            &value,
            static_cast<const char *>(lanes[m * 8 + row]->row) + 2 * column, 2);
        return std::uint32_t(value);
      };
      const bool turned = lanes[0]->isTransposed;
      lanes[lane]->registers[m] =
          turned ? element(2 * q, g) | element(2 * q + 1, g) << 16
                 : element(g, 2 * q) | element(g, 2 * q + 1) << 16;
    }
}

void multiply(void **arguments, unsigned mask) {
  auto *lanes = reinterpret_cast<MmaArguments **>(arguments);
  if (mask != ~0u)
    return misuse("mma without all lanes of the warp", nullptr);
  double a[16][16];
  double b[16][8];
  auto pair = [](std::uint32_t both, double &low, double &high) {
    low = halfToFloat(std::uint16_t(both));
    high = halfToFloat(std::uint16_t(both >> 16));
  };
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const int g = lane / 4;
    const int q = lane % 4;
    const MmaArguments &own = *lanes[lane];
    for (int i = 0; i < 4; ++i) {
      const int row = g + 8 * (i % 2);
      const int column = 2 * q + 8 * (i / 2);
      pair(own.a[i], a[row][column], a[row][column + 1]);
    }
    for (int i = 0; i < 2; ++i)
      pair(own.b[i], b[2 * q + 8 * i][g], b[2 * q + 8 * i + 1][g]);
  }
  for (int lane = 0; lane < kWarpLanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2);
      const int column = 2 * (lane % 4) + i % 2;
      if (mmaSums == MmaSums::CutOff) {
        for (int first = 0; first < 16; first += 8) {
          double products[8];
          for (int k = 0; k < 8; ++k)
            products[k] = a[row][first + k] * b[first + k][column];
          lanes[lane]->accumulators[i] =
              addCutOff(lanes[lane]->accumulators[i], products);
        }
        continue;
      }
      double sum = lanes[lane]->accumulators[i];
      for (int k = 0; k < 16; ++k)
        sum += a[row][k] * b[k][column];
      lanes[lane]->accumulators[i] = float(sum);
    }
}

} // namespace

MmaSumsScope::MmaSumsScope(MmaSums sums) : before_(mmaSums) { mmaSums = sums; }
MmaSumsScope::~MmaSumsScope() { mmaSums = before_; }

void loadMatrix(const LoadMatrixArguments &given, const void *pc) {
  auto arguments = given;
  arguments.row = accessAddress(arguments.row, 16, pc);
  if (currentThread->lane < 8 * arguments.matrices) {
    if (reinterpret_cast<std::uintptr_t>(arguments.row) & 15)
      misuse("a row of ldmatrix that is not aligned to 16 bytes", pc);
    access(arguments.row, 16, false, pc);
  }
  auto copy = arguments;
  collective(Collective::LoadMatrix, ~0u, &copy, exchangeMatrices);
}

void multiplyAdd(const MmaArguments &arguments, const void *pc) {
  auto copy = arguments;
  const std::uint32_t swapped[4] = {copy.a[0], copy.a[2], copy.a[1], copy.a[3]};
  if (isPlanted(Plant::SwapFragment, pc))
    copy.a = swapped;
  collective(Collective::Mma, ~0u, &copy, multiply);
}

} // namespace ingot::simt
