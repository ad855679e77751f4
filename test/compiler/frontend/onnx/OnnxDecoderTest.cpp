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

#include <array>
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
// without rotation; norms of what is added and of rows of q and k; multipliers;
// norms of weights plus one, soft caps, two rotations; norms of each head's own, apart
// or in a matrix; keys repeated before they are kept; interleaved rotation.
class Families : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(
    Exports, Families,
    ::testing::Values(
        "gpt2/decomposed", "gpt2/multi-head", "gpt-neox/decomposed",
        "gpt-neox-sequential/decomposed", "phi3/decomposed", "phi3/gqa",
        "stablelm/decomposed", "stablelm-parallel/decomposed",
        "falcon/decomposed", "qwen2-window/decomposed", "smollm3/decomposed",
        "starcoder2/decomposed", "olmo2/decomposed", "granite/decomposed",
        "gemma2/decomposed", "gemma3/decomposed", "stablelm-norms/decomposed",
        "falcon-groups/decomposed", "falcon-sequential/decomposed",
        "cohere/decomposed", "cohere2/decomposed"),
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

// What a feed-forward gives, times what the best of some scores are.
TEST_F(ChangedExport, ExpertsAreRefusedByTheirChoice) {
  auto *graph = model_.mutable_graph();
  auto *count = graph->add_initializer();
  count->set_name("experts/count");
  count->set_data_type(onnxproto::TensorProto::INT64);
  count->add_dims(1);
  const std::int64_t two = 2;
  count->set_raw_data(&two, sizeof(two));
  std::vector<onnxproto::NodeProto> nodes;
  int changed = 0;
  for (onnxproto::NodeProto node : graph->node()) {
    nodes.push_back(node);
    if (node.name() != "model.layers.5.mlp.down_proj.product")
      continue;
    ++changed;
    const std::string given = node.output(0);
    nodes.back().set_output(0, "experts/given");
    auto add = [&](const std::string &op, std::vector<std::string> inputs,
                   std::vector<std::string> outputs) {
      onnxproto::NodeProto made;
      made.set_op_type(op);
      made.set_name("experts/" + op);
      for (const std::string &input : inputs)
        made.add_input(input);
      for (const std::string &output : outputs)
        made.add_output(output);
      nodes.push_back(made);
    };
    add("TopK", {"experts/given", "experts/count"},
        {"experts/best", "experts/which"});
    add("ReduceMax", {"experts/best", "experts/axis"}, {"experts/most"});
    add("Mul", {"experts/given", "experts/most"}, {given});
  }
  auto *axis = graph->add_initializer();
  *axis = *count;
  axis->set_name("experts/axis");
  const std::int64_t last = -1;
  axis->set_raw_data(&last, sizeof(last));
  ASSERT_EQ(changed, 1);
  graph->clear_node();
  for (const auto &node : nodes)
    *graph->add_node() = node;
  expectRefused("found experts that are chosen by TopK \"experts/TopK\"");
}

// Norms of each head's own are read where they are alike and in the order of the
// heads, by the weights that each really has.
TEST(OnnxDecoder, OwnNormsOfHeadsAreAlikeAndInOrder) {
  const std::string folder = kModels + "families/stablelm-norms/",
                    at = "/model/model/layers.0/self_attn/q_layernorm/";
  onnxproto::ModelProto original;
  std::ifstream file(folder + "decomposed.onnx", std::ios::binary);
  ASSERT_TRUE(original.ParseFromIstream(&file));
  auto import = [&](auto change) {
    onnxproto::ModelProto model = original;
    int changed = 0;
    for (auto &node : *model.mutable_graph()->mutable_node())
      changed += change(node);
    EXPECT_EQ(changed, 1);
    testing::TempFolder copy;
    copy.write("m.onnx", model.SerializeAsString());
    for (const char *name : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(folder + name, copy.file(name));
    return importModel(copy.file("m.onnx"));
  };
  auto epsilon = import([&](auto &node) {
    if (node.name() != at + "norms.1/LayerNormalization")
      return 0;
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.name() == "epsilon")
        attribute.set_f(0.1f);
    return 1;
  });
  ASSERT_FALSE(epsilon.isOk());
  EXPECT_THAT(epsilon.status().message(),
              HasSubstr("expected the projection of q, found Concat"));
  auto order = import([&](auto &node) {
    if (node.name() != at + "Concat")
      return 0;
    node.mutable_input()->SwapElements(0, 1);
    return 1;
  });
  ASSERT_FALSE(order.isOk());
  EXPECT_THAT(order.status().message(),
              HasSubstr("expected the projection of q"));
  auto shared = import([&](auto &node) {
    if (node.name() != at + "norms.1/LayerNormalization")
      return 0;
    std::string &weight = *node.mutable_input(1);
    weight.replace(weight.find("norms.1"), 7, "norms.2");
    return 1;
  });
  ASSERT_TRUE(shared.isOk()) << shared.status().message();
  const auto &parameters = shared->parameters;
  EXPECT_EQ(parameters.at("layer.0.q_norm.1").byteOffset,
            parameters.at("layer.0.q_norm.2").byteOffset);
  EXPECT_NE(parameters.at("layer.0.q_norm.0").byteOffset,
            parameters.at("layer.0.q_norm.2").byteOffset);
}

// The cap of the logits: one number both times, else it is none.
TEST(OnnxDecoder, CapsOfTwoNumbersAreRefused) {
  onnxproto::ModelProto model;
  std::ifstream file(kModels + "families/gemma2/decomposed.onnx",
                     std::ios::binary);
  ASSERT_TRUE(model.ParseFromIstream(&file));
  std::string divisor;
  for (const auto &node : model.graph().node())
    if (node.op_type() == "Div" && node.name() == "/model/Div")
      divisor = node.input(1);
  int changed = 0;
  for (auto &node : *model.mutable_graph()->mutable_node())
    if (node.op_type() == "Constant" && node.output(0) == divisor) {
      const std::uint16_t six = 0x40c0; // 6 in bfloat16; it was 8
      node.mutable_attribute(0)->mutable_t()->set_raw_data(&six, sizeof(six));
      ++changed;
    }
  ASSERT_EQ(changed, 1);
  testing::TempFolder folder;
  folder.write("m.onnx", model.SerializeAsString());
  for (const char *name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(kModels + "families/gemma2/" + name,
                               folder.file(name));
  auto spec = importModel(folder.file("m.onnx"));
  ASSERT_FALSE(spec.isOk());
  EXPECT_THAT(spec.status().message(),
              HasSubstr("capped by one number and scaled by another"));
}

// A mask with a window before every attention, which has one of its own: a query
// sees what both allow.
class TwoWindows
    : public ChangedExport,
      public ::testing::WithParamInterface<std::array<std::int64_t, 3>> {
protected:
  onnxproto::NodeProto *node(const std::string &op,
                             std::vector<std::string> inputs,
                             const std::string &output) {
    onnxproto::NodeProto made;
    made.set_op_type(op);
    made.set_name(output);
    for (const std::string &input : inputs)
      made.add_input(input);
    made.add_output(output);
    made_.push_back(made);
    return &made_.back();
  }
  std::string ints(const std::string &name, std::vector<std::int64_t> values,
                   bool isVector = true) {
    auto *tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnxproto::TensorProto::INT64);
    if (isVector)
      tensor->add_dims(std::int64_t(values.size()));
    tensor->set_raw_data(
        std::string(reinterpret_cast<const char *>(values.data()),
                    values.size() * sizeof(std::int64_t)));
    return name;
  }
  // position - key < window, [batch, 1, positions, keys].
  void addMask(std::int64_t window) {
    node("Shape", {"attention_mask"}, "w/shape");
    node("Gather", {"w/shape", ints("w/at", {1}, false)}, "w/length");
    node("Range",
         {ints("w/zero", {0}, false), "w/length", ints("w/one", {1}, false)},
         "w/keys");
    node("Unsqueeze", {"position_ids", ints("w/axes", {1, 3})}, "w/positions");
    node("Sub", {"w/positions", "w/keys"}, "w/distance");
    node("Less", {"w/distance", ints("w/window", {window}, false)}, "w/mask");
    auto *nodes = model_.mutable_graph()->mutable_node();
    std::vector<onnxproto::NodeProto> before(nodes->begin(), nodes->end());
    nodes->Clear();
    for (auto *list : {&made_, &before})
      for (auto &one : *list) {
        if (one.op_type() == "Attention")
          one.set_input(3, "w/mask");
        *nodes->Add() = one;
      }
    for (auto &opset : *model_.mutable_opset_import())
      opset.set_version(25);
  }
  std::vector<onnxproto::NodeProto> made_;
};
// The mask's, the attention's, and the window of both in a context of 1024. Probes
// of 72, 42 and 1024 positions see them in turn.
INSTANTIATE_TEST_SUITE_P(
    Pairs, TwoWindows,
    ::testing::Values(std::array<std::int64_t, 3>{20, 40, 20},
                      std::array<std::int64_t, 3>{40, 20, 20},
                      std::array<std::int64_t, 3>{50, 60, 50},
                      std::array<std::int64_t, 3>{20, 0, 20},
                      std::array<std::int64_t, 3>{2000, 30, 30},
                      std::array<std::int64_t, 3>{300, 400, 300},
                      std::array<std::int64_t, 3>{400, 300, 300}));

TEST_P(TwoWindows, TheSmallerHolds) {
  const auto [ofMask, own, expected] = GetParam();
  addMask(ofMask);
  set("Attention", "left_window_size", own - 1); // -1: none
  auto spec = import();
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  ASSERT_EQ(spec->contextLength, 1024);
  for (const LayerSpec &layer : spec->layers)
    EXPECT_EQ(layer.slidingWindow, expected);
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

// What an artifact is made of instead is said.
TEST(OnnxDecoder, EncodersAreRefused) {
  auto encoder = importModel(kModels + "encoders/bert/encoder.onnx");
  ASSERT_FALSE(encoder.isOk());
  EXPECT_THAT(encoder.status().message(),
              HasSubstr("input \"token_type_ids\" is none that a decoder has"));
  EXPECT_THAT(encoder.status().message(), HasSubstr("onnx-run"));
  auto other = importModel(kModels + "encoders/distilbert/encoder.onnx");
  ASSERT_FALSE(other.isOk());
  EXPECT_THAT(other.status().message(),
              HasSubstr("it has no inputs of a past"));
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
