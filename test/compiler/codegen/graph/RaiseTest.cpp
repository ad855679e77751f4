// Raised equals taken apart, on random inputs: every pattern, with attributes
// perturbed so that a rewrite that ignored one would show; and what must not be
// raised is not.
#include "test/compiler/codegen/graph/RaisedGraph.h"

#include <map>

namespace ingot {
namespace {

using namespace raising;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct AttentionForm {
  std::string name;
  float scale = 0.3f;
  float softcap = 0;
  bool scalesBothSides = false; // the root of the scale on q and on k
  enum class Mask { None, Added, Chosen } mask = Mask::Added;
  bool repeats = true; // two heads of keys for four of queries
  bool past = true;
  bool extraUse = false; // the scores are an output too
  float wrongCap = 0;    // the inner number of the cap
  std::int64_t axis = -1;
  bool fuses = true;
};

OnnxModel attentionModel(const AttentionForm &form) {
  const std::int64_t heads = 4, kv = form.repeats ? 2 : 4, s = 3, p = 2, d = 8,
                     t = form.past ? s + p : s;
  OnnxModel model(17);
  auto input = [&](const std::string &name, Ints dims, unsigned seed) {
    std::int64_t count = 1;
    for (std::int64_t dim : dims)
      count *= dim;
    model.input(name, tensor<float>(dims, randomFloats(count, seed)));
  };
  auto number = [&](const std::string &name, float value) {
    model.initializer(name, tensor<float>({}, Floats{value}));
    return name;
  };
  input("q", {1, heads, s, d}, 1);
  input("k", {1, kv, s, d}, 2);
  input("v", {1, kv, s, d}, 3);
  std::string keys = "k", values = "v";
  if (form.past) {
    input("pk", {1, kv, p, d}, 4);
    input("pv", {1, kv, p, d}, 5);
    OnnxModel::set(model.node("Concat", {"pk", "k"}, {"kk"}), "axis", 2);
    OnnxModel::set(model.node("Concat", {"pv", "v"}, {"vv"}), "axis", 2);
    keys = "kk";
    values = "vv";
  }
  if (form.repeats) {
    model.initializer("two", tensor<std::int64_t>({1}, Ints{2}));
    model.initializer("wide", tensor<std::int64_t>({5}, Ints{1, kv, 2, t, d}));
    model.initializer("flat", tensor<std::int64_t>({4}, Ints{1, heads, t, d}));
    for (std::string *which : {&keys, &values}) {
      const std::string from = *which;
      model.node("Unsqueeze", {from, "two"}, {from + "u"});
      model.node("Expand", {from + "u", "wide"}, {from + "e"});
      model.node("Reshape", {from + "e", "flat"}, {from + "r"});
      *which = from + "r";
    }
  }
  OnnxModel::set(model.node("Transpose", {keys}, {"kt"}), "perm",
                 Ints{0, 1, 3, 2});
  std::string query = "q", transposed = "kt", scores = "s0";
  if (form.scalesBothSides) {
    number("root", std::sqrt(form.scale));
    model.node("Mul", {"q", "root"}, {"qs"});
    model.node("Mul", {"kt", "root"}, {"ks"});
    query = "qs";
    transposed = "ks";
  }
  model.node("MatMul", {query, transposed}, {"s0"});
  if (!form.scalesBothSides) {
    model.node("Div", {"s0", number("inverse", 1 / form.scale)}, {"s1"});
    scores = "s1";
  }
  if (form.softcap > 0) {
    number("cap", form.softcap);
    number("inner", form.wrongCap ? form.wrongCap : form.softcap);
    model.node("Div", {scores, "inner"}, {"c0"});
    model.node("Tanh", {"c0"}, {"c1"});
    model.node("Mul", {"c1", "cap"}, {"c2"});
    scores = "c2";
  }
  if (form.mask == AttentionForm::Mask::Added) {
    input("mask", {1, 1, s, t}, 6);
    model.node("Add", {scores, "mask"}, {"m0"});
    scores = "m0";
  } else if (form.mask == AttentionForm::Mask::Chosen) {
    std::vector<bool> sees(s * t, true);
    sees[1] = sees[t] = false;
    OnnxTensor mask;
    mask.type = OnnxType::Bool;
    mask.dims = {1, 1, s, t};
    mask.numElements = sees.size();
    mask.owned.assign(sees.begin(), sees.end());
    model.input("mask", mask);
    model.node("Where", {"mask", scores, number("low", -1e30f)}, {"m0"});
    scores = "m0";
  }
  OnnxModel::set(model.node("Softmax", {scores}, {"p"}), "axis", form.axis);
  model.node("MatMul", {"p", values}, {"y"});
  model.output("y");
  if (form.past) {
    model.output("kk");
    model.output("vv");
  }
  if (form.extraUse)
    model.output("s0");
  return model;
}

TEST(Raise, Attention) {
  using Mask = AttentionForm::Mask;
  std::vector<AttentionForm> forms(11);
  forms[0].name = "grouped heads, a past, an added mask";
  forms[1] = {.name = "odd scale", .scale = 0.77f};
  forms[2] = {.name = "soft cap of 2", .softcap = 2};
  forms[3] = {.name = "both sides scaled", .scalesBothSides = true};
  forms[4] = {.name = "no mask", .mask = Mask::None};
  forms[5] = {.name = "chosen mask", .mask = Mask::Chosen};
  forms[6] = {.name = "heads alike, no past", .repeats = false, .past = false};
  forms[7] = {.name = "scores used elsewhere", .extraUse = true};
  forms[8] = {.name = "two numbers in the cap",
              .softcap = 2,
              .wrongCap = 3,
              .fuses = false};
  forms[9] = {.name = "softmax along the queries", .axis = 2, .fuses = false};
  forms[10] = {.name = "soft cap, no mask, no past",
               .softcap = 2,
               .mask = Mask::None,
               .past = false};
  for (const AttentionForm &form : forms) {
    SCOPED_TRACE(form.name);
    Both both = runBoth(attentionModel(form));
    expectSame(both);
    if (form.fuses) {
      EXPECT_THAT(both.operators, Contains("Attention"));
      EXPECT_THAT(both.operators, Not(Contains("Softmax")));
    } else {
      EXPECT_THAT(both.operators, Not(Contains("Attention")));
      EXPECT_THAT(both.said, Contains(HasSubstr("fuse-attention: left alone")));
    }
  }
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

// How the halves of x and of the tables lie.
struct RotaryForm {
  std::string name;
  std::int64_t cut = 4;   // of 8 columns
  bool sameHalves = true; // of cosines and sines
  bool negatesFirst = false;
  bool fuses = true;
};

TEST(Raise, Rotary) {
  for (const RotaryForm &form :
       {RotaryForm{.name = "halves"},
        RotaryForm{.name = "another cut", .cut = 3, .fuses = false},
        RotaryForm{.name = "tables of two halves",
                   .sameHalves = false,
                   .fuses = false},
        RotaryForm{.name = "the other half negated",
                   .negatesFirst = true,
                   .fuses = false}}) {
    SCOPED_TRACE(form.name);
    OnnxModel model(17);
    model.input("x", tensor<float>({1, 2, 3, 8}, randomFloats(48, 1)));
    model.input("f", tensor<float>({1, 3, 4}, randomFloats(12, 2)));
    model.input("g", tensor<float>({1, 3, 4}, randomFloats(12, 3)));
    auto ints = [&](const std::string &name, Ints values) {
      model.initializer(
          name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
      return name;
    };
    ints("one", {1});
    ints("last", {3});
    OnnxModel::set(
        model.node("Concat", {"f", form.sameHalves ? "f" : "g"}, {"angles"}),
        "axis", -1);
    for (auto [op, to] : {std::pair("Cos", "c"), std::pair("Sin", "s")}) {
      model.node(op, {"angles"}, {std::string(to) + "0"});
      model.node("Unsqueeze", {std::string(to) + "0", "one"}, {to});
    }
    model.node("Slice",
               {"x", ints("zero", {0}), ints("cut", {form.cut}), "last"},
               {"first"});
    model.node("Slice", {"x", "cut", ints("end", {INT64_MAX}), "last"},
               {"second"});
    model.node("Neg", {form.negatesFirst ? "first" : "second"}, {"n"});
    OnnxModel::set(form.negatesFirst
                       ? model.node("Concat", {"second", "n"}, {"turned"})
                       : model.node("Concat", {"n", "first"}, {"turned"}),
                   "axis", -1);
    model.node("Mul", {"x", "c"}, {"a"});
    model.node("Mul", {"turned", "s"}, {"b"});
    model.node("Add", {"a", "b"}, {"y"});
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    if (form.fuses)
      EXPECT_THAT(both.operators, Contains("RotaryEmbedding"));
    else
      EXPECT_THAT(both.operators, Not(Contains("RotaryEmbedding")));
  }
}

// Tables of three dimensions stand against heads, not against the batch, even where
// there are as many of both.
TEST(Raise, RotaryTablesByHead) {
  for (std::int64_t rows : {1, 2}) {
    SCOPED_TRACE(rows);
    OnnxModel model(17);
    model.input("x", tensor<float>({2, 2, 3, 8}, randomFloats(96, 1)));
    model.input("f", tensor<float>({rows, 3, 4},
                                   randomFloats(std::size_t(rows) * 12, 2)));
    auto ints = [&](const std::string &name, Ints values) {
      model.initializer(
          name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
      return name;
    };
    ints("last", {3});
    OnnxModel::set(model.node("Concat", {"f", "f"}, {"angles"}), "axis", -1);
    model.node("Cos", {"angles"}, {"c"});
    model.node("Sin", {"angles"}, {"s"});
    model.node("Slice", {"x", ints("zero", {0}), ints("cut", {4}), "last"},
               {"first"});
    model.node("Slice", {"x", "cut", ints("end", {8}), "last"}, {"second"});
    model.node("Neg", {"second"}, {"n"});
    OnnxModel::set(model.node("Concat", {"n", "first"}, {"turned"}), "axis",
                   -1);
    model.node("Mul", {"x", "c"}, {"a"});
    model.node("Mul", {"turned", "s"}, {"b"});
    model.node("Add", {"a", "b"}, {"y"});
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    EXPECT_EQ(std::count(both.operators.begin(), both.operators.end(),
                         "RotaryEmbedding"),
              rows == 1 ? 1 : 0);
  }
}

// Pairs of neighbours: how x is cut, joined and what the tables hold.
struct PairsForm {
  std::string name;
  bool tablesOfHalves = false; // the same again, not each value twice
  bool negatesFirst = false;   // x0 and not x1
  bool joinsHalves = false;    // -x1, -x3, .., x0, x2, ..
  bool otherTable = false;     // neighbours of two tables
  bool evenFromOther = false;  // x0, x2, .. of another tensor
  bool fuses = true;
};

TEST(Raise, InterleavedRotary) {
  for (const PairsForm &form :
       {PairsForm{.name = "pairs"},
        PairsForm{
            .name = "tables of halves", .tablesOfHalves = true, .fuses = false},
        PairsForm{
            .name = "the other negated", .negatesFirst = true, .fuses = false},
        PairsForm{
            .name = "joined in halves", .joinsHalves = true, .fuses = false},
        PairsForm{.name = "two tables", .otherTable = true, .fuses = false},
        PairsForm{
            .name = "of two tensors", .evenFromOther = true, .fuses = false}}) {
    SCOPED_TRACE(form.name);
    OnnxModel model(17);
    model.input("x", tensor<float>({1, 2, 3, 8}, randomFloats(48, 1)));
    model.input("z", tensor<float>({1, 2, 3, 8}, randomFloats(48, 4)));
    model.input("f", tensor<float>({1, 3, 4}, randomFloats(12, 2)));
    model.input("g", tensor<float>({1, 3, 4}, randomFloats(12, 3)));
    auto ints = [&](const std::string &name, Ints values) {
      model.initializer(
          name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
      return name;
    };
    ints("one", {1});
    ints("last", {-1});
    ints("three", {3});
    ints("step", {2});
    const std::string other = form.otherTable ? "g" : "f";
    if (form.tablesOfHalves) {
      OnnxModel::set(model.node("Concat", {"f", other}, {"angles"}), "axis",
                     -1);
    } else {
      model.node("Unsqueeze", {"f", "last"}, {"f0"});
      model.node("Unsqueeze", {other, "last"}, {"f1"});
      OnnxModel::set(model.node("Concat", {"f0", "f1"}, {"f2"}), "axis", -1);
      model.node("Reshape", {"f2", ints("wide", {1, 3, 8})}, {"angles"});
    }
    for (auto [op, to] : {std::pair("Cos", "c"), std::pair("Sin", "s")}) {
      model.node(op, {"angles"}, {std::string(to) + "0"});
      model.node("Unsqueeze", {std::string(to) + "0", "one"}, {to});
    }
    model.node("Slice",
               {form.evenFromOther ? "z" : "x", ints("b0", {0}),
                ints("end", {INT64_MAX}), "three", "step"},
               {"even"});
    model.node("Slice", {"x", ints("b1", {1}), "end", "three", "step"},
               {"odd"});
    model.node("Neg", {form.negatesFirst ? "even" : "odd"}, {"n"});
    const std::string second = form.negatesFirst ? "odd" : "even";
    if (form.joinsHalves) {
      OnnxModel::set(model.node("Concat", {"n", second}, {"turned"}), "axis",
                     -1);
    } else {
      model.node("Unsqueeze", {"n", "last"}, {"n0"});
      model.node("Unsqueeze", {second, "last"}, {"n1"});
      OnnxModel::set(model.node("Concat", {"n0", "n1"}, {"n2"}), "axis", -1);
      model.node("Reshape", {"n2", ints("flat", {1, 2, 3, 8})}, {"turned"});
    }
    model.node("Mul", {"x", "c"}, {"a"});
    model.node("Mul", {"turned", "s"}, {"b"});
    model.node("Add", {"a", "b"}, {"y"});
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    if (form.fuses)
      EXPECT_THAT(both.operators, Contains("RotaryEmbedding"));
    else
      EXPECT_THAT(both.operators, Not(Contains("RotaryEmbedding")));
    if (form.tablesOfHalves || form.otherTable)
      EXPECT_THAT(both.said, Contains(HasSubstr("neighbours in its tables")));
  }
}

// Some columns of a head turn, the others are joined to them again.
struct PartialForm {
  std::string name;
  std::string rest = "x"; // that the others come from
  std::int64_t from = 8;  // of 12 columns
  bool restFirst = false;
  bool fuses = true;
};

TEST(Raise, PartialRotary) {
  for (const PartialForm &form :
       {PartialForm{.name = "the rest of the heads"},
        PartialForm{
            .name = "the rest of other heads", .rest = "z", .fuses = false},
        PartialForm{.name = "other columns", .from = 4, .fuses = false},
        PartialForm{
            .name = "the rest first", .restFirst = true, .fuses = false}}) {
    SCOPED_TRACE(form.name);
    OnnxModel model(17);
    model.input("x", tensor<float>({1, 2, 3, 12}, randomFloats(72, 1)));
    model.input("z", tensor<float>({1, 2, 3, 12}, randomFloats(72, 2)));
    model.input("f", tensor<float>({1, 3, 4}, randomFloats(12, 3)));
    auto ints = [&](const std::string &name, Ints values) {
      model.initializer(
          name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
      return name;
    };
    auto slice = [&](const std::string &of, std::int64_t begin,
                     std::int64_t end, const std::string &to) {
      model.node("Slice",
                 {of, ints(to + "b", {begin}), ints(to + "e", {end}), "last"},
                 {to});
    };
    ints("one", {1});
    ints("last", {3});
    OnnxModel::set(model.node("Concat", {"f", "f"}, {"angles"}), "axis", -1);
    for (auto [op, to] : {std::pair("Cos", "c"), std::pair("Sin", "s")}) {
      model.node(op, {"angles"}, {std::string(to) + "0"});
      model.node("Unsqueeze", {std::string(to) + "0", "one"}, {to});
    }
    slice("x", 0, 8, "part");
    slice(form.rest, form.from, form.from + 4, "kept");
    slice("part", 0, 4, "first");
    slice("part", 4, 8, "second");
    model.node("Neg", {"second"}, {"n"});
    OnnxModel::set(model.node("Concat", {"n", "first"}, {"turned"}), "axis",
                   -1);
    model.node("Mul", {"part", "c"}, {"a"});
    model.node("Mul", {"turned", "s"}, {"b"});
    model.node("Add", {"a", "b"}, {"r"});
    OnnxModel::set(form.restFirst ? model.node("Concat", {"kept", "r"}, {"y"})
                                  : model.node("Concat", {"r", "kept"}, {"y"}),
                   "axis", -1);
    model.output("y");
    Both both = runBoth(model);
    expectSame(both);
    EXPECT_THAT(both.operators, Contains("RotaryEmbedding"));
    // The other is that of the angles.
    EXPECT_EQ(
        std::count(both.operators.begin(), both.operators.end(), "Concat"),
        form.fuses ? 1 : 2);
  }
}

//===----------------------------------------------------------------------===//
// The operator RotaryEmbedding before an attention
//===----------------------------------------------------------------------===//

struct RotatedForm {
  bool interleaved = false, partial = false, sideBySide = false, ids = true,
       contrib = false;
  std::string name() const {
    return std::string(interleaved ? "interleaved " : "") +
           (partial ? "partial " : "") + (sideBySide ? "3-D " : "4-D ") +
           (ids ? "positions " : "") + (contrib ? "com.microsoft" : "");
  }
};

// q and k turned by operators, of heads in four dimensions or side by side, then
// an attention that is taken apart.
OnnxModel rotatedModel(const RotatedForm &form) {
  const std::int64_t heads = 2, s = 3, d = 64, half = form.partial ? 16 : 32;
  OnnxModel model(23);
  auto ints = [&](const std::string &name, Ints values) {
    model.initializer(
        name, tensor<std::int64_t>({std::int64_t(values.size())}, values));
    return name;
  };
  const Ints tables = form.ids
                          ? Ints{9, half}
                          : Ints{1, s, half}; // rows of positions, of steps
  Floats cosines, sines;
  for (std::int64_t row = 0; row < (form.ids ? 9 : s); ++row)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = double(row + 1) * std::pow(0.8, double(i));
      cosines.push_back(float(std::cos(angle)));
      sines.push_back(float(std::sin(angle)));
    }
  model.input("cos", tensor<float>(tables, cosines));
  model.input("sin", tensor<float>(tables, sines));
  if (form.ids)
    model.input("ids", tensor<std::int64_t>({1, s}, Ints{4, 2, 7}));
  ints("split", {1, s, heads, d});
  const Ints dims =
      form.sideBySide ? Ints{1, s, heads * d} : Ints{1, heads, s, d};
  for (const char *which : {"q", "k"}) {
    const std::string name = which;
    model.input(name, tensor<float>(dims, randomFloats(heads * s * d,
                                                       name == "q" ? 1 : 2)));
    // com.microsoft's has the positions second.
    std::vector<std::string> inputs =
        form.contrib ? std::vector<std::string>{name, "ids", "cos", "sin"}
                     : std::vector<std::string>{name, "cos", "sin"};
    if (form.ids && !form.contrib)
      inputs.push_back("ids");
    auto *node = model.node(form.contrib ? "com.microsoft.RotaryEmbedding"
                                         : "RotaryEmbedding",
                            inputs, {name + "r"});
    if (form.interleaved)
      OnnxModel::set(node, "interleaved", 1);
    if (form.partial)
      OnnxModel::set(node, "rotary_embedding_dim", 2 * half);
    if (form.sideBySide || (form.contrib && form.partial))
      OnnxModel::set(node, "num_heads", heads);
    if (form.sideBySide) {
      model.node("Reshape", {name + "r", "split"}, {name + "h"});
      OnnxModel::set(model.node("Transpose", {name + "h"}, {name + "t"}),
                     "perm", Ints{0, 2, 1, 3});
    } else {
      model.node("Identity", {name + "r"}, {name + "t"});
    }
  }
  model.input("v",
              tensor<float>({1, heads, s, d}, randomFloats(heads * s * d, 3)));
  OnnxModel::set(model.node("Transpose", {"kt"}, {"turned"}), "perm",
                 Ints{0, 1, 3, 2});
  model.node("MatMul", {"qt", "turned"}, {"s0"});
  model.initializer("scale", tensor<float>({}, Floats{0.07f}));
  model.node("Mul", {"s0", "scale"}, {"s1"});
  OnnxModel::set(model.node("Softmax", {"s1"}, {"p"}), "axis", -1);
  model.node("MatMul", {"p", "v"}, {"y"});
  model.output("y");
  return model;
}

TEST(Raise, AttentionBehindRotations) {
  std::map<std::string, Floats> results;
  for (unsigned bits = 0; bits < 24; ++bits) {
    RotatedForm form{.interleaved = bool(bits & 1),
                     .partial = bool(bits & 2),
                     .sideBySide = bool(bits & 4),
                     .ids = bits < 8 || bits >= 16,
                     .contrib = bits >= 16};
    SCOPED_TRACE(form.name());
    Both both = runBoth(rotatedModel(form));
    expectSame(both);
    EXPECT_THAT(both.operators, Contains("Attention"));
    EXPECT_THAT(both.operators, Not(Contains("Softmax")));
    EXPECT_EQ(std::count(both.operators.begin(), both.operators.end(),
                         "RotaryEmbedding"),
              2);
    // Every attribute shows in what comes out; com.microsoft's is the same.
    if (form.contrib) {
      form.contrib = false;
      EXPECT_EQ(both.raised, results.at(form.name()));
      continue;
    }
    for (const auto &[name, values] : results)
      EXPECT_NE(values, both.raised) << name;
    results[form.name()] = both.raised;
  }
  EXPECT_EQ(results.size(), 16u);
}

//===----------------------------------------------------------------------===//
// Norms and activations
//===----------------------------------------------------------------------===//

struct NormForm {
  std::string name;
  bool centred = false, bias = false;
  float power = 2, eps = 1e-5f;
  std::int64_t axis = -1;
  std::string shift = ""; // Add: weight + number, Sub: number - weight
  float number = 1;
  std::string becomes;
};

TEST(Raise, Norms) {
  for (const NormForm &form :
       {NormForm{.name = "rms", .becomes = "RMSNormalization"},
        NormForm{
            .name = "large eps", .eps = 0.5f, .becomes = "RMSNormalization"},
        NormForm{.name = "fourth power", .power = 4, .becomes = ""},
        NormForm{.name = "mean over rows", .axis = 1, .becomes = ""},
        NormForm{.name = "layer",
                 .centred = true,
                 .bias = true,
                 .becomes = "LayerNormalization"},
        NormForm{.name = "layer without bias",
                 .centred = true,
                 .becomes = "LayerNormalization"},
        NormForm{
            .name = "one more", .shift = "Add", .becomes = "RMSNormalization"},
        NormForm{.name = "another number more",
                 .shift = "Add",
                 .number = -0.25f,
                 .becomes = "RMSNormalization"},
        NormForm{.name = "one less the weight", .shift = "Sub", .becomes = ""},
        NormForm{.name = "layer of one more",
                 .centred = true,
                 .bias = true,
                 .shift = "Add",
                 .becomes = "LayerNormalization"}}) {
    SCOPED_TRACE(form.name);
    OnnxModel model(17);
    model.input("x", tensor<float>({1, 4, 4}, randomFloats(16, 1)));
    model.initializer("w", tensor<float>({4}, randomFloats(4, 2)));
    model.initializer("b", tensor<float>({4}, randomFloats(4, 3)));
    model.initializer("power", tensor<float>({}, Floats{form.power}));
    model.initializer("eps", tensor<float>({}, Floats{form.eps}));
    auto mean = [&](const std::string &from, const std::string &to) {
      OnnxModel::set(model.node("ReduceMean", {from}, {to}), "axes",
                     Ints{form.axis});
    };
    std::string x = "x";
    if (form.centred) {
      mean("x", "mean");
      model.node("Sub", {"x", "mean"}, {"centred"});
      x = "centred";
    }
    model.node("Pow", {x, "power"}, {"squares"});
    mean("squares", "variance");
    model.node("Add", {"variance", "eps"}, {"sum"});
    model.node("Sqrt", {"sum"}, {"root"});
    model.node("Div", {x, "root"}, {"normal"});
    std::string weight = "w";
    if (!form.shift.empty()) {
      model.initializer("number", tensor<float>({}, Floats{form.number}));
      model.node(form.shift, {"number", "w"}, {"shifted"});
      weight = "shifted";
    }
    model.node("Mul", {"normal", weight}, {"y0"});
    if (form.bias)
      model.node("Add", {"y0", "b"}, {"y"});
    model.output(form.bias ? "y" : "y0");
    Both both = runBoth(model);
    expectSame(both);
    if (form.shift == "Sub")
      EXPECT_THAT(both.said, Contains(HasSubstr("nor that plus a number")));
    for (const char *op : {"RMSNormalization", "LayerNormalization"})
      if (form.becomes == op)
        EXPECT_THAT(both.operators, Contains(op));
      else
        EXPECT_THAT(both.operators, Not(Contains(op)));
  }
}

TEST(Raise, Activations) {
  auto count = [](const std::vector<std::string> &operators, const char *name) {
    return std::count(operators.begin(), operators.end(), name);
  };
  OnnxModel model(17);
  model.input("x", tensor<float>({2, 8}, randomFloats(16, 1)));
  model.input("z", tensor<float>({2, 8}, randomFloats(16, 2)));
  model.node("Sigmoid", {"x"}, {"sx"});
  model.node("Mul", {"x", "sx"}, {"swish"});
  model.node("Mul", {"z", "sx"}, {"gate"}); // of another value: stays
  auto number = [&](const std::string &name, float value) {
    model.initializer(name, tensor<float>({}, Floats{value}));
    return name;
  };
  model.node("Div", {"x", number("root2", std::sqrt(2.0f))}, {"e0"});
  model.node("Erf", {"e0"}, {"e1"});
  model.node("Add", {"e1", number("one", 1)}, {"e2"});
  model.node("Mul", {"x", "e2"}, {"e3"});
  model.node("Mul", {"e3", number("half", 0.5f)}, {"gelu"});
  // The same with another number: stays.
  model.node("Div", {"x", number("two", 2)}, {"f0"});
  model.node("Erf", {"f0"}, {"f1"});
  model.node("Add", {"f1", "one"}, {"f2"});
  model.node("Mul", {"x", "f2"}, {"f3"});
  model.node("Mul", {"f3", "half"}, {"other"});
  // By tanh.
  model.node("Pow", {"x", number("three", 3)}, {"t0"});
  model.node("Mul", {"t0", number("c", 0.044715f)}, {"t1"});
  model.node("Add", {"x", "t1"}, {"t2"});
  model.node("Mul", {"t2", number("d", 0.7978845608f)}, {"t3"});
  model.node("Tanh", {"t3"}, {"t4"});
  model.node("Add", {"t4", "one"}, {"t5"});
  model.node("Mul", {"x", "half"}, {"t6"});
  model.node("Mul", {"t6", "t5"}, {"tanh"});
  for (const char *name : {"swish", "gate", "gelu", "other", "tanh"})
    model.output(name);
  Both both = runBoth(model);
  expectSame(both);
  EXPECT_EQ(count(both.operators, "Swish"), 1);
  EXPECT_EQ(count(both.operators, "Gelu"), 2);
  EXPECT_EQ(count(both.operators, "Erf"), 1);
  EXPECT_EQ(count(both.operators, "Sigmoid"), 1);
}

} // namespace
} // namespace ingot
