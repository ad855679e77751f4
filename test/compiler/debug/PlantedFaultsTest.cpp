// Eight kinds of fault, each planted in a model whose layer and sizes are drawn
// from a seed, and located by the comparison with the model as it should be: the
// first operator that diverges is the one that was broken, from the first
// position at which that shows. INGOT_FAULT_SEED draws others.
#include "test/compiler/debug/FaultyModel.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/Container.h"

#include "mlir/IR/Builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace ingot::debug {
namespace {

using ::testing::Contains;
using testing::FaultyModel;
using testing::TinyModel;

class PlantedFaults : public ::testing::TestWithParam<int> {
protected:
  static std::uint32_t seed(std::uint32_t fault) {
    const char *given = std::getenv("INGOT_FAULT_SEED");
    return (given ? std::uint32_t(std::atoi(given)) : 0u) + 100u * fault +
           std::uint32_t(GetParam());
  }

  // The comparison of what was broken with what it should be.
  static Comparison
  compare(const std::string &broken, const std::string &right,
          const std::vector<std::int32_t> &tokens, std::int32_t chunk = 0,
          const std::function<void(Engine &)> &betweenSteps = nullptr) {
    CompareRequest request;
    request.a = broken;
    request.b = right;
    request.tokens = tokens;
    request.run.chunkTokens = chunk;
    request.run.threads = 1;
    request.run.betweenSteps = betweenSteps;
    request.diagnostic = [](const std::string &text) { ADD_FAILURE() << text; };
    Result<Comparison> comparison = compareModels(request);
    EXPECT_TRUE(comparison) << comparison.status().message();
    return comparison ? *comparison : Comparison();
  }

  static void expectAgreement(const Comparison &comparison) {
    EXPECT_EQ(comparison.first(), nullptr) << comparisonText(comparison);
    EXPECT_GT(comparison.differences.size(), 10u);
  }

  // The first divergence is of `tensor`, in that layer, and one of the operators
  // behind it is `op`.
  static void expectFirst(const Comparison &comparison,
                          const std::string &tensor, std::int64_t layer,
                          const std::string &op, std::int64_t position) {
    SCOPED_TRACE(comparisonText(comparison));
    const Difference *first = comparison.first();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->name, tensor);
    EXPECT_EQ(first->layer, layer);
    EXPECT_THAT(first->operators, Contains(op));
    EXPECT_EQ(first->firstPosition, position);
  }
  static std::string layerName(std::int64_t layer, const std::string &what) {
    return "layer." + std::to_string(layer) + "." + what;
  }
};

TEST_P(PlantedFaults, WrongRotaryBase) {
  FaultyModel model("llama", seed(1));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  std::string encoding = model.drawEncoding();
  auto tokens = model.tokens(model.draw(5, 12));
  expectAgreement(compare(model.compile(model.folder(), "right", encoding),
                          model.folder(), tokens));
  std::string broken =
      model.compileChanged("broken", encoding, [&](mlir::ModuleOp module) {
        // A table of another base that this layer alone rotates by.
        lm::WeightOp weight =
            *llvm::find_if(module.getOps<lm::WeightOp>(), [](lm::WeightOp op) {
              return op.getSymName() == "rope.0";
            });
        auto numbers = llvm::cast<mlir::DenseFPElementsAttr>(*weight.getValue())
                           .getValues<float>();
        std::vector<float> values(numbers.begin(), numbers.end());
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] *= std::pow(0.1f, float(i) / float(values.size()));
        lm::WeightOp other = weight.clone();
        other.setSymName("rope.other");
        other.setValueAttr(mlir::DenseElementsAttr::get(
            llvm::cast<mlir::ShapedType>(weight.getValueAttr().getType()),
            llvm::ArrayRef(values)));
        weight->getBlock()->getOperations().insertAfter(weight->getIterator(),
                                                        other);
        lm::RopeTableOp table;
        module.walk([&](lm::RopeTableOp op) { table = op; });
        lm::RopeTableOp wrong = table.clone();
        wrong.setInvFreq("rope.other");
        wrong->setLoc(lm::nameLocation(module.getContext(), "rope.other"));
        table->getBlock()->getOperations().insertAfter(table->getIterator(),
                                                       wrong);
        module.walk([&](lm::RotaryOp op) {
          if (layerOf(lm::locationName(op.getLoc())) == layer)
            op.getTableMutable().assign(wrong.getResult());
        });
      });
  // Position 0 is not turned at all.
  expectFirst(compare(broken, model.folder(), tokens),
              layerName(layer, "query"), layer, layerName(layer, "q_rotary"),
              1);
}

TEST_P(PlantedFaults, GateAndUpSwapped) {
  FaultyModel model("llama", seed(2));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  std::string broken = model.folder("swapped", [&](TinyModel &tiny) {
    std::string prefix = "model.layers." + std::to_string(layer) + ".mlp.";
    std::swap(tiny.tensors[prefix + "gate_proj.weight"].values,
              tiny.tensors[prefix + "up_proj.weight"].values);
  });
  expectFirst(compare(model.compile(broken, "broken", model.drawEncoding()),
                      model.folder(), model.tokens(6)),
              layerName(layer, "gate"), layer, layerName(layer, "gate"), 0);
}

TEST_P(PlantedFaults, MissingBias) {
  FaultyModel model("qwen2", seed(3));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  std::string which = std::vector{"q", "k", "v"}[std::size_t(model.draw(0, 2))];
  std::string encoding = model.drawEncoding();
  auto tokens = model.tokens(6);
  expectAgreement(compare(model.compile(model.folder(), "right", encoding),
                          model.folder(), tokens));
  std::string broken =
      model.compileChanged("broken", encoding, [&](mlir::ModuleOp module) {
        module.walk([&](lm::LinearOp op) {
          if (lm::locationName(op.getLoc()) == layerName(layer, which))
            op.removeBiasAttr();
        });
      });
  expectFirst(compare(broken, model.folder(), tokens), layerName(layer, which),
              layer, layerName(layer, which), 0);
}

TEST_P(PlantedFaults, WindowOffByOne) {
  FaultyModel model("mistral", seed(4));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  std::string encoding = model.drawEncoding();
  auto tokens = model.tokens(model.window + 6);
  expectAgreement(compare(model.compile(model.folder(), "right", encoding),
                          model.folder(), tokens, 5));
  std::string broken =
      model.compileChanged("broken", encoding, [&](mlir::ModuleOp module) {
        module.walk([&](lm::AttentionOp op) {
          if (layerOf(lm::locationName(op.getLoc())) == layer)
            op.setWindow(std::uint64_t(model.window - 1));
        });
      });
  // The first position that would see `window` others and itself.
  expectFirst(compare(broken, model.folder(), tokens),
              layerName(layer, "attention"), layer,
              layerName(layer, "attention"), model.window - 1);
}

// In the packed weights each group has the scale of the one before it.
TEST_P(PlantedFaults, WrongScaleGroup) {
  FaultyModel model("llama", seed(5));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  std::string which =
      std::vector{"qkv", "gate_up", "down"}[std::size_t(model.draw(0, 2))];
  std::string encoding = model.draw(0, 1) ? "int8-g32" : "int4-g32";
  std::string path = model.compile(model.folder(), "right", encoding);
  auto tokens = model.tokens(6);
  expectAgreement(compare(path, model.folder(), tokens));

  std::uint64_t at = 0, groups = 0, tiles = 0;
  {
    Result<Artifact> artifact = Artifact::open(path);
    ASSERT_TRUE(artifact) << artifact.status().message();
    for (const fbs::Weight *weight : *artifact->plan().weights())
      if (weight->name()->str() == layerName(layer, which)) {
        at = weight->offset() + weight->scales_offset();
        groups = (weight->columns() + 31) / 32;
        tiles = (weight->rows() + 15) / 16;
      }
  }
  ASSERT_GE(groups, 2u);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  container::ContainerHeader header;
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  for (std::uint32_t s = 0; s < header.numSegments; ++s) {
    container::SegmentEntry entry;
    file.read(reinterpret_cast<char *>(&entry), sizeof entry);
    if (entry.kind == container::SegmentKind::Weights)
      at += entry.offset;
  }
  std::vector<std::uint16_t> tile(groups * 16);
  for (std::uint64_t t = 0; t < tiles; ++t) {
    auto place = std::streamoff(at + t * tile.size() * sizeof(tile[0]));
    auto size = std::streamsize(tile.size() * sizeof(tile[0]));
    file.seekg(place);
    file.read(reinterpret_cast<char *>(tile.data()), size);
    std::rotate(tile.begin(), tile.end() - 16, tile.end());
    file.seekp(place);
    file.write(reinterpret_cast<const char *>(tile.data()), size);
  }
  file.close();
  std::string part = which == "qkv"       ? "q"
                     : which == "gate_up" ? "gate"
                                          : "down";
  expectFirst(compare(path, model.folder(), tokens),
              layerName(layer, part == "down" ? "ffn_residual" : part), layer,
              layerName(layer, part), 0);
}

TEST_P(PlantedFaults, DroppedSoftCap) {
  FaultyModel model("gemma2", seed(6));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  bool ofLogits = model.draw(0, 3) == 0;
  std::string encoding = model.drawEncoding();
  auto tokens = model.tokens(9);
  expectAgreement(compare(model.compile(model.folder(), "right", encoding),
                          model.folder(), tokens));
  std::string broken =
      model.compileChanged("broken", encoding, [&](mlir::ModuleOp module) {
        if (ofLogits)
          module.walk([&](lm::CapOp op) {
            op.setSoftCapAttr(
                mlir::Builder(op.getContext()).getF32FloatAttr(0));
            op.setScaleAttr(mlir::Builder(op.getContext()).getF32FloatAttr(1));
          });
        else
          module.walk([&](lm::AttentionOp op) {
            if (layerOf(lm::locationName(op.getLoc())) == layer)
              op.setSoftCapAttr(
                  mlir::Builder(op.getContext()).getF32FloatAttr(0));
          });
      });
  Comparison comparison = compare(broken, model.folder(), tokens);
  if (ofLogits)
    expectFirst(comparison, "logits", -1, "logits", 0);
  else // position 0 sees itself alone, whatever its score
    expectFirst(comparison, layerName(layer, "attention"), layer,
                layerName(layer, "attention"), 1);
}

// Between two steps the keys and values of a position become those of another.
TEST_P(PlantedFaults, StaleKvSlot) {
  FaultyModel model("llama", seed(7));
  SCOPED_TRACE(model.describe());
  std::int64_t layer = model.draw(0, model.layers() - 1);
  auto chunk = std::int32_t(model.draw(4, 9));
  std::int64_t position = model.draw(0, chunk - 1);
  std::string path =
      model.compile(model.folder(), "right", model.drawEncoding());
  auto tokens = model.tokens(chunk + 5);
  expectAgreement(compare(path, model.folder(), tokens, chunk));
  bool isPlanted = false;
  Comparison comparison =
      compare(path, model.folder(), tokens, chunk, [&](Engine &engine) {
        if (std::exchange(isPlanted, true))
          return;
        const GroupGeometry &geometry = engine.cache().geometry(0);
        const fbs::StateGroup &state =
            *engine.artifact().plan().states()->Get(0);
        auto *keys = reinterpret_cast<std::uint16_t *>(
            engine.cache().base(0) +
            geometry.blockBytes() *
                std::uint64_t(engine.cache().blockTable(1, 0)[0]) +
            geometry.layerBytes * std::uint64_t(layer));
        std::int64_t other = (position + 1) % chunk;
        for (std::uint32_t i = 0; i < state.kv_heads() * state.head_dim(); ++i)
          keys[i * abi::kBlockTokens + position] =
              keys[i * abi::kBlockTokens + other];
      });
  EXPECT_TRUE(isPlanted);
  expectFirst(comparison, layerName(layer, "attention"), layer,
              layerName(layer, "attention"), chunk);
  ASSERT_FALSE(comparison.changedSlots.empty());
  EXPECT_EQ(comparison.changedSlots[0].tensor, layerName(layer, "keys"));
  EXPECT_EQ(comparison.changedSlots[0].position, position);
  EXPECT_EQ(comparison.changedSlots[0].readAt, chunk);
}

TEST_P(PlantedFaults, WrongExitMap) {
  FaultyModel model("llama", seed(8));
  SCOPED_TRACE(model.describe());
  std::int64_t after = model.draw(1, model.layers() - 1);
  std::vector<std::int64_t> exits;
  for (std::int64_t layers = 1; layers < model.layers(); ++layers)
    exits.push_back(layers);
  std::uint64_t hidden = model.tiny.config["hidden_size"];
  std::string encoding = model.drawEncoding();
  // Maps of random numbers; in the wrong file one exit's is another's.
  auto writeMaps = [&](const std::string &name, std::int64_t wrong) {
    SafetensorsWriter writer;
    for (std::int64_t layers : exits) {
      std::mt19937 random(std::uint32_t(layers == wrong ? 1000 : layers));
      std::normal_distribution<float> normal(0, 0.02f);
      std::vector<float> map(hidden * hidden), bias(hidden);
      for (float &value : map)
        value = normal(random);
      for (float &value : bias)
        value = normal(random);
      auto bytes = [](const std::vector<float> &values) {
        return std::span(reinterpret_cast<const std::uint8_t *>(values.data()),
                         values.size() * sizeof(float));
      };
      std::string prefix = "exit." + std::to_string(layers) + ".";
      EXPECT_TRUE(writer.add(prefix + "map", SafetensorsDtype::F32,
                             {hidden, hidden}, bytes(map)));
      EXPECT_TRUE(writer.add(prefix + "bias", SafetensorsDtype::F32, {hidden},
                             bytes(bias)));
    }
    EXPECT_TRUE(writer.write(model.files.file(name)));
    return model.files.file(name);
  };
  std::string stages = model.files.file("stages");
  std::string right = model.compile(model.folder(), "right", encoding, exits,
                                    writeMaps("right.safetensors", -1), stages);
  std::string broken = model.compile(model.folder(), "broken", encoding, exits,
                                     writeMaps("wrong.safetensors", after));
  auto tokens = model.tokens(5);
  for (const char *stage : {"/2-compress.mlir", "/3-fuse.mlir"}) {
    expectAgreement(compare(right, stages + stage, tokens));
    std::string map = "exit" + std::to_string(after) + ".map";
    expectFirst(compare(broken, stages + stage, tokens), map, after - 1, map,
                0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlantedFaults, ::testing::Values(1, 2));

} // namespace
} // namespace ingot::debug
