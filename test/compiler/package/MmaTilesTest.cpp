// The layout "mma16" by the fragment table of the PTX specification for the A operand
// of mma.m16n8k16 (float16): element ai of a lane, i in 0..7, is at
//   row     groupID where i is 0, 1, 4, 5; groupID + 8 where it is 2, 3, 6, 7
//   column  threadID_in_group * 2 + (i & 1), and 8 more where i >= 4
// with groupID = lane >> 2, threadID_in_group = lane % 4.
#include "compiler/package/MmaTiles.h"
#include "compiler/package/HalfRange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace ingot::package {
namespace {

using abi::CudaCode;

// A tile of 16 rows of elements, and the same in "r16".
struct Tile {
  std::vector<std::uint32_t> elements; // [16][columns]
  std::vector<std::uint8_t> r16;
};

Tile makeTile(CudaCode code, std::uint64_t columns, std::mt19937 &random) {
  Tile tile;
  const std::uint32_t most = code == CudaCode::I4   ? 15
                             : code == CudaCode::I8 ? 255
                                                    : 65535;
  for (std::uint64_t i = 0; i < 16 * columns; ++i)
    tile.elements.push_back(random() % (most + 1));
  // Padding of r16 that must not come through.
  tile.r16.assign(r16TileBytes(code, columns), 0xa7);
  for (std::uint64_t row = 0; row < 16; ++row)
    for (std::uint64_t k = 0; k < columns; ++k) {
      const std::uint32_t value = tile.elements[row * columns + k];
      if (code == CudaCode::I4) {
        std::uint8_t &at = tile.r16[(k / 8 * 16 + row) * 4 + k % 4];
        at = std::uint8_t(k % 8 < 4 ? (at & 0xf0) | value
                                    : (at & 0x0f) | value << 4);
      } else if (code == CudaCode::I8) {
        tile.r16[(k / 4 * 16 + row) * 4 + k % 4] = std::uint8_t(value);
      } else {
        const auto half = std::uint16_t(value);
        std::memcpy(tile.r16.data() + (k * 16 + row) * 2, &half, 2);
      }
    }
  return tile;
}

TEST(MmaTiles, EveryLaneHoldsTheElementsOfTheSpecification) {
  std::mt19937 random(3);
  for (CudaCode code :
       {CudaCode::F16, CudaCode::BF16, CudaCode::I8, CudaCode::I4})
    for (std::uint64_t columns : {64u, 40u, 200u})
      for (bool minimum : {false, true}) {
        const Tile tile = makeTile(code, columns, random);
        std::vector<std::uint8_t> out(
            std::size_t(abi::cudaTileBytes(code, int64_t(columns))), 0xee);
        mmaTile(code, columns, minimum, tile.r16, out);
        const std::uint32_t none = minimum                ? 0
                                   : code == CudaCode::I8 ? 128
                                   : code == CudaCode::I4 ? 8
                                                          : 0;
        const std::uint64_t steps =
            std::uint64_t(abi::cudaPaddedK(int64_t(columns))) / 16;
        for (std::uint64_t step = 0; step < steps; ++step)
          for (unsigned lane = 0; lane < 32; ++lane)
            for (unsigned i = 0; i < 8; ++i) {
              const unsigned groupId = lane >> 2;
              const unsigned inGroup = lane % 4;
              const unsigned row =
                  i == 0 || i == 1 || i == 4 || i == 5 ? groupId : groupId + 8;
              const std::uint64_t k =
                  step * 16 + inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0);
              const std::uint32_t want =
                  k < columns ? tile.elements[row * columns + k] : none;
              std::uint32_t got = 0;
              if (code == CudaCode::I4) {
                std::uint32_t word;
                std::memcpy(
                    &word,
                    out.data() + step / 4 * 512 + lane * 16 + step % 4 * 4, 4);
                // A register holds two elements: the even one in the low half.
                got = word >> (i / 2 * 4 + (i & 1) * 16) & 15;
              } else if (code == CudaCode::I8) {
                got = out[step / 2 * 512 + lane * 16 + step % 2 * 8 + i];
              } else {
                std::uint16_t half;
                std::memcpy(&half, out.data() + step * 512 + lane * 16 + i * 2,
                            2);
                got = half;
              }
              ASSERT_EQ(got, want) << "code " << int(code) << " step " << step
                                   << " lane " << lane << " element " << i;
            }
      }
}

// bfloat16 bits of one element of a tile whose others are 1/4 in rows below 8, else 0.
std::vector<std::uint8_t> brainTile(std::uint64_t columns, std::uint64_t row,
                                    std::uint64_t column, std::uint16_t bits) {
  std::vector<std::uint8_t> tile(columns * 32);
  auto store = [&](std::uint64_t r, std::uint64_t c, std::uint16_t value) {
    std::memcpy(tile.data() + (c * 16 + r) * 2, &value, 2);
  };
  for (std::uint64_t c = 0; c < columns; ++c)
    for (std::uint64_t r = 0; r < 8; ++r)
      store(r, c, 0x3e80);
  store(row, column, bits);
  return tile;
}

TEST(HalfRange, WhatFloat16CannotHold) {
  std::uint64_t small = 0;
  // The largest bfloat16 below 65504, and the next one.
  EXPECT_FALSE(beyondHalf(brainTile(40, 3, 17, 0x477f), 40, small));
  auto beyond = beyondHalf(brainTile(40, 3, 17, 0xc780), 40, small);
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->row, 3u);
  EXPECT_EQ(beyond->column, 17u);
  EXPECT_EQ(beyond->value, -65536.0f);
  EXPECT_TRUE(beyondHalf(brainTile(40, 15, 39, 0x7f7f), 40, small));
  EXPECT_EQ(small, 0u);
}

TEST(HalfRange, SmallRowsAreThoseWithNothingLarge) {
  auto smallRows = [](std::uint64_t row, std::uint16_t bits) {
    std::uint64_t small = 0;
    EXPECT_FALSE(beyondHalf(brainTile(40, row, 5, bits), 40, small));
    return small;
  };
  EXPECT_EQ(smallRows(9, 0x0001), 1u); // the smallest of all, alone in its row
  EXPECT_EQ(smallRows(9, 0x3601), 1u); // 2^-19 + 2^-26: loses its last bit
  EXPECT_EQ(smallRows(9, 0x3600), 0u); // 2^-19, exactly
  EXPECT_EQ(smallRows(9, 0x3781), 0u); // 2^-16 + 2^-23, exactly
  EXPECT_EQ(smallRows(2, 0x3601), 0u); // beside 1/4
}

} // namespace
} // namespace ingot::package
