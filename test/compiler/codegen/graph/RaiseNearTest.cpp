// What is one number or one place away from a pattern of the raise phase stays as
// it is, or becomes what has its values.
#include "test/compiler/codegen/graph/RaisedGraph.h"

#include <cmath>

namespace ingot {
namespace {

using namespace raising;
using ::testing::Contains;
using ::testing::Not;

// Not raised to any of `never`, and with the values that it had.
void expectLeft(const std::string &name, const OnnxModel &model,
                const std::vector<std::string> &never) {
  SCOPED_TRACE(name);
  Both both = runBoth(model);
  expectSame(both);
  for (const std::string &op : never)
    EXPECT_THAT(both.operators, Not(Contains(op)));
}

std::string addNumber(OnnxModel &model, const std::string &name, float value) {
  model.initializer(name, tensor<float>({}, Floats{value}));
  return name;
}
std::string addInts(OnnxModel &model, const std::string &name, Ints values) {
  model.initializer(
      name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
  return name;
}

struct NearNorm {
  std::string name;
  std::vector<std::string> never;
  std::int64_t keepdims = 1;
  float numerator = 1;      // of the inverse root
  std::string squared = ""; // instead of what is divided
  std::string mean = "";    // "x" or "z": that whose mean is taken off
  bool bias = false;
};

TEST(Raise, NearNorms) {
  const std::vector<std::string> both{"RMSNormalization", "LayerNormalization"},
      layer{"LayerNormalization"};
  for (const NearNorm &form :
       {NearNorm{.name = "means that broadcast along rows",
                 .never = both,
                 .keepdims = 0},
        NearNorm{
            .name = "twice the inverse root", .never = both, .numerator = 2},
        NearNorm{.name = "squares of another", .never = both, .squared = "z"},
        NearNorm{.name = "centred by another", .never = layer, .mean = "z"},
        NearNorm{.name = "centred by another, with a bias",
                 .never = layer,
                 .mean = "z",
                 .bias = true},
        NearNorm{.name = "squares of what was not centred",
                 .never = both,
                 .squared = "x",
                 .mean = "x",
                 .bias = true}}) {
    OnnxModel model(17);
    model.input("x", tensor<float>({1, 4, 4}, randomFloats(16, 1)));
    model.input("z", tensor<float>({1, 4, 4}, randomFloats(16, 2)));
    model.initializer("w", tensor<float>({4}, randomFloats(4, 3)));
    model.initializer("b", tensor<float>({4}, randomFloats(4, 4)));
    std::string x = "x";
    if (!form.mean.empty()) {
      OnnxModel::set(model.node("ReduceMean", {form.mean}, {"mean"}), "axes",
                     Ints{-1});
      model.node("Sub", {"x", "mean"}, {"centred"});
      x = "centred";
    }
    model.node(
        "Pow",
        {form.squared.empty() ? x : form.squared, addNumber(model, "two", 2)},
        {"squares"});
    auto *mean = model.node("ReduceMean", {"squares"}, {"variance"});
    OnnxModel::set(mean, "axes", Ints{-1});
    OnnxModel::set(mean, "keepdims", form.keepdims);
    model.node("Add", {"variance", addNumber(model, "eps", 1e-5f)}, {"sum"});
    model.node("Sqrt", {"sum"}, {"root"});
    model.node("Div", {addNumber(model, "one", form.numerator), "root"},
               {"inverse"});
    model.node("Mul", {x, "inverse"}, {"normal"});
    model.node("Mul", {"normal", "w"}, {"y"});
    if (form.bias)
      model.node("Add", {"y", "b"}, {"yb"});
    model.output(form.bias ? "yb" : "y");
    expectLeft(form.name, model, form.never);
  }
}

// x half (plus + tanh(outer (x + cubic x^power))), and by erf where there is no cube.
struct NearGelu {
  std::string name;
  float half = 0.5f, plus = 1, outer = 0.7978845608f, cubic = 0.044715f,
        power = 3;
  bool raises = false;
};

TEST(Raise, NearGelus) {
  for (const NearGelu &form :
       {NearGelu{.name = "gelu", .raises = true},
        NearGelu{.name = "a quarter", .half = 0.25f},
        NearGelu{.name = "two and the tangent", .plus = 2},
        NearGelu{.name = "another slope", .outer = 0.75f},
        NearGelu{.name = "another cubic part", .cubic = 0.05f},
        NearGelu{.name = "a square", .power = 2},
        NearGelu{.name = "by erf", .cubic = 0, .raises = true},
        NearGelu{.name = "a quarter by erf", .half = 0.25f, .cubic = 0}}) {
    SCOPED_TRACE(form.name);
    OnnxModel model(17);
    model.input("x", tensor<float>({2, 8}, randomFloats(16, 1)));
    if (form.cubic != 0) {
      model.node("Pow", {"x", addNumber(model, "power", form.power)}, {"t0"});
      model.node("Mul", {"t0", addNumber(model, "cubic", form.cubic)}, {"t1"});
      model.node("Add", {"x", "t1"}, {"t2"});
      model.node("Mul", {"t2", addNumber(model, "outer", form.outer)}, {"t3"});
      model.node("Tanh", {"t3"}, {"t4"});
    } else {
      model.node("Div", {"x", addNumber(model, "root", std::sqrt(2.0f))},
                 {"t3"});
      model.node("Erf", {"t3"}, {"t4"});
    }
    model.node("Add", {"t4", addNumber(model, "plus", form.plus)}, {"t5"});
    model.node("Mul", {"x", "t5"}, {"t6"});
    model.node("Mul", {"t6", addNumber(model, "half", form.half)}, {"y"});
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    EXPECT_EQ(std::count(both.operators.begin(), both.operators.end(), "Gelu"),
              form.raises ? 1 : 0);
  }
}

// The operator on the first columns, and the rest joined to it: raised to the
// operator on some columns, which turns them as it did.
TEST(Raise, OperatorOnSomeColumns) {
  for (bool interleaved : {false, true})
    for (std::int64_t dim : {0, 4}) { // of 8; 0: all
      SCOPED_TRACE(std::to_string(interleaved) + " " + std::to_string(dim));
      const std::int64_t half = dim ? dim / 2 : 4;
      OnnxModel model(23);
      model.input("x", tensor<float>({1, 2, 3, 12}, randomFloats(72, 1)));
      for (const char *table : {"cos", "sin"})
        model.input(
            table,
            tensor<float>({1, 3, half}, randomFloats(std::size_t(3 * half),
                                                     table[0] == 'c' ? 2 : 3)));
      addInts(model, "last", {3});
      addInts(model, "cut", {8});
      model.node("Slice", {"x", addInts(model, "zero", {0}), "cut", "last"},
                 {"part"});
      model.node("Slice", {"x", "cut", addInts(model, "end", {12}), "last"},
                 {"rest"});
      auto *rotary =
          model.node("RotaryEmbedding", {"part", "cos", "sin"}, {"r"});
      OnnxModel::set(rotary, "interleaved", int(interleaved));
      OnnxModel::set(rotary, "rotary_embedding_dim", dim);
      OnnxModel::set(model.node("Concat", {"r", "rest"}, {"y"}), "axis", -1);
      model.output("y");
      Both both = runBoth(model);
      expectSame(both);
      EXPECT_EQ(
          std::count(both.operators.begin(), both.operators.end(), "Concat"),
          dim == 0 ? 0 : 1);
    }
}

// What stands in the place of rows of NaN, and where keys are joined.
struct NearAttention {
  std::string name;
  float replaced = 0;           // what a row of NaN becomes
  std::string tested = "p";     // that is asked for NaN
  std::int64_t joinedAlong = 2; // where a past stands: 1 are the heads
  bool fuses = false;
};

TEST(Raise, NearAttentions) {
  for (const NearAttention &form :
       {NearAttention{.name = "rows of NaN become zero", .fuses = true},
        NearAttention{.name = "rows of NaN become one", .replaced = 1},
        NearAttention{.name = "where another is NaN", .tested = "other"},
        NearAttention{
            .name = "heads are joined", .joinedAlong = 1, .fuses = true}}) {
    SCOPED_TRACE(form.name);
    const bool byHeads = form.joinedAlong == 1;
    const std::int64_t heads = byHeads ? 4 : 2, keys = byHeads ? 3 : 6;
    OnnxModel model(17);
    model.input("q", tensor<float>({1, heads, 3, 8},
                                   randomFloats(std::size_t(heads) * 24, 1)));
    for (const char *name : {"k", "v", "pk", "pv"})
      model.input(name, tensor<float>({1, 2, 3, 8},
                                      randomFloats(48, unsigned(name[0]) +
                                                           unsigned(name[1]))));
    // Some are NaN, in the place of no probability of the attention.
    Floats others(std::size_t(heads * 3 * keys), 0.0f);
    others[1] = std::nanf("");
    model.input("other", tensor<float>({1, heads, 3, keys}, others));
    for (const char *name : {"k", "v"})
      OnnxModel::set(model.node("Concat", {std::string("p") + name, name},
                                {std::string(name) + "j"}),
                     "axis", form.joinedAlong);
    OnnxModel::set(model.node("Transpose", {"kj"}, {"kt"}), "perm",
                   Ints{0, 1, 3, 2});
    model.node("MatMul", {"q", "kt"}, {"s"});
    OnnxModel::set(model.node("Softmax", {"s"}, {"p"}), "axis", -1);
    model.node("IsNaN", {form.tested}, {"isnan"});
    model.node("Where",
               {"isnan", addNumber(model, "replaced", form.replaced), "p"},
               {"guarded"});
    model.node("MatMul", {"guarded", "vj"}, {"y"});
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    EXPECT_EQ(
        std::count(both.operators.begin(), both.operators.end(), "Attention"),
        form.fuses ? 1 : 0);
  }
}

} // namespace
} // namespace ingot
