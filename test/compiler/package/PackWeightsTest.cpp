// Packing: block forms that match keep their codes and scales; everything else is
// rounded to nearest; layouts, permutation and padding are those of the spec; and
// weights that cannot be packed are refused by name.
#include "compiler/package/PackWeights.h"
#include "compiler/kernels/reference/Reference.h"
#include "compiler/package/HalfFloat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <pthread.h>
#include <random>
#include <system_error>
#include <thread>

namespace ingot::package {
namespace {

using Random = std::mt19937;

std::vector<std::uint8_t> bytesOf(const std::vector<float> &values) {
  std::vector<std::uint8_t> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> randomValues(std::size_t count, float size, unsigned seed) {
  Random random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

reference::Encoding referenceEncoding(const WeightEncoding &encoding) {
  constexpr reference::Code codes[] = {
      reference::Code::F32, reference::Code::F16, reference::Code::BF16,
      reference::Code::I8, reference::Code::I4};
  return {codes[static_cast<int>(encoding.code)],
          static_cast<std::int32_t>(encoding.group), encoding.minimum};
}

struct Packed {
  std::vector<std::uint8_t> bytes;
  PackedLayout layout;
  PackStatistics statistics;
  Status status;
  std::uint64_t columns = 0;
  WeightEncoding encoding;

  float at(std::uint64_t row, std::uint64_t column) const {
    auto plane = [&](std::uint64_t offset) {
      return offset ? reinterpret_cast<const std::uint16_t *>(bytes.data() +
                                                              offset)
                    : nullptr;
    };
    const ingot::abi::PackedWeights weights = {
        bytes.data(), plane(layout.scalesOffset), plane(layout.minsOffset)};
    return reference::weightAt(weights, static_cast<std::int64_t>(row),
                               static_cast<std::int64_t>(column),
                               static_cast<std::int64_t>(columns),
                               referenceEncoding(encoding));
  }
};

Packed pack(const WeightEncoding &encoding, std::vector<StoredPart> parts,
            unsigned threads = 1) {
  Packed packed;
  packed.encoding = encoding;
  auto packer = WeightPacker::create(encoding, std::move(parts));
  if (!packer) {
    packed.status = packer.status();
    return packed;
  }
  packed.layout = packer->layout();
  packed.columns = packer->columns();
  packed.bytes.assign(packed.layout.size, 0xee);
  packed.status = packer->packAll(packed.bytes, packed.statistics, threads);
  return packed;
}

const std::vector<WeightEncoding> kEncodings = {
    {WeightCode::F32, 0, false},  {WeightCode::F16, 0, false},
    {WeightCode::BF16, 0, false}, {WeightCode::I8, 32, false},
    {WeightCode::I8, 128, false}, {WeightCode::I4, 32, false},
    {WeightCode::I4, 128, false}, {WeightCode::I4, 32, true},
    {WeightCode::I4, 64, true}};

TEST(PackWeightsTest, LayoutHasAlignedPlanes) {
  auto layout = packedLayout({WeightCode::I4, 128, true}, 17, 576);
  ASSERT_TRUE(layout.isOk());
  EXPECT_EQ(layout->rowTiles, 2u);
  EXPECT_EQ(layout->groups, 5u); // the last is short
  EXPECT_EQ(layout->codesBytesPerTile, 576u * 8);
  EXPECT_EQ(layout->scalesOffset, 2u * 576 * 8);
  EXPECT_EQ(layout->scalesOffset % 64 + layout->minsOffset % 64 +
                layout->size % 64,
            0u);
  EXPECT_EQ(layout->minsOffset - layout->scalesOffset, 2u * 5 * 32);
}

// Rounding error stays within what the encoding promises, whatever the shape.
TEST(PackWeightsTest, RoundsToNearest) {
  for (const WeightEncoding &encoding : kEncodings)
    for (const auto &[rows, columns] :
         {std::pair{1, 32}, {17, 40}, {16, 576}, {33, 200}}) {
      const std::vector<float> values =
          randomValues(static_cast<std::size_t>(rows) * columns, 0.05f, 1);
      const std::vector<std::uint8_t> bytes = bytesOf(values);
      const Packed packed =
          pack(encoding,
               {{"w", StoredForm::F32, bytes, static_cast<std::uint64_t>(rows),
                 static_cast<std::uint64_t>(columns), 0}});
      ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
      double error = 0, size = 0;
      for (int r = 0; r < rows; ++r)
        for (int k = 0; k < columns; ++k) {
          const double value =
              values[static_cast<std::size_t>(r) * columns + k];
          error += std::pow(packed.at(r, k) - value, 2);
          size += value * value;
        }
      const double relative = std::sqrt(error / size);
      const double bound = encoding.code == WeightCode::F32    ? 0
                           : encoding.code == WeightCode::F16  ? 5e-4
                           : encoding.code == WeightCode::BF16 ? 4e-3
                           : encoding.code == WeightCode::I8   ? 1e-2
                                                               : 0.13;
      EXPECT_LE(relative, bound) << "code " << static_cast<int>(encoding.code)
                                 << " group " << encoding.group;
      // Padding rows and columns stand for zero.
      if (encoding.code == WeightCode::I8) {
        for (std::uint64_t k = columns; k < packed.layout.paddedColumns; ++k)
          EXPECT_EQ(packed.bytes[k / 4 * 64 + k % 4], 128);
      }
    }
}

// Blocks of a matching form come out code for code.
TEST(PackWeightsTest, MatchingBlocksKeepTheirBits) {
  Random random(2);
  struct Case {
    StoredForm form;
    WeightEncoding encoding;
    std::size_t blockBytes;
  };
  for (const Case &test :
       {Case{StoredForm::Q8_0, {WeightCode::I8, 32, false}, 34},
        Case{StoredForm::Q4_0, {WeightCode::I4, 32, false}, 18},
        Case{StoredForm::Q4_1, {WeightCode::I4, 32, true}, 20}}) {
    const std::uint64_t rows = 19, columns = 96;
    std::vector<std::uint8_t> bytes(rows * columns / 32 * test.blockBytes);
    for (std::uint8_t &byte : bytes)
      byte = static_cast<std::uint8_t>(random());
    for (std::size_t b = 0; b < bytes.size(); b += test.blockBytes) {
      bytes[b + 1] = 0x2c; // a finite scale, and minimum
      if (test.form == StoredForm::Q4_1)
        bytes[b + 3] = 0xac;
    }
    const Packed packed =
        pack(test.encoding, {{"w", test.form, bytes, rows, columns, 0}});
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    auto packer = WeightPacker::create(
        test.encoding, {{"w", test.form, bytes, rows, columns, 0}});
    std::vector<float> wide(rows * columns);
    ASSERT_TRUE(packer->widenRows(0, wide).isOk());
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t k = 0; k < columns; ++k) {
        const std::uint8_t *block =
            bytes.data() + (r * columns / 32 + k / 32) * test.blockBytes;
        std::uint16_t scale, minimum;
        std::memcpy(&scale, block, 2);
        std::memcpy(&minimum, block + 2, 2);
        float want;
        if (test.form == StoredForm::Q8_0) {
          want =
              static_cast<float>(static_cast<std::int8_t>(block[2 + k % 32])) *
              halfToFloat(scale);
        } else {
          const std::uint8_t both = block[test.blockBytes - 16 + k % 16];
          const auto code =
              static_cast<float>(k % 32 < 16 ? both & 15 : both >> 4);
          want = test.form == StoredForm::Q4_0
                     ? (code - 8) * halfToFloat(scale)
                     : std::fma(code, halfToFloat(scale), halfToFloat(minimum));
        }
        ASSERT_EQ(packed.at(r, k), want) << "row " << r << " column " << k;
        ASSERT_NEAR(wide[r * columns + k], want, 1e-6f * (1 + std::fabs(want)));
      }
  }
}

std::vector<std::uint8_t> randomBlocks(StoredForm form, std::uint64_t rows,
                                       std::uint64_t columns, unsigned seed) {
  Random random(seed);
  const std::uint64_t size = storedBlockBytes(form);
  std::vector<std::uint8_t> bytes(rows * columns / storedBlockElements(form) *
                                  size);
  for (std::uint8_t &byte : bytes)
    byte = static_cast<std::uint8_t>(random());
  const std::uint64_t scale = form == StoredForm::Q6_K ? 208 : 0;
  for (std::size_t b = 0; b < bytes.size(); b += size) {
    bytes[b + scale + 1] = 0x2c; // finite scales
    if (form != StoredForm::Q5_0 && form != StoredForm::Q6_K)
      bytes[b + 3] = 0x28; // and minima
  }
  return bytes;
}

// Forms of ggml that no encoding holds: Q5_0 is an exception. What is kept, and
// the error that is told, against the floats themselves.
TEST(PackWeightsTest, BlocksWithoutAnEncodingOfTheirOwn) {
  struct Case {
    StoredForm form;
    WeightEncoding encoding;
    WeightConversion conversion;
    double most; // relative to the largest of a group of 32
  };
  for (const Case &test : {Case{StoredForm::Q5_0,
                                {WeightCode::I8, 32, false},
                                WeightConversion::Exact,
                                0.0},
                           Case{StoredForm::Q5_1,
                                {WeightCode::I8, 32, false},
                                WeightConversion::Round,
                                0.51 / 127},
                           Case{StoredForm::Q4_K,
                                {WeightCode::I4, 32, true},
                                WeightConversion::KeepCodes,
                                2e-3},
                           Case{StoredForm::Q5_K,
                                {WeightCode::I8, 32, false},
                                WeightConversion::Round,
                                0.51 / 127},
                           Case{StoredForm::Q6_K,
                                {WeightCode::I8, 32, false},
                                WeightConversion::Round,
                                0.51 / 127}}) {
    SCOPED_TRACE(storedFormName(test.form));
    EXPECT_EQ(nativeEncoding(test.form, {}), test.encoding);
    EXPECT_EQ(conversionTo(test.encoding, test.form, {}), test.conversion);
    const std::uint64_t rows = 21, columns = 512;
    const std::vector<std::uint8_t> bytes =
        randomBlocks(test.form, rows, columns, 9);
    const StoredPart part = {"w", test.form, bytes, rows, columns, 0};
    const Packed packed = pack(test.encoding, {part});
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    auto packer = WeightPacker::create(test.encoding, {part});
    std::vector<float> wide(rows * columns);
    ASSERT_TRUE(packer->widenRows(0, wide).isOk());
    double error = 0, magnitude = 0, largest = 0;
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t begin = 0; begin < columns; begin += 32) {
        double worst = 0, most = 0;
        for (std::uint64_t k = begin; k < begin + 32; ++k) {
          const double value = wide[r * columns + k];
          const double off = std::fabs(packed.at(r, k) - value);
          error += off;
          magnitude += std::fabs(value);
          worst = std::max(worst, off);
          most = std::max(most, std::fabs(value));
        }
        largest = std::max(largest, most > 0 ? worst / most : 0.0);
      }
    EXPECT_LE(largest, test.most);
    EXPECT_NEAR(packed.statistics.error.largest, largest, 1e-6);
    EXPECT_NEAR(packed.statistics.error.mean(), error / magnitude, 1e-6);
    // By way of float32, asked for by name, any form goes to any encoding.
    EXPECT_TRUE(pack({WeightCode::I4, 128, false}, {part}).status.isOk());
    EXPECT_TRUE(pack({WeightCode::BF16, 0, false}, {part}).status.isOk());
  }
}

// Codes whose own scales are beyond float16, on either side (TRAPS B37).
TEST(PackWeightsTest, ScalesOfCodesBeyondHalf) {
  const std::vector<std::uint8_t> codes(2 * 32, 3);
  std::vector<float> scales = {1e-9f, 0.5f};
  StoredPart part = {"w", StoredForm::Codes, codes, 2, 32, 0};
  auto packed = [&] {
    part.details.codes.emplace();
    part.details.codes->packing = CodePacking::Int8;
    part.details.codes->bits = 8;
    part.details.codes->scales.sizeBytes = 8;
    part.details.codes->scales.bytes = {
        reinterpret_cast<const std::uint8_t *>(scales.data()), 8};
    return pack({WeightCode::I8, 32, false}, {part});
  };
  Packed tiny = packed();
  ASSERT_TRUE(tiny.status.isOk()) << tiny.status.message();
  EXPECT_EQ(tiny.statistics.underflowedGroups, 1u);
  EXPECT_EQ(tiny.at(0, 5), 0.0f);
  EXPECT_EQ(tiny.at(1, 5), 1.5f);
  scales[1] = 1e6f;
  EXPECT_THAT(packed().status.message(),
              ::testing::HasSubstr("beyond float16"));
  scales[1] = NAN;
  EXPECT_THAT(packed().status.message(), ::testing::HasSubstr("finite scale"));
}

// B37: eight-bit floats whose block scale lifts them beyond float16: kept where
// a scale can hold them, else refused by name; their NaN is no weight.
TEST(PackWeightsTest, EightBitFloatsOfLargeScale) {
  std::vector<std::uint8_t> codes(2 * 32, 0x7e); // 448
  const std::vector<float> scales = {480.0f, 1.0f};
  StoredPart part = {"w", StoredForm::Codes, codes, 2, 32, 0};
  part.details.codes.emplace();
  part.details.codes->packing = CodePacking::F8E4M3;
  part.details.codes->bits = 8;
  part.details.codes->scales.sizeBytes = 8;
  part.details.codes->scales.bytes = {
      reinterpret_cast<const std::uint8_t *>(scales.data()), 8};
  for (const WeightEncoding &encoding : kEncodings) {
    const Packed packed = pack(encoding, {part});
    if (encoding.code == WeightCode::F16 || encoding.minimum) {
      EXPECT_THAT(packed.status.message(),
                  ::testing::HasSubstr("tensor \"w\""));
      continue;
    }
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    EXPECT_NEAR(packed.at(0, 7), 448.0f * 480.0f, 448.0f * 480.0f * 0.005f);
    EXPECT_NEAR(packed.at(1, 7), 448.0f, 448.0f * 0.005f);
  }
  codes[40] = 0x7f;
  part.bytes = codes;
  EXPECT_THAT(pack({WeightCode::I8, 32, false}, {part}).status.message(),
              ::testing::HasSubstr("tensor \"w\" row 1 column 8"));
}

// Eight-bit floats are float16 values; the whole code space.
TEST(PackWeightsTest, EightBitFloats) {
  for (StoredForm form : {StoredForm::F8E4M3, StoredForm::F8E5M2}) {
    std::vector<std::uint8_t> bytes;
    for (int code = 0; code < 256; ++code) {
      const int magnitude = code & 127;
      const bool finite =
          form == StoredForm::F8E4M3 ? magnitude != 127 : magnitude < 0x7c;
      bytes.push_back(static_cast<std::uint8_t>(finite ? code : 0));
    }
    const StoredPart part = {"w", form, bytes, 1, 256, 0};
    EXPECT_EQ(nativeEncoding(form, {}),
              (WeightEncoding{WeightCode::F16, 0, false}));
    const Packed packed = pack({WeightCode::F16, 0, false}, {part});
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    EXPECT_EQ(packed.statistics.error.error, 0.0);
    auto packer = WeightPacker::create({WeightCode::F16, 0, false}, {part});
    std::vector<float> wide(256);
    ASSERT_TRUE(packer->widenRows(0, wide).isOk());
    for (int k = 0; k < 256; ++k)
      EXPECT_EQ(packed.at(0, k), wide[k]) << k;
    bytes[5] = form == StoredForm::F8E4M3 ? 0x7f : 0x7c;
    EXPECT_FALSE(
        pack({WeightCode::F16, 0, false}, {{"w", form, bytes, 1, 256, 0}})
            .status.isOk());
  }
}

// The same bits whatever the threads, error included.
TEST(PackWeightsTest, ErrorsAreReproducible) {
  const std::vector<std::uint8_t> bytes =
      bytesOf(randomValues(1000 * 64, 1, 5));
  const std::vector<StoredPart> parts = {
      {"w", StoredForm::F32, bytes, 1000, 64, 0}};
  const Packed one = pack({WeightCode::I4, 32, false}, parts, 1);
  const Packed three = pack({WeightCode::I4, 32, false}, parts, 3);
  EXPECT_GT(one.statistics.error.error, 0.0);
  EXPECT_EQ(one.statistics.error.error, three.statistics.error.error);
  EXPECT_EQ(one.statistics.error.magnitude, three.statistics.error.magnitude);
  EXPECT_EQ(one.statistics.error.largest, three.statistics.error.largest);
}

// Rows of a fused projection, and a matrix that is stored [in, out].
TEST(PackWeightsTest, FusedAndTransposedRows) {
  std::vector<float> stored(8 * 32);
  for (std::size_t i = 0; i < stored.size(); ++i)
    stored[i] = static_cast<float>(i / 32 * 100 + i % 32);
  const std::vector<std::uint8_t> bytes = bytesOf(stored);
  StoredPart part = {"qkv", StoredForm::F32, bytes, 4, 32, 0};
  part.storedRows = 8;
  part.first = 1;
  part.run = 2;
  part.stride = 4;
  Packed packed = pack({WeightCode::F32, 0, false}, {part});
  ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
  const float rows[] = {100, 200, 500, 600};
  for (std::uint64_t r = 0; r < 4; ++r)
    EXPECT_EQ(packed.at(r, 3), rows[r] + 3);
  part.stride = 6;
  EXPECT_FALSE(pack({WeightCode::F32, 0, false}, {part}).status.isOk());

  std::vector<float> columns(32 * 8);
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i] = stored[i % 8 * 32 + i / 8];
  const std::vector<std::uint8_t> turned = bytesOf(columns);
  StoredPart across = {"w", StoredForm::F32, turned, 8, 32, 0};
  across.transposed = true;
  packed = pack({WeightCode::F32, 0, false}, {across});
  ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
  for (std::uint64_t r = 0; r < 8; ++r)
    for (std::uint64_t k = 0; k < 32; ++k)
      ASSERT_EQ(packed.at(r, k), stored[r * 32 + k]);
  across.form = StoredForm::Q8_0;
  EXPECT_FALSE(pack({WeightCode::F32, 0, false}, {across}).status.isOk());
}

TEST(PackWeightsTest, PartsFollowEachOtherAndPermutationIsUndone) {
  // Two heads of four rows: llama.cpp stores rows 0 2 1 3 of each head's halves.
  const std::uint64_t columns = 32;
  std::vector<float> stored(8 * columns), plain(3 * columns);
  for (std::size_t i = 0; i < stored.size(); ++i)
    stored[i] = static_cast<float>(i / columns);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<float>(100 + i / columns);
  const std::vector<std::uint8_t> a = bytesOf(stored), b = bytesOf(plain);
  const Packed packed = pack({WeightCode::F32, 0, false},
                             {{"q", StoredForm::F32, a, 8, columns, 2},
                              {"v", StoredForm::F32, b, 3, columns, 0}});
  ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
  const float want[] = {0, 2, 1, 3, 4, 6, 5, 7, 100, 101, 102};
  for (std::uint64_t r = 0; r < 11; ++r)
    EXPECT_EQ(packed.at(r, 5), want[r]) << "row " << r;
}

TEST(PackWeightsTest, ThreadsGiveTheSameBytes) {
  const std::vector<std::uint8_t> bytes =
      bytesOf(randomValues(1000 * 64, 1, 3));
  const std::vector<StoredPart> parts = {
      {"w", StoredForm::F32, bytes, 1000, 64, 0}};
  EXPECT_EQ(pack({WeightCode::I4, 32, false}, parts, 1).bytes,
            pack({WeightCode::I4, 32, false}, parts, 3).bytes);
}

// Where the system starts no thread, the caller's own packs everything.
TEST(PackWeightsTest, PacksWithoutAnotherThread) {
  const std::vector<std::uint8_t> bytes =
      bytesOf(randomValues(1000 * 64, 1, 4));
  const std::vector<StoredPart> parts = {
      {"w", StoredForm::F32, bytes, 1000, 64, 0}};
  pthread_attr_t saved, tooLarge;
  ASSERT_EQ(pthread_getattr_default_np(&saved), 0);
  ASSERT_EQ(pthread_attr_init(&tooLarge), 0);
  // The whole address space as the stack of a thread.
  ASSERT_EQ(pthread_attr_setstacksize(&tooLarge, std::size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&tooLarge), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  const Packed packed = pack({WeightCode::I4, 32, false}, parts, 3);
  ASSERT_EQ(pthread_setattr_default_np(&saved), 0);
  pthread_attr_destroy(&tooLarge);
  pthread_attr_destroy(&saved);
  ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
  EXPECT_EQ(packed.bytes, pack({WeightCode::I4, 32, false}, parts, 1).bytes);
}

// All zero, tiny, and one outlier among small weights.
TEST(PackWeightsTest, DegenerateGroups) {
  for (const WeightEncoding &encoding : kEncodings) {
    if (encoding.group == 0)
      continue;
    std::vector<float> values(4 * 128, 0.0f);
    for (int k = 0; k < 128; ++k) {
      values[128 + k] = 1e-38f;
      values[256 + k] = k % 2 ? 1e-6f : -1e-6f;
      values[384 + k] = 1e-3f;
    }
    values[384] = 1e4f;
    const std::vector<std::uint8_t> bytes = bytesOf(values);
    const Packed packed =
        pack(encoding, {{"w", StoredForm::F32, bytes, 4, 128, 0}});
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    for (int k = 0; k < 128; ++k) {
      EXPECT_EQ(packed.at(0, k), 0.0f);
      EXPECT_EQ(packed.at(1, k), 0.0f);
      EXPECT_NEAR(packed.at(2, k), values[256 + k], 1.1e-6f);
    }
    EXPECT_NEAR(packed.at(3, 0), 1e4f, 1e4f * 0.07f);
    EXPECT_GE(packed.statistics.underflowedGroups, 128u / encoding.group);
    std::uint16_t scale;
    std::memcpy(&scale, packed.bytes.data() + packed.layout.scalesOffset, 2);
    EXPECT_EQ(scale, 0x3c00);
  }
}

TEST(PackWeightsTest, RefusesWhatIsNotFinite) {
  for (const WeightEncoding &encoding : kEncodings)
    for (const float bad : {NAN, -INFINITY}) {
      std::vector<float> values(20 * 64, 1.0f);
      values[18 * 64 + 33] = bad;
      const std::vector<std::uint8_t> bytes = bytesOf(values);
      const Packed packed =
          pack(encoding, {{"blk.0.q", StoredForm::F32, bytes, 20, 64, 0}}, 2);
      EXPECT_EQ(
          packed.status.message(),
          std::string(
              "tensor \"blk.0.q\" row 18 column 33: expected a finite weight, "
              "found ") +
              (std::isnan(bad) ? "NaN" : "infinity"));
    }
  std::vector<std::uint8_t> block(34, 0);
  block[1] = 0x7e; // NaN scale
  EXPECT_EQ(
      pack({WeightCode::I8, 32, false},
           {{"w", StoredForm::Q8_0, block, 1, 32, 0}})
          .status.message(),
      "tensor \"w\" row 0 column 0: expected a finite scale of the block");
  const std::vector<std::uint8_t> huge = bytesOf(std::vector<float>(32, 1e30f));
  for (const WeightEncoding &encoding : kEncodings)
    if (encoding.code != WeightCode::F32 && encoding.code != WeightCode::BF16) {
      EXPECT_FALSE(pack(encoding, {{"w", StoredForm::F32, huge, 1, 32, 0}})
                       .status.isOk());
    }
}

TEST(PackWeightsTest, RefusesSizesThatDisagree) {
  const std::vector<std::uint8_t> bytes(4 * 64 * 4);
  auto message = [&](const WeightEncoding &encoding, StoredPart part) {
    return pack(encoding, {std::move(part)}).status.message();
  };
  EXPECT_EQ(message({}, {"w", StoredForm::F32, bytes, 5, 64, 0}),
            "tensor \"w\": expected 5 rows of 64 columns in 1280 bytes, found "
            "1024 bytes");
  EXPECT_EQ(message({}, {"w", StoredForm::Q8_0, bytes, 4, 40, 0}),
            "tensor \"w\": expected columns in blocks of 32, found 40");
  EXPECT_EQ(message({WeightCode::I8, 33, false},
                    {"w", StoredForm::F32, bytes, 4, 64, 0}),
            "expected a group that is a multiple of 32, found 33");
  EXPECT_EQ(message({WeightCode::I8, 32, true},
                    {"w", StoredForm::F32, bytes, 4, 64, 0}),
            "only int4 can have minima");
  EXPECT_FALSE(packedLayout({}, 1, std::uint64_t{1} << 40).isOk());
  EXPECT_FALSE(WeightPacker::create({}, {}).isOk());
}

TEST(HalfFloatTest, RoundTripsEveryHalf) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = halfToFloat(half);
    if (std::isnan(wide)) {
      EXPECT_GT(half & 0x7fff, 0x7c00);
      continue;
    }
    ASSERT_EQ(floatToHalf(wide), half);
  }
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(1e-8f), 0);
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00); // ties to even
  EXPECT_EQ(floatToHalf(1.0f + 0x3p-11f), 0x3c02);
}

} // namespace
} // namespace ingot::package
