// One model as a folder and as its ONNX exports (test/models/export_onnx.py, which
// share its weights): one spec, the same bytes of the same file, one lm module.
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/RotaryFrequencies.h"
#include "compiler/frontend/lm/LmBuilder.h"
#include "compiler/frontend/onnx/OnnxProbe.h"
#include "compiler/frontend/onnx/RotaryTables.h"
#include "compiler/stored/StoredRows.h"
#include "test/compiler/frontend/TempFolder.h"

#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
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
                                           "target-int4/int4",
                                           "tiny-qwen2/decomposed",
                                           "tiny-qwen3/decomposed"));

TEST_P(Exports, GiveTheModuleOfTheFolder) {
  expectModelOfFolder(kModels + GetParam());
}

// Other families, as torch.onnx.export or onnxruntime's optimizer leaves them: learned positions and transposed
// matrices; parallel blocks; partial rotation; q, k and v (of each head, of each
// group, or one after another), gate and up in one product; windows; layers
// without rotation; norms of what is added and of rows of q and k; multipliers.
class Families : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(
    Exports, Families,
    ::testing::Values("gpt2/decomposed", "gpt2/multi-head",
                      "gpt-neox/decomposed", "gpt-neox-sequential/decomposed",
                      "phi3/decomposed", "phi3/gqa", "stablelm/decomposed",
                      "stablelm-parallel/decomposed", "falcon/decomposed",
                      "qwen2-window/decomposed", "smollm3/decomposed",
                      "starcoder2/decomposed", "olmo2/decomposed",
                      "granite/decomposed"),
    [](const auto &info) {
      return std::regex_replace(std::string(info.param), std::regex("[-/]"),
                                "_");
    });

TEST_P(Families, GiveTheModuleOfTheFolder) {
  expectModelOfFolder(kModels + "families/" + GetParam());
}

// An export with other attributes: they are read, or it is refused.
class ChangedExport : public ::testing::Test {
protected:
  ChangedExport() {
    std::ifstream file(kModels + "target/attention.onnx", std::ios::binary);
    EXPECT_TRUE(model_.ParseFromIstream(&file));
  }

  // Sets an attribute of the first `count` nodes of a kind in each layer.
  template <typename T>
  void set(const std::string &op, const std::string &name, T value,
           int count = INT_MAX) {
    int seen = 0;
    for (auto &node : *model_.mutable_graph()->mutable_node()) {
      if (node.op_type() == "Attention" && op != "Attention")
        seen = 0; // the next layer
      if (node.op_type() != op || seen++ >= count)
        continue;
      onnxproto::AttributeProto *attribute = nullptr;
      for (auto &one : *node.mutable_attribute())
        if (one.name() == name)
          attribute = &one;
      if (!attribute)
        attribute = node.add_attribute();
      attribute->set_name(name);
      if constexpr (std::is_same_v<T, float>) {
        attribute->set_type(onnxproto::AttributeProto::FLOAT);
        attribute->set_f(value);
      } else {
        attribute->set_type(onnxproto::AttributeProto::INT);
        attribute->set_i(value);
      }
    }
  }
  // The rotation tables with their first columns alone.
  void narrowTables(std::int64_t columns) {
    for (auto &tensor : *model_.mutable_graph()->mutable_initializer())
      if (tensor.name() == "cos_cache" || tensor.name() == "sin_cache") {
        const std::size_t row = std::size_t(tensor.dims(1)) * 2;
        std::string kept;
        for (std::size_t at = 0; at < tensor.raw_data().size(); at += row)
          kept += tensor.raw_data().substr(at, std::size_t(columns) * 2);
        tensor.set_dims(1, columns);
        tensor.set_raw_data(kept);
      }
  }
  Result<ModelSpec> import() {
    folder_.write("m.onnx", model_.SerializeAsString());
    for (const char *name : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(kModels + "target/" + name,
                                 folder_.file(name));
    return importModel(folder_.file("m.onnx"));
  }
  void expectRefused(const std::string &why) {
    auto spec = import();
    ASSERT_FALSE(spec.isOk());
    EXPECT_THAT(spec.status().message(), HasSubstr(why));
  }

  onnxproto::ModelProto model_;
  testing::TempFolder folder_;
};

TEST_F(ChangedExport, InterleavedRotation) {
  set("RotaryEmbedding", "interleaved", 1);
  auto spec = import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  for (const LayerSpec &layer : spec->layers) {
    EXPECT_EQ(layer.rotary.layout, RotaryLayout::Interleaved);
    EXPECT_EQ(layer.rotary.dim, 32);
    EXPECT_EQ(layer.rotary.theta, 10000.0);
  }
}

TEST_F(ChangedExport, InterleavedRotationOfQueriesAlone) {
  set("RotaryEmbedding", "interleaved", 1, 1);
  expectRefused("q and k turn by different angles");
}

// The first 8 of 16 frequencies of a base are the 8 of its root.
TEST_F(ChangedExport, PartialRotation) {
  set("RotaryEmbedding", "rotary_embedding_dim", 16);
  narrowTables(8);
  auto spec = import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  for (const LayerSpec &layer : spec->layers) {
    EXPECT_EQ(layer.rotary.layout, RotaryLayout::Half);
    EXPECT_EQ(layer.rotary.dim, 16);
    EXPECT_EQ(layer.rotary.theta, 100.0);
    EXPECT_EQ(layer.headDim, 32);
  }
}

TEST_F(ChangedExport, RotationWiderThanItsTables) {
  narrowTables(8);
  expectRefused("turns 32 columns of a head by tables for 16");
}

TEST_F(ChangedExport, RotationNarrowerThanItsTables) {
  set("RotaryEmbedding", "rotary_embedding_dim", 16);
  expectRefused("turns 16 columns of a head by tables for 32");
}

// Without positions the tables have a row for each step, which these have not.
TEST_F(ChangedExport, RotationWithoutPositions) {
  for (auto &node : *model_.mutable_graph()->mutable_node())
    if (node.op_type() == "RotaryEmbedding")
      node.mutable_input()->RemoveLast();
  expectRefused("RotaryEmbedding");
}

TEST_F(ChangedExport, ScaleAndSoftCap) {
  set("Attention", "scale", 0.3f);
  set("Attention", "softcap", 2.0f);
  auto spec = import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  for (const LayerSpec &layer : spec->layers) {
    EXPECT_EQ(static_cast<float>(layer.softmaxScale), 0.3f);
    EXPECT_EQ(layer.softCap, 2.0);
  }
}

TEST_F(ChangedExport, AttentionThatIsNotCausal) {
  set("Attention", "is_causal", 0);
  expectRefused("is neither causal nor masked");
}

// A window that is wider than a probe shows at the end of the model's context, and
// one that is wider than that is none.
TEST(OnnxDecoder, WideWindowsAreSeen) {
  namespace fs = std::filesystem;
  const fs::path phi3 = kModels + "families/phi3";
  for (auto [given, expected] : {std::pair<std::int64_t, std::int64_t>(50, 50),
                                 {71, 71},
                                 {300, 300},
                                 {600, 0}}) {
    SCOPED_TRACE(given);
    onnxproto::ModelProto model;
    std::ifstream file(phi3 / "decomposed.onnx", std::ios::binary);
    ASSERT_TRUE(model.ParseFromIstream(&file));
    int changed = 0;
    for (auto &node : *model.mutable_graph()->mutable_node())
      if (node.op_type() == "Constant" && node.attribute(0).has_t()) {
        auto *tensor = node.mutable_attribute(0)->mutable_t();
        std::int64_t value = 0;
        if (tensor->data_type() != onnxproto::TensorProto::INT64 ||
            tensor->raw_data().size() != sizeof(value))
          continue;
        std::memcpy(&value, tensor->raw_data().data(), sizeof(value));
        if (value != 50)
          continue;
        tensor->set_raw_data(&given, sizeof(given));
        ++changed;
      }
    ASSERT_EQ(changed, 1);
    testing::TempFolder folder;
    folder.write("m.onnx", model.SerializeAsString());
    for (const char *name : {"config.json", "model.safetensors"})
      fs::copy_file(phi3 / name, folder.file(name));
    auto spec = importModel(folder.file("m.onnx"));
    ASSERT_TRUE(spec.isOk()) << spec.status().message();
    ASSERT_EQ(spec->contextLength, 512);
    for (const LayerSpec &layer : spec->layers)
      EXPECT_EQ(layer.slidingWindow, expected);
  }
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
