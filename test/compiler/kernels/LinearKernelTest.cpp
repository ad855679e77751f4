// linear and embed: every variant of every encoding equals the reference bit for
// bit, on ragged shapes, with extreme codes and poisoned padding; and the
// reference is right, against float64.
#include "compiler/kernels/reference/Reference.h"
#include "compiler/kernels/reference/Scalar.h"
#include "test/compiler/kernels/KernelFixtures.h"

#include <bit>
#include <cmath>

namespace ingot::test {
namespace {

using reference::Code;

struct EncodingCase {
  const char *name;
  reference::Encoding encoding;
};
const std::vector<EncodingCase> kFloatCases = {
    {"f32", {Code::F32}}, {"f16", {Code::F16}}, {"bf16", {Code::BF16}}};
const std::vector<EncodingCase> kIntegerCases = {
    {"i8", {Code::I8, 32}},       {"i8", {Code::I8, 64}},
    {"i8", {Code::I8, 128}},      {"i8", {Code::I8, 96}},
    {"i8", {Code::I8, 256}},      {"i4", {Code::I4, 1024}},
    {"i4", {Code::I4, 32}},       {"i4", {Code::I4, 64}},
    {"i4", {Code::I4, 128}},      {"i4", {Code::I4, 32, true}},
    {"i4", {Code::I4, 64, true}}, {"i4", {Code::I4, 128, true}}};

codegen::KernelConfig configOf(const EncodingCase &test) {
  codegen::KernelConfig config = {{"encoding", std::string(test.name)}};
  if (test.encoding.group) {
    config["group"] = test.encoding.group;
    config["minimum"] = test.encoding.minimum ? 1 : 0;
  }
  return config;
}

// A packed weight of random codes, scales and minima. Padding is poisoned: float
// padding is NaN, integer padding is any code.
struct RandomWeights {
  PoisonedBuffer codes, scales, mins;
  abi::PackedWeights packed;

  RandomWeights(const reference::Encoding &encoding, int n, int k,
                Random &random)
      : codes(codeBytes(encoding, n, k)), scales(planeBytes(encoding, n, k)),
        mins(planeBytes(encoding, n, k)) {
    const int tiles = (n + 15) / 16;
    const int padded = (k + 31) / 32 * 32;
    if (encoding.group) {
      // Mostly any code, sometimes all of the extremes.
      const int kind = below(random, 4);
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes.data()[i] =
            static_cast<std::uint8_t>(kind == 0   ? 255
                                      : kind == 1 ? 0
                                                  : below(random, 256));
      for (std::size_t i = 0; i < scales.size() / 2; ++i) {
        scales.as<std::uint16_t>()[i] =
            reference::toHalf(uniform(random, -0.1f, 0.1f));
        mins.as<std::uint16_t>()[i] =
            reference::toHalf(uniform(random, -1.0f, 1.0f));
      }
    } else {
      for (int tile = 0; tile < tiles; ++tile)
        for (int column = 0; column < k; ++column)
          for (int lane = 0; lane < 16; ++lane) {
            if (tile * 16 + lane >= n)
              continue;
            const std::size_t at =
                (static_cast<std::size_t>(tile) * padded + column) * 16 + lane;
            const float value = uniform(random, -1.0f, 1.0f);
            if (encoding.code == Code::F32)
              codes.as<float>()[at] = value;
            else if (encoding.code == Code::F16)
              codes.as<std::uint16_t>()[at] = reference::toHalf(value);
            else
              codes.as<std::uint16_t>()[at] = static_cast<std::uint16_t>(
                  std::bit_cast<std::uint32_t>(value) >> 16);
          }
    }
    packed = {codes.data(),
              encoding.group ? scales.as<std::uint16_t>() : nullptr,
              encoding.minimum ? mins.as<std::uint16_t>() : nullptr};
  }

  static std::size_t codeBytes(const reference::Encoding &encoding, int n,
                               int k) {
    const std::size_t elements =
        static_cast<std::size_t>((n + 15) / 16 * 16) * ((k + 31) / 32 * 32);
    switch (encoding.code) {
    case Code::F32:
      return elements * 4;
    case Code::F16:
    case Code::BF16:
      return elements * 2;
    case Code::I8:
      return elements;
    case Code::I4:
      return elements / 2;
    }
    return 0;
  }
  static std::size_t planeBytes(const reference::Encoding &encoding, int n,
                                int k) {
    if (!encoding.group)
      return 0;
    return static_cast<std::size_t>((n + 15) / 16 * 16) *
           ((k + encoding.group - 1) / encoding.group) * 2;
  }
};

// Quantised activations: extreme and random codes, odd scales.
struct RandomRows {
  int padded, groups, bits, codeBytes, rowBytes;
  PoisonedBuffer data;
  abi::QuantizedRows rows;

  RandomRows(int tokens, int k, const reference::Encoding &encoding,
             Random &random)
      : RandomRows(tokens, k, encoding.group ? encoding.group : 32,
                   reference::activationBits(encoding.code), random) {}

  RandomRows(int tokens, int k, int group, int bits, Random &random)
      : padded((k + 31) / 32 * 32), groups((k + group - 1) / group), bits(bits),
        codeBytes(padded * bits / 8),
        rowBytes((codeBytes + 8 * groups + 63) / 64 * 64),
        data(static_cast<std::size_t>(tokens) * rowBytes),
        rows{data.data(), rowBytes, codeBytes, codeBytes + 4 * groups} {
    const int largest = bits == 16 ? 32512 : 127;
    for (int t = 0; t < tokens; ++t) {
      std::uint8_t *row = data.data() + t * rowBytes;
      auto *scales = reinterpret_cast<float *>(row + rows.scalesOffset);
      auto *sums = reinterpret_cast<std::int32_t *>(row + rows.sumsOffset);
      const int kind = below(random, 5);
      for (int g = 0; g < groups; ++g) {
        scales[g] = below(random, 50) == 0 ? std::nanf("")
                                           : oddActivation(random, false);
        sums[g] = 0;
      }
      for (int i = 0; i < padded; ++i) {
        const int code = i >= k      ? 0
                         : kind == 0 ? largest
                         : kind == 1 ? -largest
                                     : below(random, 2 * largest + 1) - largest;
        reference::setActivationCode(row, i, bits, code);
        if (i < k)
          sums[i / group] += code;
      }
    }
  }
};

struct LinearCase {
  int tokens, k, n;
};
// Every K and N with some T, every T around the borders of tiles and variants.
const std::vector<LinearCase> kShapes = {
    {1, 32, 1},    {2, 32, 17},   {3, 40, 15},   {4, 40, 16},   {5, 96, 17},
    {7, 96, 1},    {8, 576, 16},  {9, 576, 17},  {15, 96, 15},  {16, 40, 17},
    {17, 32, 16},  {23, 96, 16},  {31, 40, 1},   {33, 576, 15}, {1, 576, 960},
    {1, 1536, 33}, {6, 1536, 17}, {12, 160, 31}, {70, 96, 20},  {2, 8, 3},
    {3, 1, 5}};

class LinearKernelTest : public LevelTest {};

// One shape, all variants, random slices, with and without bias and residual.
void checkLinear(const codegen::CpuLevel &level, const EncodingCase &test,
                 const LinearCase &shape, Random &random) {
  const reference::Encoding &encoding = test.encoding;
  RandomWeights weights(encoding, shape.n, shape.k, random);
  RandomRows rows(shape.tokens, shape.k, encoding, random);
  PoisonedBuffer input(4u * shape.tokens * shape.k);
  for (int i = 0; i < shape.tokens * shape.k; ++i)
    input.as<float>()[i] = oddActivation(random, below(random, 20) == 0);
  PoisonedBuffer bias(4u * shape.n);
  const int stride = shape.n + below(random, 5);
  PoisonedBuffer residual(4u * shape.tokens * stride);
  for (int i = 0; i < shape.n; ++i)
    bias.as<float>()[i] = uniform(random, -1, 1);
  for (int i = 0; i < shape.tokens * stride; ++i)
    residual.as<float>()[i] = uniform(random, -1, 1);

  abi::LinearParams params = {};
  params.input = encoding.group ? nullptr : input.as<float>();
  if (encoding.group)
    params.quantized = rows.rows;
  params.weights = weights.packed;
  params.bias = below(random, 2) ? bias.as<float>() : nullptr;
  params.residual = below(random, 2) ? residual.as<float>() : nullptr;
  params.residualStride = stride;
  params.outputStride = stride;
  params.numTokens = shape.tokens;
  params.k = shape.k;
  params.n = shape.n;
  const int tiles = (shape.n + 15) / 16;

  PoisonedBuffer want(4u * shape.tokens * stride);
  params.output = want.as<float>();
  reference::linear(params, wholeSlice(tiles), encoding);
  auto variants = codegen::variantsFor("linear", configOf(test));
  ASSERT_TRUE(variants.isOk()) << variants.status().message();
  const MappedKernels &kernels = kernelsFor(level, "linear", configOf(test));
  for (std::size_t v = 0; v < variants->size(); ++v) {
    PoisonedBuffer got(4u * shape.tokens * stride);
    params.output = got.as<float>();
    runSliced(kernels.at(v), &params, tiles, (*variants)[v].scratchBytes,
              random);
    EXPECT_TRUE(sameBytes(got, want))
        << (*variants)[v].name << " T=" << shape.tokens << " K=" << shape.k
        << " N=" << shape.n;
  }
  // The output may be the residual itself.
  if (params.residual) {
    std::memcpy(residual.data(), params.residual, residual.size());
    params.output = residual.as<float>();
    runSliced(kernels.at(1), &params, tiles, (*variants)[1].scratchBytes,
              random);
    for (int t = 0; t < shape.tokens; ++t)
      EXPECT_TRUE(sameFloats(residual.as<float>() + t * stride,
                             want.as<float>() + t * stride, shape.n));
  }
}

TEST_P(LinearKernelTest, IntegerEncodingsEqualTheReference) {
  Random random(1);
  for (const EncodingCase &test : kIntegerCases)
    for (const LinearCase &shape : kShapes)
      checkLinear(*level, test, shape, random);
}

TEST_P(LinearKernelTest, FloatEncodingsEqualTheReference) {
  Random random(2);
  for (const EncodingCase &test : kFloatCases)
    for (const LinearCase &shape : kShapes)
      checkLinear(*level, test, shape, random);
}

// A token's bits are its own: alone, and among others in any variant.
TEST_P(LinearKernelTest, TokensDoNotSeeEachOther) {
  Random random(3);
  for (const EncodingCase &test : {kIntegerCases[2], kIntegerCases[4]}) {
    const int k = 200, n = 40, tokens = 21, tiles = 3;
    RandomWeights weights(test.encoding, n, k, random);
    RandomRows rows(tokens, k, test.encoding, random);
    const MappedKernels &kernels = kernelsFor(*level, "linear", configOf(test));
    auto variants = codegen::variantsFor("linear", configOf(test));
    abi::LinearParams params = {};
    params.quantized = rows.rows;
    params.weights = weights.packed;
    params.outputStride = n;
    params.numTokens = tokens;
    params.k = k;
    params.n = n;
    PoisonedBuffer together(4u * tokens * n);
    params.output = together.as<float>();
    runSliced(kernels.at(2), &params, tiles, (*variants)[2].scratchBytes,
              random);
    for (int t = 0; t < tokens; ++t) {
      PoisonedBuffer alone(4u * n);
      params.output = alone.as<float>();
      params.numTokens = 1;
      params.quantized.data = rows.rows.data + t * rows.rowBytes;
      runSliced(kernels.at(0), &params, tiles, (*variants)[0].scratchBytes,
                random);
      EXPECT_TRUE(
          sameFloats(alone.as<float>(), together.as<float>() + t * n, n))
          << "token " << t;
    }
  }
}

TEST_P(LinearKernelTest, EmbedEqualsTheReference) {
  Random random(4);
  std::vector<EncodingCase> cases = kFloatCases;
  cases.insert(cases.end(), kIntegerCases.begin(), kIntegerCases.end());
  for (const EncodingCase &test : cases)
    for (const int hidden : {32, 40, 576}) {
      const int vocab = 37, tokens = 9;
      RandomWeights weights(test.encoding, vocab, hidden, random);
      std::vector<std::int32_t> ids(tokens);
      for (std::int32_t &id : ids)
        id = below(random, vocab);
      ids[0] = vocab - 1;
      std::vector<float> bias(hidden);
      for (float &x : bias)
        x = uniform(random, -1, 1);
      abi::EmbedParams params = {ids.data(), weights.packed, nullptr, tokens,
                                 hidden,     vocab,          1.5f,    nullptr};
      if (hidden != 32)
        params.bias = bias.data();
      PoisonedBuffer want(4u * tokens * hidden), got(4u * tokens * hidden);
      params.output = want.as<float>();
      reference::embed(params, wholeSlice(tokens), test.encoding);
      params.output = got.as<float>();
      codegen::KernelConfig config = configOf(test);
      runSliced(kernelsFor(*level, "embed", config).at(0), &params, tokens, 0,
                random);
      EXPECT_TRUE(sameBytes(got, want)) << test.name << " hidden=" << hidden;
    }
}

// The law itself: the reference is close to the sum in float64 of what codes and
// scales stand for.
TEST(LinearReferenceTest, IsCloseToFloat64) {
  Random random(5);
  std::vector<EncodingCase> cases = kFloatCases;
  cases.insert(cases.end(), kIntegerCases.begin(), kIntegerCases.end());
  for (const EncodingCase &test : cases) {
    const int k = 300, n = 20, tokens = 3;
    const int group = test.encoding.group ? test.encoding.group : 32;
    RandomWeights weights(test.encoding, n, k, random);
    RandomRows rows(tokens, k, test.encoding, random);
    std::vector<float> input(tokens * k), output(tokens * n);
    for (float &x : input)
      x = uniform(random, -1, 1);
    for (int t = 0; t < tokens; ++t)
      for (int g = 0; g < rows.groups; ++g)
        reinterpret_cast<float *>(rows.data.data() + t * rows.rowBytes +
                                  rows.rows.scalesOffset)[g] =
            uniform(random, 0.0f, rows.bits == 16 ? 1e-4f : 0.02f);
    abi::LinearParams params = {};
    params.input = test.encoding.group ? nullptr : input.data();
    params.quantized = rows.rows;
    params.weights = weights.packed;
    params.output = output.data();
    params.outputStride = n;
    params.numTokens = tokens;
    params.k = k;
    params.n = n;
    reference::linear(params, wholeSlice(2), test.encoding);
    for (int t = 0; t < tokens; ++t)
      for (int row = 0; row < n; ++row) {
        double sum = 0, size = 0;
        const std::uint8_t *x = rows.data.data() + t * rows.rowBytes;
        for (int i = 0; i < k; ++i) {
          double activation = input[t * k + i];
          if (test.encoding.group)
            activation = static_cast<double>(
                             reference::activationCode(x, i, rows.bits)) *
                         reinterpret_cast<const float *>(
                             x + rows.rows.scalesOffset)[i / group];
          const double term =
              activation *
              reference::weightAt(weights.packed, row, i, k, test.encoding);
          sum += term;
          size += std::fabs(term);
        }
        EXPECT_NEAR(output[t * n + row], sum, 1e-5 * size + 1e-6) << test.name;
      }
  }
}

// Rows of several experts, some without any; each row as if it stood alone.
TEST_P(LinearKernelTest, ExpertsEqualTheReference) {
  Random random(9);
  constexpr int experts = 5, n = 48, k = 100;
  std::vector<EncodingCase> cases = kFloatCases;
  cases.insert(cases.end(), kIntegerCases.begin(), kIntegerCases.end());
  for (const EncodingCase &test : cases)
    for (const int slots : {1, 2, 15, 16, 70}) {
      RandomWeights weights(test.encoding, experts * n, k, random);
      RandomRows rows(slots, k, test.encoding, random);
      PoisonedBuffer input(4u * slots * k);
      for (int i = 0; i < slots * k; ++i)
        input.as<float>()[i] = oddActivation(random, false);
      std::vector<std::int32_t> order(2 * slots + experts + 1, 0);
      std::int32_t *begins = order.data() + 2 * slots;
      // Expert 0 has no row; of 16 slots, expert 3 has all.
      for (int s = 0; s < slots; ++s)
        for (int e = slots == 16 ? 3 : 1 + below(random, experts - 1);
             e < experts; ++e)
          ++begins[e + 1];
      abi::ExpertLinearParams params = {};
      params.linear.input = test.encoding.group ? nullptr : input.as<float>();
      if (test.encoding.group)
        params.linear.quantized = rows.rows;
      params.linear.weights = weights.packed;
      params.linear.outputStride = n;
      params.linear.numTokens = slots;
      params.linear.k = k;
      params.linear.n = n;
      params.order = order.data();
      params.experts = experts;
      const int items = experts * n / 16;
      PoisonedBuffer want(4u * slots * n);
      params.linear.output = want.as<float>();
      reference::expertLinear(params, wholeSlice(items), test.encoding);
      auto variants = codegen::variantsFor("expert_linear", configOf(test));
      ASSERT_TRUE(variants.isOk()) << variants.status().message();
      const MappedKernels &kernels =
          kernelsFor(*level, "expert_linear", configOf(test));
      for (std::size_t v = 0; v < variants->size(); ++v) {
        PoisonedBuffer got(4u * slots * n);
        params.linear.output = got.as<float>();
        runSliced(kernels.at(v), &params, items, (*variants)[v].scratchBytes,
                  random);
        EXPECT_TRUE(sameBytes(got, want))
            << (*variants)[v].name << " rows=" << slots;
      }
    }
}

INGOT_FOR_EACH_LEVEL(LinearKernelTest);

} // namespace
} // namespace ingot::test
