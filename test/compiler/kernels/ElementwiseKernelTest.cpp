// rms_norm, quantize, gated, gather_rows and rope_table against the reference,
// bit for bit; and the definitions of Exp.h and SinCos.h against the library.
#include "compiler/kernels/Exp.h"
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

class ElementwiseKernelTest : public LevelTest {
protected:
  // Runs kernel and reference into float32, quantised rows and both.
  template <typename Params, typename Reference>
  void checkOutputs(Params params, const std::string &op,
                    codegen::KernelConfig config, int width,
                    Reference reference) {
    Random random(7);
    for (const reference::Quantization quantization :
         {reference::Quantization{0, 0},
          {32, 16},
          {32, 8},
          {64, 16},
          {128, 8},
          {128, 16}}) {
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
      checkOutputs(params, "rms_norm", {}, width, reference::rmsNorm);
    }
}

TEST_P(ElementwiseKernelTest, Gated) {
  Random random(2);
  for (const int width : kWidths)
    for (const auto activation :
         {reference::Activation::Silu, reference::Activation::GeluTanh}) {
      const std::vector<float> input =
          oddValues(static_cast<std::size_t>(kTokens) * width * 2, random);
      abi::GatedParams params = {};
      params.gateUp = input.data();
      params.numTokens = kTokens;
      params.width = width;
      const bool silu = activation == reference::Activation::Silu;
      checkOutputs(params, "gated",
                   {{"activation", std::string(silu ? "silu" : "gelu_tanh")}},
                   width,
                   [&](const abi::GatedParams &p, const abi::Slice &slice,
                       reference::Quantization quantization) {
                     reference::gated(p, slice, activation, quantization);
                   });
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
