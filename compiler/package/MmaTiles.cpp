// For each place of the new tile: which element belongs there, and where it was.
#include "compiler/package/MmaTiles.h"

#include <cstring>

namespace ingot::package {
namespace {

using abi::CudaCode;

// The bits of element (row, k) of a tile of r16.
std::uint32_t elementOf(CudaCode code, const std::uint8_t *r16,
                        std::uint64_t row, std::uint64_t k) {
  switch (code) {
  case CudaCode::F16:
  case CudaCode::BF16: {
    std::uint16_t bits;
    std::memcpy(&bits, r16 + (k * 16 + row) * 2, 2);
    return bits;
  }
  case CudaCode::I8:
    return r16[(k / 4 * 16 + row) * 4 + k % 4];
  case CudaCode::I4: {
    const std::uint8_t both = r16[(k / 8 * 16 + row) * 4 + k % 4];
    return k % 8 < 4 ? both & 15u : both >> 4;
  }
  }
  return 0;
}

} // namespace

std::uint64_t r16TileBytes(abi::CudaCode code, std::uint64_t columns) {
  const std::uint64_t padded = (columns + 31) / 32 * 32;
  return code == CudaCode::I4   ? padded * 8
         : code == CudaCode::I8 ? padded * 16
                                : padded * 32;
}

void mmaTile(abi::CudaCode code, std::uint64_t columns, bool minimum,
             std::span<const std::uint8_t> r16, std::span<std::uint8_t> mma16) {
  std::memset(mma16.data(), 0, mma16.size());
  const std::uint32_t none = minimum                ? 0
                             : code == CudaCode::I8 ? 128
                             : code == CudaCode::I4 ? 8
                                                    : 0;
  const auto padded = static_cast<std::uint64_t>(
      abi::cudaPaddedK(static_cast<int64_t>(columns)));
  for (std::uint64_t k = 0; k < padded; ++k)
    for (std::uint64_t row = 0; row < 16; ++row) {
      const std::uint32_t bits =
          k < columns ? elementOf(code, r16.data(), row, k) : none;
      std::uint8_t *unit = mma16.data() + k / abi::kCudaUnit *
                                              static_cast<std::uint64_t>(
                                                  abi::cudaUnitBytes(code));
      const std::uint64_t step = k % abi::kCudaUnit / 16;
      const std::uint64_t inStep = k % 16;
      const std::uint64_t lane = row % 8 * 4 + inStep % 8 / 2;
      const std::uint64_t j = inStep / 8 * 4 + row / 8 * 2 + inStep % 2;
      switch (code) {
      case CudaCode::F16:
      case CudaCode::BF16: {
        const auto half = static_cast<std::uint16_t>(bits);
        std::memcpy(unit + ((step * 32 + lane) * 8 + j) * 2, &half, 2);
        break;
      }
      case CudaCode::I8:
        unit[((step / 2 * 32 + lane) * 2 + step % 2) * 8 + j] =
            static_cast<std::uint8_t>(bits);
        break;
      case CudaCode::I4: {
        std::uint32_t word;
        std::uint8_t *at = unit + (lane * 4 + step) * 4;
        std::memcpy(&word, at, 4);
        word |= bits << (j % 2 * 16 + j / 2 * 4);
        std::memcpy(at, &word, 4);
        break;
      }
      }
    }
}

} // namespace ingot::package
