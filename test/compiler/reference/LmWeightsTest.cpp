// Weights as the reference executor loads them: blocks, row orders, rounding.
#include "compiler/reference/LmWeights.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace ingot;

namespace {

class LmWeightsTest : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<lm::LmDialect>();
    folder =
        std::filesystem::path(testing::TempDir()) /
        ("lm-weights-" +
         std::string(
             testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Loads @w, whose one part covers `bytes`.
  Result<LoadedWeight> load(const std::vector<std::uint8_t> &bytes,
                            const std::string &shape,
                            const std::string &encoding,
                            const std::string &part) {
    std::ofstream(folder / "data", std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    std::string size = std::to_string(bytes.size());
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "lm.source @s {name = \"data\", size = " + size +
            " : i64, hash = \"0000000000000000\"}\nlm.weight @w " + shape +
            " " + encoding +
            " parts [#lm.part<source = @s, name = \"t\", offset = 0, "
            "size = " +
            size + ", " + part + ">]",
        &context);
    if (!module)
      return Status::invalid("the module does not parse");
    INGOT_ASSIGN_OR_RETURN(LmSourceFiles files,
                           LmSourceFiles::open(*module, folder.string()));
    return files.load(*module->getOps<lm::WeightOp>().begin());
  }

  static std::vector<std::uint8_t> bytesOf(const std::vector<float> &values) {
    std::vector<std::uint8_t> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::filesystem::path folder;
};

// Stored row 2i + s of a head is logical row s * D/2 + i.
TEST_F(LmWeightsTest, UndoesThePermutation) {
  auto weight = load(bytesOf({0, 2, 1, 3, 4, 6, 5, 7}), "[8, 1]",
                     "encoding <f32> layout r16",
                     "stored = f32, rows = 8, columns = 1, permute = 2");
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(weight->values, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// A q8_0 block keeps its codes and its scale.
TEST_F(LmWeightsTest, KeepsBlocksOfInt8) {
  std::vector<std::uint8_t> block{0x00, 0x38}; // 0.5
  for (int i = 0; i < 32; ++i)
    block.push_back(static_cast<std::uint8_t>(i - 16));
  auto weight = load(block, "[1, 32]", "encoding <i8, group = 32> layout r16",
                     "stored = q8_0, rows = 1, columns = 32");
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(weight->scales, std::vector<float>{0.5f});
  EXPECT_EQ(weight->codes[0], -16);
  EXPECT_EQ(weight->values[31], 7.5f);
}

// A q4_1 block keeps its minimum: low nibbles first.
TEST_F(LmWeightsTest, KeepsBlocksWithMinimum) {
  std::vector<std::uint8_t> block{0x00, 0x3c, 0x00, 0xc0}; // 1, -2
  block.resize(20, 0xf3);
  auto weight =
      load(block, "[1, 32]", "encoding <i4, group = 32, minimum> layout r16",
           "stored = q4_1, rows = 1, columns = 32");
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(weight->mins, std::vector<float>{-2.0f});
  EXPECT_EQ(weight->values[0], 1.0f);
  EXPECT_EQ(weight->values[16], 13.0f);
}

// Groups round on their own; the last may be short; zeros stay exactly zero.
TEST_F(LmWeightsTest, RoundsGroups) {
  std::vector<float> values(40, 0.0f);
  values[32] = 127.0f;
  values[33] = -3.4f;
  auto weight = load(bytesOf(values), "[1, 40]",
                     "encoding <i8, group = 32> layout r16 method \"rtn\"",
                     "stored = f32, rows = 1, columns = 40");
  ASSERT_TRUE(weight.isOk()) << weight.status().message();
  EXPECT_EQ(weight->groups, 2);
  EXPECT_TRUE(std::isfinite(weight->scales[0]));
  EXPECT_EQ(weight->values[0], 0.0f);
  EXPECT_EQ(weight->scales[1], 1.0f);
  EXPECT_EQ(weight->values[33], -3.0f);
}

// A weight that is no number is refused, by name.
TEST_F(LmWeightsTest, RefusesWhatIsNotFinite) {
  std::vector<float> values(32, 1.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  auto weight = load(bytesOf(values), "[1, 32]",
                     "encoding <i4, group = 32> layout r16 method \"rtn\"",
                     "stored = f32, rows = 1, columns = 32");
  ASSERT_FALSE(weight.isOk());
  EXPECT_NE(weight.status().message().find("tensor t"), std::string::npos);
}

// A file that has changed since the module was made is refused.
TEST_F(LmWeightsTest, RefusesAnotherFile) {
  ASSERT_TRUE(load(bytesOf({1}), "[1]", "encoding <f32> layout row",
                   "stored = f32, rows = 1, columns = 1")
                  .isOk());
  std::ofstream(folder / "data", std::ios::app) << "x";
  auto files = LmSourceFiles::open(*module, folder.string());
  ASSERT_FALSE(files.isOk());
  EXPECT_NE(files.status().message().find("expected 4"), std::string::npos);
}

} // namespace
