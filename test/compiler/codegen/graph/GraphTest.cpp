// Whole graphs: subgraphs and initializers, quantised products, attention's
// masks, and what a graph may be run with.
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

// X23: y = condition ? squeeze(x) : x + w. The axes belong to the branch, w to
// the graph around it.
OnnxModel withIf(bool isConstant, bool condition) {
  OnnxModel model(13);
  model.input("x", tensor<float>({1, 2}, Floats{1, 2}));
  if (isConstant)
    model.initializer("c", tensor<bool>({}, {condition}));
  else
    model.input("c", tensor<bool>({}, {condition}));
  model.initializer("w", tensor<float>({1, 2}, Floats{10, 20}));
  auto *node = model.node("If", {"c"}, {"y"});
  auto *then = OnnxModel::branch(node, "then_branch");
  model.initializer("axes", tensor<std::int64_t>({1}, Ints{0}), then);
  model.node("Squeeze", {"x", "axes"}, {"squeezed"}, then);
  model.node("Unsqueeze", {"squeezed", "axes"}, {"a"}, then);
  model.output("a", then);
  auto *other = OnnxModel::branch(node, "else_branch");
  // A name of its own branch, the same as one of the other.
  model.initializer("axes", tensor<std::int64_t>({1}, Ints{1}), other);
  model.node("Add", {"x", "w"}, {"a"}, other);
  model.output("a", other);
  model.node("Mul", {"y", "w"}, {"z"});
  model.output("z");
  return model;
}

TEST(Graph, BranchesSeeTheirOwnAndOuterInitializers) {
  for (bool isConstant : {false, true}) {
    EXPECT_EQ(withIf(isConstant, true).values<float>(), (Floats{10, 40}));
    EXPECT_EQ(withIf(isConstant, false).values<float>(), (Floats{110, 440}));
  }
}

// An initializer that is an input is a default: what is given wins, and nothing
// is folded by its value.
TEST(Graph, InitializerThatIsAnInputIsADefault) {
  auto make = [](bool given) {
    OnnxModel model(13);
    model.input("x", tensor<float>({2}, Floats{1, 2}));
    model.defaultInput("c", tensor<bool>({}, {true}));
    if (given)
      model.inputs[1] = tensor<bool>({}, {false});
    auto *node = model.node("If", {"c"}, {"y"});
    auto *then = OnnxModel::branch(node, "then_branch");
    model.node("Neg", {"x"}, {"a"}, then);
    model.output("a", then);
    auto *other = OnnxModel::branch(node, "else_branch");
    model.node("Abs", {"x"}, {"b"}, other);
    model.output("b", other);
    model.output("y");
    return model.values<float>();
  };
  EXPECT_EQ(make(false), (Floats{-1, -2}));
  EXPECT_EQ(make(true), (Floats{1, 2}));
}

// X15: a block of 512 columns, every code 2, every zero point 3.
TEST(Graph, MatMulNBitsWithLargeBlocks) {
  const std::int64_t k = 2048, n = 4, blocks = 4;
  OnnxModel model(17);
  model.input("a", tensor<float>({1, k}, Floats(k, 1.0f)));
  model.initializer(
      "b", tensor<std::uint8_t>({n, blocks, 256}, std::vector<std::uint8_t>(
                                                      n * blocks * 256, 0x22)));
  model.initializer("scales",
                    tensor<float>({n, blocks}, Floats(n * blocks, 0.5f)));
  model.initializer(
      "zeros",
      tensor<std::uint8_t>({n, 2}, std::vector<std::uint8_t>(n * 2, 0x33)));
  auto *node = model.node("com.microsoft.MatMulNBits",
                          {"a", "b", "scales", "zeros"}, {"y"});
  OnnxModel::set(node, "K", k);
  OnnxModel::set(node, "N", n);
  OnnxModel::set(node, "bits", 4);
  OnnxModel::set(node, "block_size", 512);
  model.output("y");
  EXPECT_THAT(model.values<float>(), Each(-0.5f * 2048));

  OnnxModel::set(node, "block_size", 512);
  EXPECT_THAT(model.problem(), HasSubstr("\"block_size\" is given twice"));
}

TEST(Graph, MatMulNBitsOfSizesThatDoNotExist) {
  auto problem = [](std::int64_t bits, std::int64_t block) {
    OnnxModel model(17);
    model.input("a", tensor<float>({1, 32}, Floats(32, 1.0f)));
    model.initializer(
        "b",
        tensor<std::uint8_t>({1, 1, 16}, std::vector<std::uint8_t>(16, 0x22)));
    model.initializer("scales", tensor<float>({1, 1}, Floats{1}));
    auto *node =
        model.node("com.microsoft.MatMulNBits", {"a", "b", "scales"}, {"y"});
    OnnxModel::set(node, "K", 32);
    OnnxModel::set(node, "N", 1);
    OnnxModel::set(node, "bits", bits);
    OnnxModel::set(node, "block_size", block);
    model.output("y");
    return model.problem();
  };
  EXPECT_EQ(problem(4, 32), "no problem");
  EXPECT_THAT(problem(3, 32), HasSubstr("codes of 3 bits, expected 4 or 8"));
  EXPECT_THAT(problem(4, 24), HasSubstr("blocks of 24 columns"));
  EXPECT_THAT(problem(4, 64), HasSubstr("B has 16 bytes, expected 32"));
}

// DequantizeLinear along axis 0 by blocks, then a product.
TEST(Graph, BlockedDequantizeLinearAlongAxisZero) {
  OnnxModel model(21);
  model.input("a", tensor<float>({1, 4}, Floats(4, 1.0f)));
  model.initializer("b", tensor<std::int8_t>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  model.initializer("s", tensor<float>({2, 2}, Floats{1, 10, 100, 1000}));
  auto *node = model.node("DequantizeLinear", {"b", "s"}, {"w"});
  OnnxModel::set(node, "axis", 0);
  OnnxModel::set(node, "block_size", 2);
  model.node("MatMul", {"a", "w"}, {"y"});
  model.output("y");
  EXPECT_THAT(model.values<float>(), ElementsAre(4 + 1200, 60 + 14000));
}

// X19: without a past the triangle starts at the first key; a past, or the
// number of keys that are there, moves it.
TEST(Graph, CausalAttentionByWhatIsPast) {
  auto attention = [](std::int64_t opset, bool past, std::int64_t nonpad) {
    OnnxModel model(opset);
    Floats values{1, 2, 3, 4};
    model.input("q", tensor<float>({1, 1, 1, 1}, Floats{0}));
    std::vector<std::string> inputs{"q", "k", "v"};
    if (past) {
      model.input("k", tensor<float>({1, 1, 1, 1}, Floats{0}));
      model.input("v", tensor<float>({1, 1, 1, 1}, Floats{4}));
      model.input("pk", tensor<float>({1, 1, 3, 1}, Floats(3, 0.0f)));
      model.input("pv", tensor<float>({1, 1, 3, 1}, Floats{1, 2, 3}));
      inputs.insert(inputs.end(), {"", "pk", "pv"});
    } else {
      model.input("k", tensor<float>({1, 1, 4, 1}, Floats(4, 0.0f)));
      model.input("v", tensor<float>({1, 1, 4, 1}, values));
    }
    if (nonpad >= 0) {
      model.input("n", tensor<std::int64_t>({1}, Ints{nonpad}));
      inputs.insert(inputs.end(), {"", "", "", "n"});
    }
    auto *node = model.node("Attention", inputs, {"y"});
    OnnxModel::set(node, "is_causal", 1);
    model.output("y");
    return model.values<float>();
  };
  for (std::int64_t opset : {23, 24, 25}) {
    EXPECT_EQ(attention(opset, false, -1), Floats{1});   // key 0 alone
    EXPECT_EQ(attention(opset, true, -1), Floats{2.5f}); // all four
  }
  for (std::int64_t opset : {24, 25}) {
    EXPECT_EQ(attention(opset, false, 4), Floats{2.5f});
    EXPECT_EQ(attention(opset, false, 2), Floats{1.5f});
    EXPECT_EQ(attention(opset, false, 0), Floats{0});
  }
}

// X27: a query that sees nothing gives zeros, not a mean and not NaN.
TEST(Graph, FullyMaskedRow) {
  OnnxModel model(23);
  model.input("q", tensor<float>({1, 1, 2, 1}, Floats{1, 1}));
  model.input("k", tensor<float>({1, 1, 2, 1}, Floats{1, 2}));
  model.input("v", tensor<float>({1, 1, 2, 1}, Floats{3, 5}));
  model.input("m", tensor<bool>({2, 2}, {false, false, true, false}));
  model.node("Attention", {"q", "k", "v", "m"}, {"y"});
  model.output("y");
  EXPECT_EQ(model.values<float>(), (Floats{0, 3}));
}

// X20: shapes [B], [B, 1] and [1, 1] of seqlens_k; values out of range.
TEST(Graph, GroupQueryAttentionLengths) {
  auto make = [](std::vector<std::int64_t> dims, std::int32_t length,
                 bool present) {
    OnnxModel model(17);
    Floats values(16, 1.0f);
    model.input("q", tensor<float>({1, 1, 16}, values));
    model.input("k", tensor<float>({1, 1, 16}, values));
    model.input("v", tensor<float>({1, 1, 16}, Floats(16, 3.0f)));
    model.input("pk", tensor<float>({1, 1, 1, 16}, values));
    model.input("pv", tensor<float>({1, 1, 1, 16}, Floats(16, 1.0f)));
    model.input("s", tensor<std::int32_t>(dims, {length}));
    model.initializer("t", tensor<std::int32_t>({1}, {2}));
    std::vector<std::string> outputs{"y"};
    if (present)
      outputs.insert(outputs.end(), {"kk", "vv"});
    auto *node = model.node("com.microsoft.GroupQueryAttention",
                            {"q", "k", "v", "pk", "pv", "s", "t"}, outputs);
    OnnxModel::set(node, "num_heads", 1);
    OnnxModel::set(node, "kv_num_heads", 1);
    for (const std::string &name : outputs)
      model.output(name);
    return model;
  };
  for (bool present : {true, false})
    for (std::vector<std::int64_t> dims : {Ints{1}, Ints{1, 1}})
      EXPECT_THAT(make(dims, 1, present).values<float>(),
                  Each(FloatNear(2.0f, 1e-5f)));
  auto constant = [&](std::int32_t length) {
    OnnxModel model = make({1}, length, true);
    auto *inputs = model.proto.mutable_graph()->mutable_input();
    inputs->RemoveLast();
    model.inputs.pop_back();
    model.initializer("s", tensor<std::int32_t>({1}, {length}));
    return model.problem();
  };
  EXPECT_EQ(constant(1), "no problem");
  EXPECT_THAT(constant(-1), HasSubstr("seqlens_k -1 is not within"));
  EXPECT_THAT(constant(2), HasSubstr("seqlens_k 2 is not within"));
}

TEST(Graph, ShapesThatFollowFromInputValues) {
  OnnxModel model(13);
  model.input("x", tensor<float>({4}, Floats{1, 2, 3, 4}));
  model.input("shape", tensor<std::int64_t>({2}, Ints{2, -1}));
  model.node("Reshape", {"x", "shape"}, {"r"});
  model.node("Transpose", {"r"}, {"y"});
  model.output("y");
  EXPECT_THAT(model.values<float>(), ElementsAre(1, 3, 2, 4));
}

TEST(Graph, IndicesOutOfRangeReadNothingElse) {
  OnnxModel model(13);
  model.input("x", tensor<float>({2}, Floats{1, 2}));
  model.input("i", tensor<std::int64_t>({3}, Ints{-1, 1000000, -1000000}));
  model.node("Gather", {"x", "i"}, {"y"});
  model.output("y");
  EXPECT_THAT(model.values<float>(), ElementsAre(2, 2, 1));
}

TEST(Graph, WholeDivisionNeverTraps) {
  OnnxModel model(14);
  model.input("a", tensor<std::int32_t>({3}, {7, -7, INT32_MIN}));
  model.input("b", tensor<std::int32_t>({3}, {0, 2, -1}));
  model.node("Div", {"a", "b"}, {"y"});
  model.output("y");
  EXPECT_THAT(model.values<std::int32_t>(), ElementsAre(0, -3, INT32_MIN));
}

} // namespace
} // namespace ingot
