// rms_norm, quantize, gated, gather_rows and rope_table against the reference,
// bit for bit; and the definitions of Exp.h and SinCos.h against the library.
#include "compiler/kernels/Exp.h"
#include "compiler/kernels/Power.h"
#include "compiler/kernels/SinCos.h"
#include "compiler/kernels/reference/Reference.h"
#include "test/compiler/kernels/KernelFixtures.h"

#include <bit>
#include <cmath>

namespace ingot::test {
namespace {

constexpr int kWidths[] = {1, 15, 16, 17, 32, 40, 96, 100, 576, 1536};
constexpr int kTokens = 6;

// A quantised buffer of the geometry that a plan would give.
struct QuantizedBuffer {
  int codeBytes, groups, rowBytes;
  PoisonedBuffer data;
  abi::QuantizedRows rows;
  QuantizedBuffer(int tokens, int width, reference::Quantization quantization)
      : codeBytes((width + 31) / 32 * 32 * quantization.bits / 8),
        groups((width + quantization.group - 1) / quantization.group),
        rowBytes((codeBytes + 8 * groups + 63) / 64 * 64),
        data(static_cast<std::size_t>(tokens) * rowBytes),
        rows{data.data(), rowBytes, codeBytes, codeBytes + 4 * groups} {}
};

std::vector<float> oddValues(std::size_t count, Random &random) {
  std::vector<float> values(count);
  const bool withNan = below(random, 3) == 0;
  for (float &value : values)
    value = oddActivation(random, withNan);
  return values;
}

// Group 0 stands for float32 alone.
const std::vector<reference::Quantization> kOutputs = {
    {0, 0}, {32, 16}, {32, 8}, {64, 16}, {128, 8}, {128, 16}};

// An activation with the outputs it is tried with. All share the code that
// quantises, so that one of them meets every output and the others two.
struct ActivationCase {
  reference::Activation activation;
  const char *name;
  std::vector<reference::Quantization> outputs;
};
const ActivationCase kActivations[] = {
    {reference::Activation::Silu, "silu", kOutputs},
    {reference::Activation::GeluTanh, "gelu_tanh", {{0, 0}, {32, 16}}},
    {reference::Activation::Gelu, "gelu", {{0, 0}, {128, 8}}},
    {reference::Activation::Relu, "relu", {{0, 0}, {64, 16}}}};

class ElementwiseKernelTest : public LevelTest {
protected:
  // Runs kernel and reference into float32, quantised rows and both.
  template <typename Params, typename Reference>
  void checkOutputs(Params params, const std::string &op,
                    codegen::KernelConfig config, int width,
                    const std::vector<reference::Quantization> &outputs,
                    Reference reference) {
    Random random(7);
    for (const reference::Quantization quantization : outputs) {
      const int group = quantization.group;
      const reference::Quantization buffers =
          group ? quantization : reference::Quantization{32, 8};
      config["group"] = group;
      config["bits"] = quantization.bits;
      const abi::KernelFn kernel = kernelsFor(*level, op, config).at(0);
      for (const bool floats : {true, false}) {
        const bool quantized = group != 0;
        QuantizedBuffer gotRows(kTokens, width, buffers);
        QuantizedBuffer wantRows(kTokens, width, buffers);
        PoisonedBuffer got(4u * kTokens * width), want(4u * kTokens * width);
        params.output = floats || !quantized ? want.as<float>() : nullptr;
        params.quantized = quantized ? wantRows.rows : abi::QuantizedRows{};
        reference(params, wholeSlice(kTokens), quantization);
        params.output = params.output ? got.as<float>() : nullptr;
        params.quantized = quantized ? gotRows.rows : abi::QuantizedRows{};
        runSliced(kernel, &params, kTokens, 0, random);
        EXPECT_TRUE(sameBytes(got, want))
            << op << " width=" << width << " group=" << group
            << " bits=" << quantization.bits;
        EXPECT_TRUE(sameBytes(gotRows.data, wantRows.data))
            << op << " width=" << width << " group=" << group
            << " bits=" << quantization.bits;
      }
    }
  }
};

TEST_P(ElementwiseKernelTest, RmsNorm) {
  Random random(1);
  for (const int width : kWidths)
    for (const float offset : {0.0f, 1.0f}) {
      const std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width, random);
      std::vector<float> weight(width);
      for (float &w : weight)
        w = uniform(random, -2, 2);
      abi::RmsNormParams params = {};
      params.input = input.data();
      params.weight = weight.data();
      params.numTokens = kTokens;
      params.width = width;
      params.eps = 1e-5f;
      params.weightOffset = offset;
      checkOutputs(params, "rms_norm", {}, width, kOutputs, reference::rmsNorm);
    }
}

TEST_P(ElementwiseKernelTest, Gated) {
  Random random(2);
  for (const int width : kWidths)
    for (const auto &[activation, name, outputs] : kActivations) {
      const std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width * 2, random);
      abi::GatedParams params = {};
      params.gateUp = input.data();
      params.numTokens = kTokens;
      params.width = width;
      checkOutputs(
          params, "gated", {{"activation", std::string(name)}}, width, outputs,
          [of = activation](const abi::GatedParams &p, const abi::Slice &slice,
                            reference::Quantization quantization) {
            reference::gated(p, slice, of, quantization);
          });
    }
}

TEST_P(ElementwiseKernelTest, Activate) {
  Random random(12);
  for (const int width : kWidths)
    for (const auto &[activation, name, outputs] : kActivations) {
      const std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width, random);
      abi::ActivateParams params = {};
      params.input = input.data();
      params.numTokens = kTokens;
      params.width = width;
      checkOutputs(params, "activate", {{"activation", std::string(name)}},
                   width, outputs,
                   [of = activation](const abi::ActivateParams &p,
                                     const abi::Slice &slice,
                                     reference::Quantization quantization) {
                     reference::activate(p, slice, of, quantization);
                   });
    }
}

TEST_P(ElementwiseKernelTest, LayerNorm) {
  Random random(13);
  for (const int width : kWidths)
    for (const bool hasBias : {false, true}) {
      const std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width, random);
      std::vector<float> weight(width), bias(width);
      for (float &w : weight)
        w = uniform(random, -2, 2);
      for (float &b : bias)
        b = uniform(random, -2, 2);
      abi::LayerNormParams params = {};
      params.input = input.data();
      params.weight = weight.data();
      params.bias = hasBias ? bias.data() : nullptr;
      params.numTokens = kTokens;
      params.width = width;
      params.eps = 1e-5f;
      checkOutputs(params, "layer_norm", {}, width, kOutputs,
                   reference::layerNorm);
    }
}

// Also with the output in the place of an operand.
TEST_P(ElementwiseKernelTest, AddAndCap) {
  Random random(14);
  for (const int width : kWidths)
    for (const float scale : {1.0f, 0.22f}) {
      const std::size_t count = static_cast<std::size_t>(kTokens) * width;
      const std::vector<float> residual = oddValues(count, random);
      const std::vector<float> update = oddValues(count, random);
      PoisonedBuffer got(4 * count), want(4 * count);
      std::copy(residual.begin(), residual.end(), got.as<float>());
      abi::AddParams add = {residual.data(),
                            update.data(),
                            want.as<float>(),
                            kTokens,
                            width,
                            scale,
                            0};
      reference::add(add, wholeSlice(kTokens));
      add.residual = add.output = got.as<float>();
      runSliced(kernelsFor(*level, "add", {}).at(0), &add, kTokens, 0, random);
      EXPECT_TRUE(sameBytes(got, want)) << "add of " << width;
      for (const float softCap : {0.0f, 30.0f}) {
        PoisonedBuffer capped(4 * count), expected(4 * count);
        std::copy(residual.begin(), residual.end(), capped.as<float>());
        abi::CapParams cap = {residual.data(), expected.as<float>(),
                              kTokens,         width,
                              scale,           softCap};
        reference::cap(cap, wholeSlice(kTokens));
        cap.input = cap.output = capped.as<float>();
        runSliced(kernelsFor(*level, "cap", {}).at(0), &cap, kTokens, 0,
                  random);
        EXPECT_TRUE(sameBytes(capped, expected)) << "cap of " << width;
      }
    }
}

TEST_P(ElementwiseKernelTest, Quantize) {
  Random random(3);
  for (const int width : kWidths)
    for (const reference::Quantization quantization :
         {reference::Quantization{32, 8},
          {96, 8},
          {128, 8},
          {1024, 8},
          {32, 16},
          {96, 16},
          {256, 16}}) {
      std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width, random);
      // Whole tokens of one kind: zero, denormal (the inverse overflows), infinite.
      std::fill_n(input.begin(), width, 0.0f);
      std::fill_n(input.begin() + width, width, 1e-42f);
      input[2 * static_cast<std::size_t>(width)] = INFINITY;
      std::fill_n(input.begin() + 3 * static_cast<std::ptrdiff_t>(width), width,
                  3.4e38f);
      QuantizedBuffer got(kTokens, width, quantization),
          want(kTokens, width, quantization);
      abi::QuantizeParams params = {input.data(), want.rows, kTokens, width};
      reference::quantize(params, wholeSlice(kTokens), quantization);
      params.quantized = got.rows;
      runSliced(kernelsFor(*level, "quantize",
                           {{"group", quantization.group},
                            {"bits", quantization.bits}})
                    .at(0),
                &params, kTokens, 0, random);
      EXPECT_TRUE(sameBytes(got.data, want.data))
          << "width=" << width << " group=" << quantization.group
          << " bits=" << quantization.bits;
      // The group with infinity shows; the others are what a quantiser promises.
      const auto *scales = reinterpret_cast<const float *>(
          got.data.data() + 2 * got.rowBytes + got.codeBytes);
      EXPECT_TRUE(std::isnan(scales[0]));
    }
}

TEST_P(ElementwiseKernelTest, GatherRows) {
  Random random(4);
  for (const int width : kWidths) {
    const std::vector<float> input =
        oddValues(static_cast<std::size_t>(kTokens) * width, random);
    const std::vector<std::int32_t> rows = {5, 0, 3, 3};
    PoisonedBuffer got(4u * rows.size() * width),
        want(4u * rows.size() * width);
    abi::GatherRowsParams params = {input.data(), rows.data(), want.as<float>(),
                                    4, width};
    reference::gatherRows(params, wholeSlice(4));
    params.output = got.as<float>();
    runSliced(kernelsFor(*level, "gather_rows", {}).at(0), &params, 4, 0,
              random);
    EXPECT_TRUE(sameBytes(got, want));
  }
}

// Ragged sequences of which some want a result, in every way; a text of zeros has
// no length that could divide it.
TEST_P(ElementwiseKernelTest, Pool) {
  Random random(9);
  const std::vector<abi::SequenceSpan> sequences = {
      {0, 1, 0, 0}, {1, 5, 0, 0}, {6, 33, 0, 0}, {39, 3, 0, 0}};
  std::vector<std::int32_t> tokenSequence;
  for (int s = 0; s < 4; ++s)
    tokenSequence.insert(tokenSequence.end(), sequences[s].numRows, s);
  const std::vector<std::int32_t> rows = {0, 38, 39, 41};
  for (const int width : kWidths)
    for (const abi::PoolKind kind :
         {abi::PoolKind::Mean, abi::PoolKind::Cls, abi::PoolKind::Last})
      for (const int normalize : {0, 1}) {
        std::vector<float> input(tokenSequence.size() * width);
        for (float &x : input)
          x = uniform(random, -3, 3);
        std::fill(input.begin() + 39 * width, input.end(), 0.0f);
        PoisonedBuffer got(4u * rows.size() * width),
            want(4u * rows.size() * width);
        abi::PoolParams params = {input.data(),
                                  rows.data(),
                                  sequences.data(),
                                  tokenSequence.data(),
                                  want.as<float>(),
                                  4,
                                  width,
                                  kind,
                                  normalize};
        reference::pool(params, wholeSlice(4));
        params.output = got.as<float>();
        runSliced(kernelsFor(*level, "pool", {}).at(0), &params, 4, 0, random);
        EXPECT_TRUE(sameBytes(got, want))
            << "width " << width << ", kind " << static_cast<int>(kind);
        // And by the definition, in float64.
        for (int r = 0; r < 4; ++r) {
          const abi::SequenceSpan &span = sequences[tokenSequence[rows[r]]];
          std::vector<double> truth(width);
          double squares = 0;
          for (int k = 0; k < width; ++k) {
            for (int t = 0; t < span.numRows; ++t)
              if (kind == abi::PoolKind::Mean ||
                  t == (kind == abi::PoolKind::Cls ? 0 : span.numRows - 1))
                truth[k] += input[(span.firstRow + t) * width + k];
            if (kind == abi::PoolKind::Mean)
              truth[k] /= span.numRows;
            squares += truth[k] * truth[k];
          }
          const double divisor =
              normalize ? std::max(std::sqrt(squares), 1e-12) : 1;
          for (int k = 0; k < width; ++k)
            EXPECT_NEAR(got.as<float>()[r * width + k], truth[k] / divisor,
                        1e-5);
        }
      }
}

TEST_P(ElementwiseKernelTest, RopeTable) {
  Random random(5);
  for (const int rotaryDim : {2, 16, 64, 80, 128}) {
    const std::vector<std::int32_t> positions = {0,    1,      31,     32,
                                                 4095, 131071, 1000000};
    std::vector<float> frequencies(rotaryDim / 2);
    for (int i = 0; i < rotaryDim / 2; ++i)
      frequencies[i] =
          std::pow(10000.0f, -2.0f * static_cast<float>(i) / rotaryDim);
    const int tokens = static_cast<int>(positions.size());
    PoisonedBuffer got(4u * tokens * rotaryDim), want(4u * tokens * rotaryDim);
    abi::RopeTableParams params = {};
    params.positions = positions.data();
    params.rotaryLengths = positions.data();
    params.invFreq = frequencies.data();
    params.output = want.as<float>();
    params.numTokens = tokens;
    params.rotaryDim = rotaryDim;
    params.attentionFactor = 1.25f;
    reference::ropeTable(params, wholeSlice(tokens));
    params.output = got.as<float>();
    runSliced(kernelsFor(*level, "rope_table", {}).at(0), &params, tokens, 0,
              random);
    EXPECT_TRUE(sameBytes(got, want)) << "rotaryDim=" << rotaryDim;
    for (int t = 0; t < tokens; ++t)
      for (int i = 0; i < rotaryDim / 2; ++i) {
        const double angle = static_cast<float>(positions[t]) * frequencies[i];
        EXPECT_EQ(got.as<float>()[t * rotaryDim + i],
                  static_cast<float>(std::cos(angle) * 1.25));
        EXPECT_EQ(got.as<float>()[t * rotaryDim + rotaryDim / 2 + i],
                  static_cast<float>(std::sin(angle) * 1.25));
      }
  }
}

// Frequencies chosen by length: on both sides of the original one, and by the
// position where it is beyond the length at admission.
TEST_P(ElementwiseKernelTest, RopeTableByLength) {
  Random random(15);
  for (const int rotaryDim : {4, 16, 128})
    for (const auto scaling :
         {abi::RopeScaling::Dynamic, abi::RopeScaling::Listed}) {
      const int half = rotaryDim / 2;
      const std::vector<std::int32_t> positions = {0,    63,   64,  65,
                                                   4095, 4096, 5000};
      const std::vector<std::int32_t> lengths = {1,    4096, 64, 4097,
                                                 4096, 4096, 100};
      std::vector<float> frequencies(2 * half);
      for (int i = 0; i < 2 * half; ++i)
        frequencies[i] = std::pow(10000.0f, -static_cast<float>(i % half) /
                                                    static_cast<float>(half) -
                                                static_cast<float>(i / half));
      const int tokens = static_cast<int>(positions.size());
      PoisonedBuffer got(4u * tokens * rotaryDim),
          want(4u * tokens * rotaryDim);
      abi::RopeTableParams params = {};
      params.positions = positions.data();
      params.rotaryLengths = lengths.data();
      params.invFreq = frequencies.data();
      params.output = want.as<float>();
      params.theta = 10000;
      params.factor = 2.5;
      params.numTokens = tokens;
      params.rotaryDim = rotaryDim;
      params.attentionFactor = 1;
      params.original = 4096;
      params.scaling = scaling;
      reference::ropeTable(params, wholeSlice(tokens));
      params.output = got.as<float>();
      runSliced(kernelsFor(*level, "rope_table", {}).at(0), &params, tokens, 0,
                random);
      EXPECT_TRUE(sameBytes(got, want)) << "rotaryDim=" << rotaryDim;
      // Against the formulas, in double precision.
      for (int t = 0; t < tokens; ++t)
        for (int i = 0; i < half; ++i) {
          double frequency = frequencies[i];
          const int length = std::max(lengths[t], positions[t] + 1);
          if (scaling == abi::RopeScaling::Listed && lengths[t] > 4096) {
            frequency = frequencies[half + i];
          } else if (scaling == abi::RopeScaling::Dynamic && length > 4096) {
            const double base = 10000 * std::pow(2.5 * length / 4096 - 1.5,
                                                 rotaryDim / (rotaryDim - 2.0));
            frequency = std::pow(base, -2.0 * i / rotaryDim);
          }
          EXPECT_NEAR(got.as<float>()[t * rotaryDim + i],
                      std::cos(positions[t] * frequency), 1e-3)
              << "token " << t << " frequency " << i;
        }
    }
}

TEST(PowerTest, IsCloseToTheLibrary) {
  Random random(16);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::exp(uniform(random, -60.0f, 60.0f));
    EXPECT_NEAR(kernels::logLaw(x), std::log(x),
                4e-16 * std::max(1.0, std::fabs(std::log(x))));
    const double y = uniform(random, -80.0f, 80.0f);
    EXPECT_NEAR(kernels::exp64Law(y) / std::exp(y), 1.0, 2e-15);
  }
  EXPECT_EQ(kernels::logLaw(1.0), 0.0);
  EXPECT_EQ(kernels::exp64Law(0.0), 1.0);
  // Bases computed apart, for lengths beyond 2048.
  for (auto [length, expected] : {std::pair(3000, 19499.28), {4096, 30527.74}})
    EXPECT_NEAR(kernels::exp64Law(
                    kernels::dynamicBase(10000, 2, 2048, length, 64).logarithm),
                expected, 0.01);
  // At the original length the base has not grown.
  const auto base = kernels::dynamicBase(10000, 2, 2048, 2048, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_FLOAT_EQ(kernels::dynamicFrequency(base, i),
                    std::pow(10000.0f, -static_cast<float>(i) / 64));
}

// Units in the last place between a float and the exact value.
double ulps(float got, double want) {
  const double spacing =
      std::ldexp(1.0, std::max(std::ilogb(want == 0 ? 1.0 : want), -126) - 23);
  return std::fabs(got - want) / spacing;
}

TEST(ExpTest, IsWithinAnUlpAndMeetsItsEnds) {
  double worst = 0;
  for (float x = -87.3f; x < 88.7f; x += 0.00137f)
    worst = std::max(
        worst, ulps(kernels::expLaw(x), std::exp(static_cast<double>(x))));
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(kernels::expLaw(0.0f), 1.0f);
  EXPECT_EQ(kernels::expLaw(-0.0f), 1.0f);
  EXPECT_EQ(kernels::expLaw(-88.0f), 0.0f);
  EXPECT_EQ(kernels::expLaw(-INFINITY), 0.0f);
  EXPECT_EQ(kernels::expLaw(89.0f), INFINITY);
  EXPECT_EQ(kernels::expLaw(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(kernels::expLaw(std::nanf(""))));
}

TEST(ExpTest, ActivationsAreCloseToFloat64) {
  for (float x = -30.0f; x < 30.0f; x += 0.0137f) {
    const double v = x;
    EXPECT_NEAR(kernels::siluLaw(x), v / (1 + std::exp(-v)),
                3e-7 * (1 + std::fabs(v)));
    const double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    EXPECT_NEAR(kernels::geluTanhLaw(x), 0.5 * v * (1 + std::tanh(inner)),
                1e-6 * (1 + std::fabs(v)));
    EXPECT_NEAR(kernels::softCapLaw(x, 20.0f), 20 * std::tanh(v / 20), 5e-6);
    EXPECT_NEAR(kernels::geluLaw(x), 0.5 * v * std::erfc(-v / std::sqrt(2.0)),
                1e-7 * (1 + std::fabs(v)));
  }
}

TEST(SinCosTest, IsWithinAnUlpUpToAMillion) {
  Random random(6);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const float x =
        i % 2 ? uniform(random, -1e6f, 1e6f) : uniform(random, -4.0f, 4.0f);
    const kernels::SinCos both = kernels::sinCosLaw(x);
    worst = std::max(worst, ulps(static_cast<float>(both.sine),
                                 std::sin(static_cast<double>(x))));
    worst = std::max(worst, ulps(static_cast<float>(both.cosine),
                                 std::cos(static_cast<double>(x))));
  }
  EXPECT_LT(worst, 0.51);
}

INGOT_FOR_EACH_LEVEL(ElementwiseKernelTest);

} // namespace
} // namespace ingot::test
