// ldmatrix and mma.sync by the fragment layouts of the PTX specification: with
// g = lane / 4 and q = lane % 4,
//   matrix of ldmatrix    lane holds row g, elements 2q and 2q+1
//   A (16 x 16)           a0: row g, 2q..   a1: row g+8   a2: row g, 2q+8..   a3: both
//   B (16 x 8)            b0: rows 2q, 2q+1 of column g   b1: eight rows further
//   C (16 x 8)            c0, c1: row g, columns 2q, 2q+1   c2, c3: row g+8
// The sum of an mma is taken in float64 and rounded once: the hardware's own order
// is not specified.
#include "test/simt/Block.h"
#include "test/simt/Half.h"

#include <cstring>

namespace ingot::simt {
namespace {

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
      double sum = lanes[lane]->accumulators[i];
      for (int k = 0; k < 16; ++k)
        sum += a[row][k] * b[k][column];
      lanes[lane]->accumulators[i] = float(sum);
    }
}

} // namespace

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
