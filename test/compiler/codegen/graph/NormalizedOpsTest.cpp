// Operators whose meaning differs by version or by how an input is given: each
// is run in every form, against the values that the standard says.
#include "test/compiler/codegen/graph/OnnxModel.h"

#include "gmock/gmock.h"

namespace ingot {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::OnnxModel;
using testing::tensor;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// B38: before opset 13 the tensor is flattened at axis, which is 1 by default.
TEST(NormalizedOps, SoftmaxByOpset) {
  struct Case {
    std::int64_t opset;
    std::optional<std::int64_t> axis;
    float share;
  };
  for (Case c : {Case{11, std::nullopt, 1.0f / 12}, Case{11, 1, 1.0f / 12},
                 Case{11, 0, 1.0f / 24}, Case{11, -1, 0.25f},
                 Case{12, 2, 0.25f}, Case{13, std::nullopt, 0.25f},
                 Case{13, 1, 1.0f / 3}, Case{13, 0, 0.5f}}) {
    for (const char *op : {"Softmax", "LogSoftmax", "Hardmax"}) {
      OnnxModel model(c.opset);
      model.input("x", tensor<float>({2, 3, 4}, Floats(24, 0.0f)));
      auto *node = model.node(op, {"x"}, {"y"});
      if (c.axis)
        OnnxModel::set(node, "axis", *c.axis);
      model.output("y");
      Floats values = model.values<float>();
      ASSERT_EQ(values.size(), 24u);
      if (std::string(op) == "Softmax") {
        EXPECT_THAT(values, Each(FloatNear(c.share, 1e-6f)));
      } else if (std::string(op) == "LogSoftmax") {
        EXPECT_THAT(values, Each(FloatNear(std::log(c.share), 1e-5f)));
      } else {
        // One 1 for each line.
        float sum = 0;
        for (float value : values)
          sum += value;
        EXPECT_FLOAT_EQ(sum, 24 * c.share);
      }
    }
  }
}

Floats sliced(const Floats &data, Ints dims, Ints starts, Ints ends, Ints axes,
              Ints steps) {
  OnnxModel model(13);
  const std::int64_t n = starts.size();
  model.input("x", tensor<float>(dims, data));
  model.initializer("starts", tensor<std::int64_t>({n}, starts));
  model.initializer("ends", tensor<std::int64_t>({n}, ends));
  model.initializer("axes", tensor<std::int64_t>({n}, axes));
  model.initializer("steps", tensor<std::int64_t>({n}, steps));
  model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  model.output("y");
  return model.values<float>();
}

// X17: a negative step stops before its end, which counts from the end too.
TEST(NormalizedOps, SliceWithNegativeSteps) {
  Floats ten{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(sliced(ten, {10}, {9}, {0}, {0}, {-1}),
            (Floats{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(sliced(ten, {10}, {9}, {2}, {0}, {-1}),
            (Floats{9, 8, 7, 6, 5, 4, 3}));
  EXPECT_EQ(sliced(ten, {10}, {9}, {0}, {0}, {-3}), (Floats{9, 6, 3}));
  EXPECT_EQ(sliced(ten, {10}, {-1}, {INT64_MIN}, {0}, {-4}), (Floats{9, 5, 1}));
  EXPECT_EQ(sliced(ten, {10}, {100}, {-100}, {-1}, {-5}), (Floats{9, 4}));
  EXPECT_EQ(sliced(ten, {10}, {3}, {INT64_MAX}, {0}, {3}), (Floats{3, 6, 9}));
  EXPECT_EQ(sliced(ten, {10}, {5}, {5}, {0}, {1}), Floats());
  Floats rows{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
  EXPECT_EQ(sliced(rows, {3, 4}, {2}, {0}, {0}, {-1}),
            (Floats{20, 21, 22, 23, 10, 11, 12, 13}));
}

// X18: axes from the end, in an attribute, an input, an empty or absent input.
TEST(NormalizedOps, ReduceAxes) {
  Floats data{1, 2, 3, 4, 5, 6, 7, 8};
  for (auto [op, expected] : {std::pair("ReduceMax", Floats{6, 8}),
                              std::pair("ReduceMin", Floats{1, 3})})
    for (std::int64_t opset : {11, 13, 18}) {
      OnnxModel model(opset);
      model.input("x", tensor<float>({2, 2, 2}, data));
      onnxproto::NodeProto *node = nullptr;
      if (opset >= 18) {
        model.initializer("axes", tensor<std::int64_t>({2}, Ints{0, -1}));
        node = model.node(op, {"x", "axes"}, {"y"});
      } else {
        node = model.node(op, {"x"}, {"y"});
        OnnxModel::set(node, "axes", Ints{0, -1});
      }
      OnnxModel::set(node, "keepdims", 0);
      model.output("y");
      EXPECT_EQ(model.values<float>(), expected) << op << " " << opset;
    }
}

TEST(NormalizedOps, ReduceSumWithEmptyAxes) {
  Floats data{1, 2, 3, 4};
  // The axes: an input of no elements, or no input, or one without a name.
  for (int form = 0; form < 3; ++form)
    for (std::int64_t noop : {0, 1}) {
      OnnxModel model(13);
      model.input("x", tensor<float>({2, 2}, data));
      std::vector<std::string> inputs{"x"};
      if (form == 0) {
        model.initializer("axes", tensor<std::int64_t>({0}, Ints{}));
        inputs.push_back("axes");
      } else if (form == 1) {
        inputs.push_back("");
      }
      auto *node = model.node("ReduceSum", inputs, {"y"});
      OnnxModel::set(node, "noop_with_empty_axes", noop);
      model.output("y");
      EXPECT_EQ(model.values<float>(), noop ? data : Floats{10}) << form;
    }
  // The elementwise part stays where nothing is reduced.
  OnnxModel model(18);
  model.input("x", tensor<float>({3}, Floats{1, -2, 3}));
  auto *node = model.node("ReduceSumSquare", {"x"}, {"y"});
  OnnxModel::set(node, "noop_with_empty_axes", 1);
  model.output("y");
  EXPECT_THAT(model.values<float>(), ElementsAre(1, 4, 9));
}

TEST(NormalizedOps, AxesOfSqueezeAndUnsqueezeByOpset) {
  for (std::int64_t opset : {11, 13}) {
    OnnxModel model(opset);
    model.input("x", tensor<float>({2}, Floats{1, 2}));
    if (opset >= 13) {
      model.initializer("axes", tensor<std::int64_t>({2}, Ints{0, -1}));
      model.node("Unsqueeze", {"x", "axes"}, {"y"});
    } else {
      OnnxModel::set(model.node("Unsqueeze", {"x"}, {"y"}), "axes",
                     Ints{0, -1});
    }
    model.output("y");
    auto outputs = model.run();
    ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].dims, (Ints{1, 2, 1}));
  }
}

TEST(NormalizedOps, WhatIsNotKnownIsNamed) {
  OnnxModel model(13);
  model.input("x", tensor<float>({1}, Floats{1}));
  auto *node = model.node("Softmax", {"x"}, {"y"});
  node->set_name("soft");
  OnnxModel::set(node, "axes", 1);
  model.output("y");
  EXPECT_EQ(model.problem(), "m.onnx: node \"soft\" (Softmax, ai.onnx opset "
                             "13): attribute \"axes\" is not known");
  OnnxModel newer(27);
  newer.input("x", tensor<float>({1}, Floats{1}));
  newer.node("Relu", {"x"}, {"y"});
  newer.output("y");
  EXPECT_EQ(newer.problem(), "m.onnx: node 0 (Relu, ai.onnx opset 27): the "
                             "opsets that are read are 11 to 26");
  OnnxModel unknown(13);
  unknown.input("x", tensor<float>({1}, Floats{1}));
  unknown.node("com.example.Thing", {"x"}, {"y"});
  unknown.addOpset("com.example", 3);
  unknown.output("y");
  EXPECT_EQ(unknown.problem(), "m.onnx: node 0 (Thing, com.example opset 3): "
                               "this operator is not supported");
  OnnxModel lost(13);
  lost.node("Relu", {"nowhere"}, {"y"});
  lost.output("y");
  EXPECT_THAT(lost.problem(), HasSubstr("input \"nowhere\" is neither"));
}

// X24: the square of 300 does not fit a half; statistics are float32.
TEST(NormalizedOps, NormsOfHalvesDoNotOverflow) {
  const std::uint16_t threeHundred = 0x5cb0, one = 0x3c00;
  for (const char *op :
       {"RMSNormalization", "com.microsoft.SkipSimplifiedLayerNormalization"}) {
    OnnxModel model(23);
    model.input(
        "x", tensor<std::uint16_t>(
                 {1, 1, 2048}, std::vector<std::uint16_t>(2048, threeHundred)));
    model.initializer(
        "scale",
        tensor<std::uint16_t>({2048}, std::vector<std::uint16_t>(2048, one)));
    if (std::string(op) == "RMSNormalization") {
      model.node(op, {"x", "scale"}, {"y"});
    } else {
      model.initializer(
          "zero", tensor<std::uint16_t>({1, 1, 2048},
                                        std::vector<std::uint16_t>(2048, 0)));
      model.node(op, {"x", "zero", "scale"}, {"y"});
    }
    model.output("y");
    EXPECT_THAT(model.values<std::uint16_t>(), Each(one)) << op;
  }
}

// X22: the sum is output 3, and gamma is one vector.
TEST(NormalizedOps, SkipNormGivesItsSum) {
  OnnxModel model(17);
  model.input("x", tensor<float>({1, 2}, Floats{1, 2}));
  model.input("skip", tensor<float>({1, 2}, Floats{2, 2}));
  model.initializer("gamma", tensor<float>({2}, Floats{1, 1}));
  model.node("com.microsoft.SkipSimplifiedLayerNormalization",
             {"x", "skip", "gamma"}, {"y", "", "", "sum"});
  model.output("sum");
  model.output("y");
  auto outputs = model.run();
  ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
  EXPECT_EQ(testing::valuesOf<float>((*outputs)[0]), (Floats{3, 4}));
  const float root = std::sqrt(12.5f);
  EXPECT_THAT(
      testing::valuesOf<float>((*outputs)[1]),
      ElementsAre(FloatNear(3 / root, 1e-5f), FloatNear(4 / root, 1e-5f)));

  OnnxModel wide(17);
  wide.input("x", tensor<float>({1, 1, 2}, Floats{1, 2}));
  wide.initializer("gamma", tensor<float>({1, 1, 2}, Floats{1, 1}));
  wide.node("com.microsoft.SkipSimplifiedLayerNormalization",
            {"x", "x", "gamma"}, {"y"});
  wide.output("y");
  EXPECT_THAT(wide.problem(), HasSubstr("gamma is [1, 1, 2], expected [2]"));
}

// Large numbers close together: the mean of their squares less the square of
// their mean is not their variance in float32.
TEST(NormalizedOps, MeanVarianceOfNumbersFarFromZero) {
  OnnxModel model(13);
  model.input("x",
              tensor<float>({1, 1, 1, 4}, Floats{10000, 10001, 10002, 10003}));
  model.node("MeanVarianceNormalization", {"x"}, {"y"});
  model.output("y");
  const float unit = 1 / std::sqrt(1.25f);
  EXPECT_THAT(model.values<float>(),
              ElementsAre(FloatNear(-1.5f * unit, 1e-4f),
                          FloatNear(-0.5f * unit, 1e-4f),
                          FloatNear(0.5f * unit, 1e-4f),
                          FloatNear(1.5f * unit, 1e-4f)));
}

// As numpy sorts them, NaNs are the greatest; every place is written.
TEST(NormalizedOps, TopKOfNans) {
  const float nan = std::nanf("");
  for (bool largest : {true, false}) {
    OnnxModel model(24);
    model.input("x", tensor<float>({5}, Floats{1, nan, 3, nan, 2}));
    model.initializer("k", tensor<std::int64_t>({1}, Ints{5}));
    OnnxModel::set(model.node("TopK", {"x", "k"}, {"v", "i"}), "largest",
                   largest);
    model.output("i");
    EXPECT_EQ(model.values<std::int64_t>(),
              (largest ? Ints{1, 3, 2, 4, 0} : Ints{0, 4, 2, 1, 3}));
  }
}

// One scale, and more zero points than that.
TEST(NormalizedOps, ZeroPointsAreAsManyAsScales) {
  OnnxModel model(13);
  model.input("x", tensor<float>({4}, Floats{1, 2, 3, 4}));
  model.initializer("scale", tensor<float>({}, Floats{1}));
  model.initializer("zero", tensor<std::int8_t>({4}, {1, 2, 3, 4}));
  OnnxModel::set(model.node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}),
                 "axis", 7);
  model.output("y");
  EXPECT_THAT(model.problem(),
              HasSubstr("scales and zero points have different shapes"));
}

// A softmax in doubles tells apart what float32 cannot.
TEST(NormalizedOps, SoftmaxPrecisionOfAttention) {
  auto run = [](std::int64_t precision) {
    OnnxModel model(23);
    // Scores 0 and -20 (q k / 1): shares of 1 and exp(-20).
    model.input("q", tensor<float>({1, 1, 1, 1}, Floats{1}));
    model.input("k", tensor<float>({1, 1, 2, 1}, Floats{0, -20}));
    model.input("v", tensor<float>({1, 1, 2, 1}, Floats{1, -1}));
    auto *node = model.node("Attention", {"q", "k", "v"}, {"y"});
    OnnxModel::set(node, "softmax_precision", precision);
    model.output("y");
    return model;
  };
  for (std::int64_t precision : {1, 10, 11, 16})
    EXPECT_THAT(run(precision).values<float>(),
                ElementsAre(FloatNear(1, 1e-6f)));
  EXPECT_THAT(run(7).problem(), HasSubstr("softmax_precision 7"));
}

// An attribute of another type than it has is not taken for an absent one.
TEST(NormalizedOps, AttributesOfAnotherTypeAreRefused) {
  OnnxModel soft(11);
  soft.input("x", tensor<float>({2, 2}, Floats(4, 1.0f)));
  OnnxModel::set(soft.node("Softmax", {"x"}, {"y"}), "axis", 0.0f);
  soft.output("y");
  EXPECT_THAT(soft.problem(), HasSubstr("attribute \"axis\" is not supported, "
                                        "or not of its type"));
  OnnxModel sum(11);
  sum.input("x", tensor<float>({2, 2}, Floats(4, 1.0f)));
  OnnxModel::set(sum.node("ReduceSum", {"x"}, {"y"}), "axes", 0);
  sum.output("y");
  EXPECT_THAT(sum.problem(), HasSubstr("attribute \"axes\" is not known"));
  OnnxModel norm(15);
  norm.input("x", tensor<float>({1, 1}, Floats{1}));
  norm.initializer("one", tensor<float>({1}, Floats{1}));
  OnnxModel::set(
      norm.node("BatchNormalization", {"x", "one", "one", "one", "one"}, {"y"}),
      "training_mode", 1.0f);
  norm.output("y");
  EXPECT_THAT(norm.problem(),
              HasSubstr("attribute \"training_mode\" is not known"));
}

// Segment ids choose rows of their table: one without the other says nothing.
TEST(NormalizedOps, EmbedLayerNormalizationTakesSegmentsAndTheirTable) {
  auto problem = [](const char *segments, const char *table) {
    OnnxModel model(17);
    model.input("ids", tensor<std::int32_t>({1, 2}, {0, 1}));
    model.input("segments", tensor<std::int32_t>({1, 2}, {0, 0}));
    for (const char *name : {"words", "places", "kinds"})
      model.initializer(name, tensor<float>({2, 2}, Floats(4, 1.0f)));
    model.initializer("gamma", tensor<float>({2}, Floats(2, 1.0f)));
    model.initializer("positions", tensor<std::int32_t>({1, 2}, {0, 1}));
    model.node("com.microsoft.EmbedLayerNormalization",
               {"ids", segments, "words", "places", table, "gamma", "gamma", "",
                "positions"},
               {"y"});
    model.output("y");
    auto outputs = model.run();
    return outputs.isOk() ? std::string() : outputs.status().message();
  };
  EXPECT_EQ(problem("segments", "kinds"), "");
  EXPECT_EQ(problem("", ""), "");
  for (auto [segments, table] :
       {std::pair("segments", ""), std::pair("", "kinds")})
    EXPECT_THAT(problem(segments, table),
                HasSubstr("segment ids and their table are expected together"));
}

// Exporters make a shape of int32 and cast it: -1 is what is left there too.
TEST(NormalizedOps, ShapesThatWereCast) {
  for (const char *op : {"Cast", "CastLike"}) {
    OnnxModel model(19);
    model.input("x", tensor<float>({2, 3}, Floats{1, 2, 3, 4, 5, 6}));
    model.initializer("small", tensor<std::int32_t>({2}, {-1, 2}));
    model.initializer("wide", tensor<std::int64_t>({1}, Ints{0}));
    if (std::string(op) == "Cast")
      OnnxModel::set(model.node(op, {"small"}, {"shape"}), "to",
                     static_cast<int>(OnnxType::Int64));
    else
      model.node(op, {"small", "wide"}, {"shape"});
    model.node("Reshape", {"x", "shape"}, {"y"});
    model.output("y");
    auto outputs = model.run();
    ASSERT_TRUE(outputs.isOk()) << op << ": " << outputs.status().message();
    EXPECT_EQ((*outputs)[0].dims, (Ints{3, 2}));
  }
}

// A negative pad takes elements away before what is left is repeated.
TEST(NormalizedOps, PadsThatTakeAwayAndRepeat) {
  const std::pair<const char *, Floats> cases[] = {
      {"constant", {2, 3, 4, 0, 0}},
      {"edge", {2, 3, 4, 4, 4}},
      {"reflect", {2, 3, 4, 3, 2}},
      {"wrap", {2, 3, 4, 2, 3}}};
  for (const auto &[mode, expected] : cases) {
    OnnxModel model(19);
    model.input("x", tensor<float>({4}, Floats{1, 2, 3, 4}));
    model.initializer("pads", tensor<std::int64_t>({2}, Ints{-1, 2}));
    auto *attr = model.node("Pad", {"x", "pads"}, {"y"})->add_attribute();
    attr->set_name("mode");
    attr->set_type(onnxproto::AttributeProto::STRING);
    attr->set_s(mode);
    model.output("y");
    EXPECT_EQ(model.values<float>(), expected) << mode;
  }
}

} // namespace
} // namespace ingot
