// The GGUF reader against hostile files, kind by kind, and the values of every
// type that the format has.
#include "compiler/frontend/gguf/GgufFile.h"

#include "test/compiler/frontend/GgufBuilder.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <unistd.h>

using namespace ingot;
using ingot::testing::ByteWriter;
using ingot::testing::GgufBuilder;
using ingot::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string faultOf(const Bytes &bytes) {
  auto file = GgufFile::fromMemory(bytes, "x.gguf");
  return file.isOk() ? "" : file.status().message();
}

template <typename T> Bytes raw(T value) {
  return ByteWriter().put(value).bytes;
}

TEST(GgufFile, EveryValueType) {
  GgufBuilder builder;
  builder.raw("u8", 0, raw<std::uint8_t>(200));
  builder.raw("i8", 1, raw<std::int8_t>(-100));
  builder.raw("u16", 2, raw<std::uint16_t>(60000));
  builder.raw("i16", 3, raw<std::int16_t>(-30000));
  builder.raw("u32", 4, raw<std::uint32_t>(4000000000u));
  builder.raw("i32", 5, raw<std::int32_t>(-2000000000));
  builder.raw("f32", 6, raw<float>(1.5f));
  builder.raw("bool", 7, raw<std::uint8_t>(1));
  builder.text("text", "hé");
  builder.raw("u64", 10, raw<std::uint64_t>(1ull << 40));
  builder.raw("i64", 11, raw<std::int64_t>(-(1ll << 40)));
  builder.raw("f64", 12, raw<double>(-2.25));
  builder.raw("huge", 10, raw<std::uint64_t>(1ull << 63));
  builder.texts("texts", {"", "a", "bc"});
  builder.array<std::int32_t>("ints", 5, {-1, 2});
  builder.array<float>("floats", 6, {0.5f, -1.0f});
  builder.array<std::uint8_t>("none", 0, {});
  // An array of two arrays of one byte each.
  builder.raw("nested", 9,
              ByteWriter()
                  .put<std::uint32_t>(9)
                  .put<std::uint64_t>(2)
                  .put<std::uint32_t>(0)
                  .put<std::uint64_t>(1)
                  .put<std::uint8_t>(5)
                  .put<std::uint32_t>(0)
                  .put<std::uint64_t>(1)
                  .put<std::uint8_t>(6)
                  .bytes);
  Bytes bytes = builder.bytes();
  auto file = GgufFile::fromMemory(bytes, "x.gguf");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->find("u8")->asInteger(), 200);
  EXPECT_EQ(file->find("i8")->asInteger(), -100);
  EXPECT_EQ(file->find("u16")->asInteger(), 60000);
  EXPECT_EQ(file->find("i16")->asInteger(), -30000);
  EXPECT_EQ(file->find("u32")->asInteger(), 4000000000);
  EXPECT_EQ(file->find("i32")->asInteger(), -2000000000);
  EXPECT_EQ(file->find("f32")->asFloat(), 1.5);
  EXPECT_EQ(file->find("f32")->asInteger(), std::nullopt);
  EXPECT_EQ(file->find("bool")->asBool(), true);
  EXPECT_EQ(file->find("bool")->asInteger(), std::nullopt);
  EXPECT_EQ(file->find("text")->asString(), "hé");
  EXPECT_EQ(file->find("u64")->asInteger(), 1ll << 40);
  EXPECT_EQ(file->find("i64")->asInteger(), -(1ll << 40));
  EXPECT_EQ(file->find("f64")->asFloat(), -2.25);
  EXPECT_EQ(file->find("huge")->asInteger(), std::nullopt);
  EXPECT_THAT(*file->find("texts")->asStrings(), ElementsAre("", "a", "bc"));
  EXPECT_THAT(*file->find("ints")->asIntegers(), ElementsAre(-1, 2));
  EXPECT_THAT(*file->find("floats")->asFloats(), ElementsAre(0.5, -1.0));
  EXPECT_EQ(file->find("floats")->asIntegers(), std::nullopt);
  EXPECT_EQ(file->find("floats")->asStrings(), std::nullopt);
  EXPECT_TRUE(file->find("none")->asIntegers()->empty());
  EXPECT_EQ(file->find("nested")->count(), 2u);
  EXPECT_EQ(file->find("nested")->asIntegers(), std::nullopt);
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(GgufFile, TensorsOfBothVersions) {
  for (std::uint32_t version : {2u, 3u}) {
    GgufBuilder builder;
    builder.version = version;
    builder.tensor("a", {32, 2}, 8, Bytes(68, 7)); // Q8_0
    builder.tensor("b", {3}, 0, Bytes(12, 9));
    builder.tensor("e", {0}, 0, {});
    Bytes bytes = builder.bytes();
    auto file = GgufFile::fromMemory(bytes, "x.gguf");
    ASSERT_TRUE(file.isOk()) << file.status().message();
    EXPECT_EQ(file->version(), version);
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_STREQ(file->tensors()[0].type->name, "Q8_0");
    EXPECT_THAT(file->tensors()[0].dims, ElementsAre(32, 2));
    EXPECT_EQ(file->data(file->tensors()[0])[67], 7);
    EXPECT_EQ(file->data(file->tensors()[1])[11], 9);
    EXPECT_EQ(file->data(file->tensors()[2]).size(), 0u);
    EXPECT_EQ(file->tensors()[1].fileOffset % 32, 0u);
  }
}

TEST(GgufFile, Versions) {
  for (std::uint32_t version : {0u, 1u, 4u, 0x03000000u, 0xffffffffu}) {
    GgufBuilder builder;
    builder.version = version;
    auto bytes = builder.bytes();
    auto file = GgufFile::fromMemory(bytes, "x.gguf");
    ASSERT_FALSE(file.isOk());
    EXPECT_EQ(file.status().code(), StatusCode::Unsupported);
  }
}

// X28: dimensions that are too many, or whose product wraps.
TEST(GgufFile, Dimensions) {
  for (std::uint32_t count : {0u, 5u, 0xffffffffu}) {
    ByteWriter out;
    out.append({'G', 'G', 'U', 'F'}).put<std::uint32_t>(3);
    out.put<std::uint64_t>(1).put<std::uint64_t>(0);
    out.text("t").put(count).append(Bytes(64, 1));
    EXPECT_THAT(faultOf(out.bytes),
                AllOf(HasSubstr("\"t\""), HasSubstr("1 to 4 dimensions")));
  }
  std::uint64_t big = (1ull << 42) + 1;
  for (std::vector<std::uint64_t> dims :
       std::vector<std::vector<std::uint64_t>>{
           {big, big},
           {1ull << 32, 1ull << 32},
           {1ull << 63},
           {1ull << 62, 4},
           {1ull << 62, 2},
           {std::numeric_limits<std::uint64_t>::max()}}) {
    GgufBuilder builder;
    builder.tensorAt("t", dims, 0, 0);
    EXPECT_THAT(faultOf(builder.bytes()),
                AllOf(HasSubstr("\"t\""), HasSubstr("64 bits")));
  }
  GgufBuilder builder;
  builder.tensorAt("t", {big}, 0, 0);
  EXPECT_THAT(faultOf(builder.bytes()), HasSubstr("past the data section"));
}

// X28: alignments that are no power of two.
TEST(GgufFile, Alignment) {
  for (std::uint32_t alignment : {0u, 3u, 48u, 0xffffffffu}) {
    GgufBuilder builder;
    builder.u32("general.alignment", alignment);
    EXPECT_THAT(faultOf(builder.bytes()), HasSubstr("general.alignment"));
  }
  GgufBuilder wrongType;
  wrongType.raw("general.alignment", 10, raw<std::uint64_t>(32));
  EXPECT_THAT(faultOf(wrongType.bytes()), HasSubstr("general.alignment"));
  for (std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.u32("general.alignment", alignment);
    builder.tensor("t", {2}, 0, Bytes(8, 3));
    Bytes bytes = builder.bytes();
    auto file = GgufFile::fromMemory(bytes, "x.gguf");
    ASSERT_TRUE(file.isOk()) << file.status().message();
    EXPECT_EQ(file->alignment(), alignment);
    EXPECT_EQ(file->data(file->tensors()[0])[0], 3);
  }
  GgufBuilder beyond;
  beyond.u32("general.alignment", 1u << 31);
  beyond.tensorAt("t", {2}, 0, 0);
  EXPECT_THAT(faultOf(beyond.bytes()), HasSubstr("past the data section"));
}

// X28: offsets past the end, unaligned, or within another tensor.
TEST(GgufFile, Offsets) {
  for (std::uint64_t offset : {1ull << 20, 1ull << 63, 0xffffffffffffffe0ull}) {
    GgufBuilder builder;
    builder.tensor("a", {8}, 0, Bytes(32, 0));
    builder.tensorAt("t", {8}, 0, offset);
    EXPECT_THAT(faultOf(builder.bytes()),
                AllOf(HasSubstr("\"t\""), HasSubstr("past the data section")));
  }
  GgufBuilder unaligned;
  unaligned.tensor("a", {64}, 0, Bytes(256, 0));
  unaligned.tensorAt("t", {1}, 0, 4);
  EXPECT_THAT(faultOf(unaligned.bytes()), HasSubstr("alignment"));
  GgufBuilder overlap;
  overlap.tensor("a", {64}, 0, Bytes(256, 0));
  overlap.tensorAt("t", {1}, 0, 32);
  EXPECT_THAT(faultOf(overlap.bytes()), HasSubstr("overlap"));
}

TEST(GgufFile, Types) {
  GgufBuilder unknown;
  unknown.tensorAt("t", {256}, 99, 0);
  EXPECT_THAT(faultOf(unknown.bytes()),
              AllOf(HasSubstr("unsupported ggml type 99"), HasSubstr("\"t\"")));
  // Types that ggml removed are not known either.
  GgufBuilder removed;
  removed.tensorAt("t", {256}, 4, 0);
  EXPECT_THAT(faultOf(removed.bytes()), HasSubstr("unsupported ggml type 4"));
  GgufBuilder partial;
  partial.tensor("t", {33}, 2, Bytes(64, 0));
  EXPECT_THAT(faultOf(partial.bytes()), HasSubstr("whole blocks of Q4_0"));
  GgufBuilder valueType;
  valueType.raw("k", 13, {0, 0, 0, 0});
  EXPECT_THAT(faultOf(valueType.bytes()), HasSubstr("unknown value type 13"));
}

TEST(GgufFile, NamesAndDuplicates) {
  GgufBuilder twiceKey;
  twiceKey.u32("k", 1);
  twiceKey.u32("k", 1);
  EXPECT_THAT(faultOf(twiceKey.bytes()), HasSubstr("\"k\" is given twice"));
  GgufBuilder twiceTensor;
  twiceTensor.tensor("t", {1}, 0, Bytes(4, 0));
  twiceTensor.tensor("t", {1}, 0, Bytes(4, 0));
  EXPECT_THAT(faultOf(twiceTensor.bytes()), HasSubstr("\"t\" is given twice"));
  GgufBuilder longName;
  longName.tensor(std::string(65, 'x'), {1}, 0, Bytes(4, 0));
  EXPECT_THAT(faultOf(longName.bytes()), HasSubstr("above 64"));
  GgufBuilder empty;
  empty.u32("", 1);
  EXPECT_THAT(faultOf(empty.bytes()), HasSubstr("empty"));
  GgufBuilder boolean;
  boolean.boolean("k", 2);
  EXPECT_THAT(faultOf(boolean.bytes()), HasSubstr("bool"));
}

// Counts and lengths from the file are compared with it before they are used.
TEST(GgufFile, CountsAndLengths) {
  for (std::uint64_t count : {1ull << 20, 1ull << 40, 0xffffffffffffffffull}) {
    ByteWriter tensors, metadata;
    tensors.append({'G', 'G', 'U', 'F'}).put<std::uint32_t>(3);
    tensors.put(count).put<std::uint64_t>(0);
    EXPECT_THAT(faultOf(tensors.bytes), HasSubstr("tensor count"));
    metadata.append({'G', 'G', 'U', 'F'}).put<std::uint32_t>(3);
    metadata.put<std::uint64_t>(0).put(count);
    EXPECT_THAT(faultOf(metadata.bytes), HasSubstr("metadata count"));
    for (std::uint32_t type : {0u, 5u, 8u, 9u, 12u}) {
      GgufBuilder builder;
      builder.raw("k", 9, ByteWriter().put(type).put(count).bytes);
      EXPECT_THAT(faultOf(builder.bytes()), HasSubstr("do not fit"));
    }
    GgufBuilder builder;
    builder.raw("k", 8, ByteWriter().put(count).bytes);
    EXPECT_THAT(faultOf(builder.bytes()), HasSubstr("\"k\""));
  }
  // Arrays of arrays of arrays, far down.
  ByteWriter deep;
  for (int i = 0; i < 10000; ++i)
    deep.put<std::uint32_t>(9).put<std::uint64_t>(1);
  GgufBuilder nested;
  nested.raw("k", 9, deep.bytes);
  EXPECT_THAT(faultOf(nested.bytes()), HasSubstr("nested deeper"));
}

// Every prefix of a file is refused, and nothing is read past its end.
TEST(GgufFile, EveryPrefix) {
  GgufBuilder builder;
  builder.text("general.name", "x");
  builder.texts("list", {"a", "bb"});
  builder.tensor("t", {8}, 0, Bytes(32, 1));
  Bytes bytes = builder.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Bytes prefix(bytes.begin(), bytes.begin() + std::ptrdiff_t(size));
    EXPECT_FALSE(GgufFile::fromMemory(prefix, "x.gguf").isOk()) << size;
  }
}

// X28: a valid file above 16 GB opens (sparse: it takes no room on the disk).
TEST(GgufFile, LargeFile) {
  std::uint64_t columns = 4096, rows = 1ull << 23;
  std::uint64_t sizeBytes = columns / 256 * 144 * rows; // Q4_K: 19.3 GB
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.tensorAt("big", {columns, rows}, 12, 0);
  Bytes bytes = builder.bytes();
  std::uint64_t begin = bytes.size();
  TempFolder folder;
  folder.write("big.gguf", bytes);
  if (::truncate(folder.file("big.gguf").c_str(),
                 static_cast<off_t>(begin + sizeBytes)) != 0)
    GTEST_SKIP() << "the file system has no sparse files of this size";
  auto file = GgufFile::open(folder.file("big.gguf"));
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->tensors()[0].sizeBytes, sizeBytes);
  EXPECT_STREQ(file->tensors()[0].type->name, "Q4_K");
  EXPECT_EQ(file->data(file->tensors()[0])[sizeBytes - 1], 0);
}

} // namespace
