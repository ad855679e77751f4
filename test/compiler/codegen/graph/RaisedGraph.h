// An ONNX model as it is, and with its parts raised: both run on the same inputs.
#pragma once

#include "compiler/codegen/graph/Specialize.h"
#include "dialects/onnx/OnnxOps.h"
#include "passes/raise/Raise.h"
#include "test/compiler/codegen/graph/OnnxModel.h"

#include "gmock/gmock.h"

#include <random>

namespace ingot::raising {

using testing::OnnxModel;
using testing::tensor;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

inline Floats randomFloats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

struct Both {
  Floats apart, raised;
  std::vector<std::string> operators; // of the raised graph
  std::vector<std::string> said;
};

inline Both runBoth(const OnnxModel &model) {
  Both both;
  std::string text = model.proto.SerializeAsString();
  auto file = OnnxFile::fromMemory(
      {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()}, "m");
  EXPECT_TRUE(file.isOk()) << file.status().message();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importOnnxGraph(context, *file);
  EXPECT_TRUE(module.isOk()) << module.status().message();
  if (!module)
    return both;
  llvm::SmallVector<graph::InputBinding> bindings;
  for (const auto &input : model.inputs)
    bindings.push_back(
        {mlir::RankedTensorType::get(
             input->dims,
             onnxElementType(&context, static_cast<std::int32_t>(input->type))),
         {}});
  for (bool raises : {false, true}) {
    auto special = graph::specializeGraph(**module, bindings);
    EXPECT_TRUE(special.isOk()) << special.status().message();
    if (!special)
      return both;
    if (raises) {
      raise::raiseAll(**special, [&](const std::string &line) {
        both.said.push_back(line);
      });
      (**special)->walk([&](mlir::Operation *op) {
        if (op->getDialect()->getNamespace() == "onnx")
          both.operators.push_back(op->getName().stripDialect().str());
      });
    }
    auto lowered = graph::lowerGraph(**special);
    EXPECT_TRUE(lowered.isOk()) << lowered.status().message();
    if (!lowered)
      return both;
    auto outputs = graph::runLowered(*lowered, *file, model.inputs);
    EXPECT_TRUE(outputs.isOk()) << outputs.status().message();
    for (const OnnxTensor &output : *outputs) {
      Floats values = testing::valuesOf<float>(output);
      Floats &to = raises ? both.raised : both.apart;
      to.insert(to.end(), values.begin(), values.end());
    }
  }
  return both;
}

inline void expectSame(const Both &both) {
  ASSERT_EQ(both.apart.size(), both.raised.size());
  ASSERT_FALSE(both.apart.empty());
  for (std::size_t i = 0; i < both.apart.size(); ++i)
    EXPECT_NEAR(both.apart[i], both.raised[i],
                2e-5f * std::max(1.0f, std::abs(both.apart[i])))
        << i;
}

} // namespace ingot::raising
