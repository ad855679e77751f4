// Kernels with one block for each row, on the emulator. Where nothing is summed they
// equal their twins bit for bit; sums over a row are in another order than the CPU's.
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

using abi::Slice;

Slice whole(int items) { return {0, items, 0, 0, nullptr}; }

// The half rows that a kernel wrote are those that the host makes of the floats that
// it wrote.
void expectHalves(const HalfRows &got, const std::vector<float> &values,
                  int width, int parts = 1) {
  const HalfRows want = HalfRows::of(values, width, parts);
  for (int row = 0; row < int(values.size()) / width; ++row) {
    const std::vector<float> own(values.begin() + row * width,
                                 values.begin() + (row + 1) * width);
    bool isFinite = true;
    for (float x : own)
      isFinite = isFinite && std::isfinite(x);
    if (isFinite)
      EXPECT_EQ(got.row(row), want.row(row)) << "row " << row;
    else
      EXPECT_TRUE(std::isnan(got.valueAt(row, 0)));
  }
}

// Rows of all kinds: ordinary, huge, tiny, denormal, zero, with an infinity.
std::vector<float> oddRows(Random &random, int rows, int width) {
  std::vector<float> values;
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < width; ++k) {
      const float x = uniform(random, -2, 2);
      values.push_back(row % 6 == 1   ? x * 1e30f
                       : row % 6 == 2 ? x * 1e-30f
                       : row % 6 == 3 ? x * 1e-40f
                       : row % 6 == 4 ? 0.0f
                                      : x);
    }
  return values;
}

// Every number within `bound` of the twin's, relatively.
void expectClose(const std::vector<float> &got, const std::vector<float> &want,
                 double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], std::fabs(want[i]) * bound) << i;
}

TEST(CudaElementwise, QuantizeEqualsTheStatedLaw) {
  Random random(3);
  for (int width : {1, 63, 64, 300, 520}) {
    const std::vector<float> values = oddRows(random, 7, width);
    for (const simt::LaunchOptions &options : schedules(2)) {
      DeviceArray<float> input(values);
      HalfRows halves(7, width);
      const abi::QuantizeParams params{input.data(), halves.rows(), 7, width};
      simt::LaunchReport report =
          launchKernel("quantize", abi::rowGrid(7), params, options);
      EXPECT_TRUE(report.isClean()) << report.text();
      expectHalves(halves, values, width);
    }
  }
  {
    const std::vector<float> own = oddRows(random, 7, 300);
    DeviceArray<float> input(own);
    HalfRows halves(7, 300, 2);
    const abi::QuantizeParams params{input.data(), halves.rows(), 7, 300};
    EXPECT_TRUE(launchKernel("quantize", abi::rowGrid(7), params).isClean());
    expectHalves(halves, own, 300, 2);
  }
  std::vector<float> values = uniforms(random, 3 * 100, -1, 1);
  values[150] = std::numeric_limits<float>::quiet_NaN();
  DeviceArray<float> input(values);
  HalfRows halves(3, 100);
  const abi::QuantizeParams params{input.data(), halves.rows(), 3, 100};
  EXPECT_TRUE(launchKernel("quantize", abi::rowGrid(3), params).isClean());
  expectHalves(halves, values, 100);
}

// rms_norm and layer_norm: float32 sums in any order differ by less than 2e-6 here.
TEST(CudaElementwise, NormsEqualTheirTwins) {
  Random random(4);
  for (int width : {5, 256, 577}) {
    constexpr int kRows = 3;
    const std::vector<float> values =
        uniforms(random, std::size_t(kRows * width), -4, 4);
    const std::vector<float> weightValues =
        uniforms(random, std::size_t(width), 0.5f, 2);
    const std::vector<float> biasValues =
        uniforms(random, std::size_t(width), 3, 4);
    DeviceArray<float> input(values), weight(weightValues), bias(biasValues);
    for (const simt::LaunchOptions &options : schedules(3))
      for (float offset : {0.0f, 1.0f}) {
        DeviceArray<float> output(values.size());
        HalfRows halves(kRows, width);
        std::vector<float> want(values.size());
        abi::RmsNormParams params{input.data(),  weight.data(), output.data(),
                                  halves.rows(), kRows,         width,
                                  1e-5f,         offset};
        simt::LaunchReport report =
            launchKernel("rms_norm", abi::rowGrid(kRows), params, options);
        EXPECT_TRUE(report.isClean()) << report.text();
        expectHalves(halves, output.copy(), width);
        params.output = want.data();
        reference::rmsNorm(params, whole(kRows), {});
        expectClose(output.copy(), want, 2e-6);
      }
    DeviceArray<float> output(values.size());
    HalfRows halves(kRows, width);
    std::vector<float> want(values.size());
    abi::LayerNormParams params{input.data(),  weight.data(), bias.data(),
                                output.data(), halves.rows(), kRows,
                                width,         1e-5f,         0};
    EXPECT_TRUE(
        launchKernel("layer_norm", abi::rowGrid(kRows), params).isClean());
    expectHalves(halves, output.copy(), width);
    params.output = want.data();
    reference::layerNorm(params, whole(kRows), {});
    // The bias is at least 3 where a sum of opposite signs would lose digits.
    expectClose(output.copy(), want, 4e-6);
  }
}

// Where a row is smaller than the root of epsilon, epsilon decides.
TEST(CudaElementwise, NormsOfSmallRowsHaveTheirEpsilon) {
  Random random(41);
  const std::vector<float> values = uniforms(random, 2 * 70, -1e-3f, 1e-3f);
  const std::vector<float> ones(70, 1.0f), zeros(70, 0.0f);
  DeviceArray<float> input(values), weight(ones), bias(zeros);
  DeviceArray<float> output(values.size());
  std::vector<float> want(values.size());
  abi::RmsNormParams rms{
      input.data(), weight.data(), output.data(), {}, 2, 70, 1e-5f, 0};
  EXPECT_TRUE(launchKernel("rms_norm", abi::rowGrid(2), rms).isClean());
  rms.output = want.data();
  reference::rmsNorm(rms, whole(2), {});
  expectClose(output.copy(), want, 2e-6);
  abi::LayerNormParams layer{input.data(),
                             weight.data(),
                             bias.data(),
                             output.data(),
                             {},
                             2,
                             70,
                             1e-5f,
                             0};
  EXPECT_TRUE(launchKernel("layer_norm", abi::rowGrid(2), layer).isClean());
  layer.output = want.data();
  reference::layerNorm(layer, whole(2), {});
  // Beside the mean, whose digits small elements lose.
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(output[i], want[i], 1e-6) << i;
}

// A row alone has the bits that it has among others.
TEST(CudaElementwise, NormOfARowAloneIsTheSame) {
  Random random(5);
  const std::vector<float> values = uniforms(random, 4 * 300, -4, 4);
  DeviceArray<float> input(values), weight(uniforms(random, 300, 0.5f, 2));
  DeviceArray<float> all(values.size()), one(300);
  abi::RmsNormParams params{input.data(), weight.data(), all.data(), {}, 4,
                            300,          1e-6f,         0};
  EXPECT_TRUE(launchKernel("rms_norm", abi::rowGrid(4), params).isClean());
  params.input = input.data() + 900;
  params.output = one.data();
  params.numTokens = 1;
  EXPECT_TRUE(launchKernel("rms_norm", abi::rowGrid(1), params).isClean());
  const std::vector<float> last(all.data() + 900, all.data() + 1200);
  EXPECT_TRUE(sameBits(one.copy(), last));
}

TEST(CudaElementwise, ActivationsEqualTheirTwinsBitForBit) {
  Random random(6);
  constexpr int kRows = 7;
  for (int width : {3, 300}) {
    const std::vector<float> gateUp = oddRows(random, 2 * kRows, width);
    for (auto [name, activation] :
         {std::pair{"gated_silu", reference::Activation::Silu},
          {"gated_gelu_tanh", reference::Activation::GeluTanh}}) {
      DeviceArray<float> input(gateUp);
      DeviceArray<float> output(std::size_t(kRows * width));
      HalfRows halves(kRows, width);
      abi::GatedParams params{input.data(), output.data(), halves.rows(), kRows,
                              width};
      simt::LaunchReport report =
          launchKernel(name, abi::rowGrid(kRows), params, schedules(4)[2]);
      EXPECT_TRUE(report.isClean()) << report.text();
      std::vector<float> want(output.size());
      params.output = want.data();
      reference::gated(params, whole(kRows), activation, {});
      EXPECT_TRUE(sameBits(output.copy(), want));
      expectHalves(halves, output.copy(), width);
    }
    for (auto [name, activation] :
         {std::pair{"activate_gelu", reference::Activation::Gelu},
          {"activate_relu", reference::Activation::Relu}}) {
      // The output is the input, and there are half rows.
      DeviceArray<float> values(gateUp, Access::ReadWrite);
      HalfRows halves(2 * kRows, width);
      abi::ActivateParams params{values.data(), values.data(), halves.rows(),
                                 2 * kRows, width};
      EXPECT_TRUE(
          launchKernel(name, abi::rowGrid(2 * kRows), params).isClean());
      std::vector<float> want(gateUp.size());
      params.input = gateUp.data();
      params.output = want.data();
      reference::activate(params, whole(2 * kRows), activation, {});
      EXPECT_TRUE(sameBits(values.copy(), want));
      expectHalves(halves, values.copy(), width);
      // Half rows alone are the same.
      DeviceArray<float> input(gateUp);
      HalfRows alone(2 * kRows, width);
      params = {input.data(), nullptr, alone.rows(), 2 * kRows, width};
      EXPECT_TRUE(
          launchKernel(name, abi::rowGrid(2 * kRows), params).isClean());
      for (int row = 0; row < 2 * kRows; ++row)
        EXPECT_EQ(alone.row(row), halves.row(row));
    }
  }
}

TEST(CudaElementwise, AddCapAndGatherEqualTheirTwinsBitForBit) {
  Random random(7);
  constexpr int kRows = 3, kWidth = 270;
  const std::vector<float> a = uniforms(random, kRows * kWidth, -40, 40);
  const std::vector<float> b = uniforms(random, kRows * kWidth, -40, 40);
  std::vector<float> want(a.size());
  for (float scale : {1.0f, 0.3f}) {
    DeviceArray<float> residual(a, Access::ReadWrite), update(b);
    abi::AddParams params{residual.data(),
                          update.data(),
                          residual.data(),
                          kRows,
                          kWidth,
                          scale,
                          0};
    EXPECT_TRUE(launchKernel("add", abi::rowGrid(kRows), params).isClean());
    params = {a.data(), b.data(), want.data(), kRows, kWidth, scale, 0};
    reference::add(params, whole(kRows));
    EXPECT_TRUE(sameBits(residual.copy(), want));
    for (float softCap : {0.0f, 30.0f}) {
      DeviceArray<float> logits(a, Access::ReadWrite);
      abi::CapParams cap{logits.data(), logits.data(), kRows,
                         kWidth,        scale,         softCap};
      EXPECT_TRUE(launchKernel("cap", abi::rowGrid(kRows), cap).isClean());
      cap = {a.data(), want.data(), kRows, kWidth, scale, softCap};
      reference::cap(cap, whole(kRows));
      EXPECT_TRUE(sameBits(logits.copy(), want));
    }
  }
  DeviceArray<float> input(a), output(2 * kWidth);
  DeviceArray<std::int32_t> rows(std::vector<std::int32_t>{2, 0});
  const abi::GatherRowsParams gather{input.data(), rows.data(), output.data(),
                                     2, kWidth};
  EXPECT_TRUE(launchKernel("gather_rows", abi::rowGrid(2), gather).isClean());
  for (int k = 0; k < kWidth; ++k) {
    EXPECT_EQ(output[std::size_t(k)], a[std::size_t(2 * kWidth + k)]);
    EXPECT_EQ(output[std::size_t(kWidth + k)], a[std::size_t(k)]);
  }
}

TEST(CudaElementwise, RopeTableEqualsItsTwinBitForBit) {
  constexpr int kRows = 5, kDim = 48;
  std::vector<float> frequencies;
  for (int i = 0; i < kDim; ++i)
    frequencies.push_back(std::pow(10000.0f, -float(i % 24) / 24.0f));
  const std::vector<std::int32_t> positions = {0, 1, 77, 4095, 131071};
  // The fourth row's length is behind its position, which then counts.
  const std::vector<std::int32_t> lengths = {1, 4, 80, 3000, 131072};
  DeviceArray<float> invFreq(frequencies);
  DeviceArray<std::int32_t> devicePositions(positions), deviceLengths(lengths);
  for (abi::RopeScaling scaling :
       {abi::RopeScaling::Fixed, abi::RopeScaling::Dynamic,
        abi::RopeScaling::Listed}) {
    DeviceArray<float> output(kRows * kDim);
    std::vector<float> want(output.size());
    abi::RopeTableParams params{devicePositions.data(),
                                deviceLengths.data(),
                                invFreq.data(),
                                output.data(),
                                10000.0,
                                2.0,
                                kRows,
                                kDim,
                                1.1f,
                                2048,
                                scaling,
                                0};
    EXPECT_TRUE(
        launchKernel("rope_table", abi::rowGrid(kRows), params).isClean());
    params.positions = positions.data();
    params.rotaryLengths = lengths.data();
    params.invFreq = frequencies.data();
    params.output = want.data();
    reference::ropeTable(params, whole(kRows));
    EXPECT_TRUE(sameBits(output.copy(), want));
  }
}

// This is also the test of the layout: each element of each encoding is found.
TEST(CudaElementwise, EmbedEqualsItsTwinBitForBit) {
  Random random(8);
  for (const char *encoding : {"f16", "bf16", "i8g32", "i4g32m", "i4c"})
    for (int hidden : {24, 64, 200}) {
      constexpr int kVocab = 37;
      const TestWeights table(random, encoding, kVocab, hidden);
      std::vector<std::int32_t> ids;
      for (int id = 0; id < kVocab; ++id)
        ids.push_back(kVocab - 1 - id);
      DeviceArray<std::int32_t> tokens(ids);
      DeviceArray<float> output(std::size_t(kVocab * hidden));
      std::vector<float> want(output.size());
      const std::vector<float> biasValues =
          uniforms(random, std::size_t(hidden), -1.0f, 1.0f);
      DeviceArray<float> bias(biasValues);
      for (const bool hasBias : {false, true}) {
        abi::EmbedParams params{tokens.data(), table.mma16(), output.data(),
                                kVocab,        hidden,        kVocab,
                                1.5f,          nullptr};
        if (hasBias)
          params.bias = bias.data();
        simt::LaunchReport report = launchKernel(
            std::string("embed_") + encoding, abi::rowGrid(kVocab), params);
        EXPECT_TRUE(report.isClean()) << report.text();
        params = {ids.data(), table.r16(), want.data(), kVocab,
                  hidden,     kVocab,      1.5f,        nullptr};
        if (hasBias)
          params.bias = biasValues.data();
        reference::embed(params, whole(kVocab), table.encoding());
        EXPECT_TRUE(sameBits(output.copy(), want))
            << encoding << " " << hidden << " " << hasBias;
      }
    }
}

} // namespace
} // namespace ingot::test
