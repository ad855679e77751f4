#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include "compiler/package/MmaTiles.h"
#include "test/simt/Half.h"

#include <bit>
#include <cmath>

namespace ingot::test {

using simt::floatToHalf;
using simt::halfToFloat;

std::vector<float> uniforms(Random &random, std::size_t size, float low,
                            float high) {
  std::vector<float> values(size);
  for (float &value : values)
    value = uniform(random, low, high);
  return values;
}

std::vector<simt::LaunchOptions> schedules(std::uint64_t seed) {
  std::vector<simt::LaunchOptions> all;
  for (simt::Schedule schedule :
       {simt::Schedule::RoundRobin, simt::Schedule::Reverse,
        simt::Schedule::Random, simt::Schedule::WarpFirst}) {
    simt::LaunchOptions options;
    options.schedule = schedule;
    options.seed = seed + all.size();
    options.async = simt::AsyncMode(all.size() % 3);
    options.switchOdds = schedule == simt::Schedule::Random ? 11 : 0;
    all.push_back(options);
  }
  return all;
}

// ---- half rows ----
HalfRows::HalfRows(int numRows, int width, int parts)
    : width_(width), parts_(parts), rowBytes_(abi::halfRowBytes(width, parts)),
      bytes_(std::size_t(numRows) * std::size_t(rowBytes_)) {}

HalfRows HalfRows::of(const std::vector<float> &values, int width, int parts) {
  const int numRows = int(values.size()) / width;
  HalfRows made(numRows, width, parts);
  for (int row = 0; row < numRows; ++row) {
    float largest = 0;
    bool isFinite = true;
    for (int k = 0; k < width; ++k) {
      const float size = std::fabs(values[std::size_t(row * width + k)]);
      isFinite = isFinite && std::isfinite(size);
      largest = std::max(largest, size);
    }
    float scale = std::nanf("");
    if (isFinite)
      scale = largest > 0
                  ? std::ldexp(1.0f, std::max(std::ilogb(largest) - 14, -126))
                  : 1.0f;
    std::uint8_t *own = made.bytes_.data() + row * made.rowBytes_;
    for (int k = 0; k < abi::cudaPaddedK(width); ++k) {
      const float value = k < width && isFinite
                              ? values[std::size_t(row * width + k)] / scale
                              : 0.0f;
      auto *halves = reinterpret_cast<std::uint16_t *>(own);
      halves[k] = floatToHalf(value);
      if (parts == 2)
        halves[abi::cudaPaddedK(width) + k] =
            floatToHalf(value - halfToFloat(halves[k]));
    }
    *reinterpret_cast<float *>(own + abi::halfRowScaleOffset(width, parts)) =
        scale;
    // No kernel reads what lies behind the scale.
    simt::markInitialised(
        own, std::size_t(abi::halfRowScaleOffset(width, parts)) + 4);
  }
  return made;
}

abi::QuantizedRows HalfRows::rows() const {
  return {bytes_.data(), rowBytes_,
          std::int32_t(abi::halfRowScaleOffset(width_, parts_)),
          std::int32_t(abi::halfRowRestOffset(width_, parts_))};
}

double HalfRows::valueAt(int row, int k) const {
  const std::uint8_t *own = bytes_.data() + row * rowBytes_;
  const auto *halves = reinterpret_cast<const std::uint16_t *>(own);
  double value = halfToFloat(halves[k]);
  if (parts_ == 2)
    value += halfToFloat(halves[abi::cudaPaddedK(width_) + k]);
  return value * *reinterpret_cast<const float *>(
                     own + abi::halfRowScaleOffset(width_, parts_));
}

std::vector<std::uint8_t> HalfRows::row(int row) const {
  const std::uint8_t *own = bytes_.data() + row * rowBytes_;
  return {own, own + abi::halfRowScaleOffset(width_, parts_) + 4};
}

// ---- weights ----
TestWeights::TestWeights(Random &random, const std::string &encoding, int rows,
                         int columns)
    : encoding_(*codegen::cudaEncoding(encoding)), columns_(columns) {
  const auto code = encoding_.code;
  const std::size_t tiles = std::size_t(rows + 15) / 16;
  const std::size_t tileBytes =
      package::r16TileBytes(code, std::size_t(columns));
  r16Codes_.resize(tiles * tileBytes);
  const bool isFloat =
      code == abi::CudaCode::F16 || code == abi::CudaCode::BF16;
  for (std::size_t i = 0; i < r16Codes_.size(); ++i)
    r16Codes_[i] = std::uint8_t(random());
  if (isFloat) {
    auto *halves = reinterpret_cast<std::uint16_t *>(r16Codes_.data());
    for (std::size_t i = 0; i < r16Codes_.size() / 2; ++i) {
      const float value = uniform(random, -1, 1);
      halves[i] =
          code == abi::CudaCode::F16
              ? floatToHalf(value)
              : std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16);
    }
  }
  const std::size_t groups =
      isFloat ? 0 : std::size_t(abi::cudaGroups(columns, encoding_.group));
  hostScales_.resize(tiles * groups * 16);
  for (auto &scale : hostScales_)
    scale = floatToHalf(uniform(random, 0.005f, 0.02f));
  if (encoding_.minimum) {
    hostMins_.resize(hostScales_.size());
    for (auto &least : hostMins_)
      least = floatToHalf(uniform(random, -0.1f, 0.1f));
  }
  const auto deviceTile = std::size_t(abi::cudaTileBytes(code, columns));
  std::vector<std::uint8_t> packed(tiles * deviceTile);
  for (std::size_t tile = 0; tile < tiles; ++tile)
    package::mmaTile(code, std::size_t(columns), encoding_.minimum,
                     std::span(r16Codes_).subspan(tile * tileBytes, tileBytes),
                     std::span(packed).subspan(tile * deviceTile, deviceTile));
  codes_ = DeviceArray<std::uint8_t>(packed);
  scales_ = DeviceArray<std::uint16_t>(hostScales_);
  mins_ = DeviceArray<std::uint16_t>(hostMins_);
}

abi::PackedWeights TestWeights::mma16() const {
  return {codes_.data(), hostScales_.empty() ? nullptr : scales_.data(),
          hostMins_.empty() ? nullptr : mins_.data()};
}
abi::PackedWeights TestWeights::r16() const {
  return {r16Codes_.data(), hostScales_.empty() ? nullptr : hostScales_.data(),
          hostMins_.empty() ? nullptr : hostMins_.data()};
}
reference::Encoding TestWeights::encoding() const {
  constexpr reference::Code kCodes[] = {
      reference::Code::F16, reference::Code::BF16, reference::Code::I8,
      reference::Code::I4};
  return {kCodes[int(encoding_.code)],
          encoding_.group ? encoding_.group : columns_, encoding_.minimum};
}
float TestWeights::at(int row, int k) const {
  return reference::weightAt(r16(), row, k, columns_, encoding());
}
std::size_t TestWeights::deviceBytes() const {
  return codes_.size() + 2 * (scales_.size() + mins_.size());
}

::testing::AssertionResult sameBits(const std::vector<float> &got,
                                    const std::vector<float> &want) {
  if (got.size() != want.size())
    return ::testing::AssertionFailure()
           << got.size() << " numbers, expected " << want.size();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::bit_cast<std::uint32_t>(got[i]) !=
            std::bit_cast<std::uint32_t>(want[i]) &&
        !(std::isnan(got[i]) && std::isnan(want[i])))
      return ::testing::AssertionFailure()
             << "number " << i << " is " << got[i] << ", expected " << want[i];
  return ::testing::AssertionSuccess();
}

} // namespace ingot::test
