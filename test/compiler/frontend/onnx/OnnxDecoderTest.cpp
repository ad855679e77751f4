// One model as a folder and as its ONNX exports (test/models/export_onnx.py, which
// share its weights): one spec, the same bytes of the same file, one lm module.
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/RotaryFrequencies.h"
#include "compiler/frontend/lm/LmBuilder.h"
#include "compiler/frontend/onnx/OnnxProbe.h"
#include "compiler/frontend/onnx/RotaryTables.h"
#include "compiler/stored/StoredRows.h"

#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <regex>

namespace ingot {
namespace {

using ::testing::HasSubstr;

const std::string kModels = std::string(INGOT_SOURCE_DIR) + "/test/models/";

// The module without what differs by the way in: the sources, the description of
// the whole model, and the names that an exporter gave to tensors.
std::string moduleText(const ModelSpec &spec) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  LmBuildOptions options;
  options.hashSources = false;
  auto module = buildLm(context, spec, options);
  EXPECT_TRUE(mlir::succeeded(module));
  std::string text, kept;
  llvm::raw_string_ostream(text) << **module;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (!line.contains("lm.source") && !line.starts_with("module"))
      kept += line.str() + "\n";
  kept = std::regex_replace(kept, std::regex("source = @src[0-9]+"), "");
  return std::regex_replace(kept, std::regex("name = \"[^\"]*\""), "");
}

// The export FOLDER/FORM.onnx and the folder itself are one model.
void expectModelOfFolder(const std::string &path) {
  std::vector<std::string> said;
  ImportOptions options;
  options.explainFusion = [&](const std::string &line) {
    said.push_back(line);
  };
  auto exported = importModel(path + ".onnx", options);
  ASSERT_TRUE(exported.isOk()) << exported.status().message() << "\n"
                               << ::testing::PrintToString(said);
  auto folder = importModel(path.substr(0, path.rfind('/')));
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_EQ(exported->vocabSize, folder->vocabSize);
  EXPECT_EQ(exported->hiddenSize, folder->hiddenSize);
  EXPECT_EQ(exported->contextLength, folder->contextLength);
  EXPECT_EQ(exported->tiedHead, folder->tiedHead);
  EXPECT_EQ(exported->eosIds, folder->eosIds);
  EXPECT_EQ(static_cast<float>(exported->normEps),
            static_cast<float>(folder->normEps));
  ASSERT_EQ(exported->layers.size(), folder->layers.size());
  for (std::size_t i = 0; i < folder->layers.size(); ++i) {
    const LayerSpec &a = exported->layers[i], &b = folder->layers[i];
    EXPECT_EQ(a.rotary, b.rotary) << i;
    EXPECT_EQ(a.biases, b.biases) << i;
    EXPECT_EQ(static_cast<float>(a.softmaxScale),
              static_cast<float>(b.softmaxScale))
        << i;
  }
  ASSERT_EQ(exported->parameters.size(), folder->parameters.size());
  for (const auto &[role, source] : folder->parameters) {
    auto found = exported->parameters.find(role);
    ASSERT_NE(found, exported->parameters.end()) << role;
    EXPECT_EQ(found->second.byteOffset, source.byteOffset) << role;
    EXPECT_EQ(found->second.sizeBytes, source.sizeBytes) << role;
  }
  EXPECT_EQ(moduleText(*exported), moduleText(*folder));
  EXPECT_FALSE(said.empty());
}

class Exports : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Forms, Exports,
                         ::testing::Values("target/attention", "target/gqa",
                                           "target/decomposed",
                                           "target-int4/int4"));

TEST_P(Exports, GiveTheModuleOfTheFolder) {
  expectModelOfFolder(kModels + GetParam());
}

// A real model: SmolLM2-135M-Instruct, 30 layers of 9 heads over 3.
class Smollm2Exports : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Forms, Smollm2Exports,
                         ::testing::Values("attention", "gqa", "decomposed"));

TEST_P(Smollm2Exports, GiveTheModuleOfTheFolder) {
  const char *folder = std::getenv("INGOT_SMOLLM2_ONNX");
  if (!folder)
    GTEST_SKIP() << "INGOT_SMOLLM2_ONNX does not name a folder of SmolLM2 with "
                    "its exports (test/models/README.md)";
  expectModelOfFolder(std::string(folder) + "/" + GetParam());
}

// Codes of MatMulNBits stay codes, and are what they say: (code - 8) * scale.
TEST(OnnxDecoder, FourBitCodesAreKept) {
  const std::string path = kModels + "target-int4/int4.onnx";
  auto spec = importModel(path);
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  ASSERT_EQ(spec->layers.size(), 6u);
  auto file = OnnxFile::open(path);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  std::map<std::string, OnnxTensor> tensors;
  for (const auto &proto : file->model().graph().initializer()) {
    auto tensor = file->read(proto, proto.name());
    ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
    tensors.emplace(proto.name(), std::move(*tensor));
  }
  int checked = 0;
  for (const auto &[role, source] : spec->parameters) {
    if (source.dtype != WeightDtype::Codes)
      continue;
    ASSERT_TRUE(source.details.codes.has_value());
    const OnnxTensor &codes = tensors.at(source.name),
                     &scales = tensors.at(source.details.codes->scales.name);
    StoredTensor stored;
    stored.name = role;
    stored.form = source.dtype;
    stored.bytes = codes.bytes();
    stored.rows = source.shape[0];
    stored.columns = source.shape[1];
    stored.details = source.details;
    stored.details.codes->scales.bytes = scales.bytes();
    auto rows = StoredRows::create(stored);
    ASSERT_TRUE(rows.isOk()) << rows.status().message();
    std::vector<float> values(stored.columns);
    std::vector<double> numbers = numbersOf(scales);
    for (std::uint64_t row : {std::uint64_t(0), stored.rows - 1}) {
      rows->widen(row, values);
      for (std::uint64_t k = 0; k < stored.columns; ++k) {
        const std::uint8_t byte = codes.bytes()[(row * stored.columns + k) / 2];
        const int code = k % 2 ? byte >> 4 : byte & 15;
        const double scale = numbers[row * (stored.columns / 32) + k / 32];
        EXPECT_EQ(values[k], static_cast<float>((code - 8) * scale));
      }
    }
    ++checked;
  }
  EXPECT_EQ(checked, 6 * 7);
  EXPECT_FALSE(moduleText(*spec).empty());
}

// A base is found to its last bit, from tables of any type of elements.
TEST(OnnxDecoder, BasesOfRotationTablesAreExact) {
  for (double theta : {500.0, 10000.0, 100000.0, 150000.0, 500000.0, 1000000.0,
                       5000000.0, 1234567.0})
    for (double rounding : {0x1p-24, 0x1p-11, 0x1p-8}) {
      if (theta == 1234567 && rounding > 0x1p-24)
        continue; // coarse tables do not tell so many digits
      SCOPED_TRACE(std::to_string(theta) + ", " + std::to_string(rounding));
      RotarySpec plain;
      plain.dim = 64;
      plain.theta = theta;
      ASSERT_TRUE(computeInverseFrequencies(plain).isOk());
      RotaryTables tables;
      tables.half = 32;
      tables.rounding = rounding;
      for (int position = 0; position < 200; ++position) {
        tables.positions.push_back(position);
        for (float frequency : plain.invFreq) {
          auto stored = [&](double value) {
            return std::round(value / rounding / 2) * rounding * 2;
          };
          tables.cosines.push_back(stored(std::cos(position * frequency)));
          tables.sines.push_back(stored(std::sin(position * frequency)));
        }
      }
      RotarySpec found;
      found.dim = 64;
      Status status = recoverRotary(tables, found);
      ASSERT_TRUE(status.isOk()) << status.message();
      EXPECT_EQ(found.theta, theta);
      EXPECT_TRUE(rotaryFits(tables, found));
    }
}

TEST(OnnxDecoder, OnlyOnnxExplainsItsFusions) {
  ImportOptions options;
  options.explainFusion = [](const std::string &) {};
  auto folder = importModel(kModels + "target", options);
  ASSERT_FALSE(folder.isOk());
  EXPECT_THAT(folder.status().message(), HasSubstr("--explain-fusion is for"));
}

} // namespace
} // namespace ingot
