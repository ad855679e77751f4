#include "test/compiler/kernels/KernelFixtures.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ingot::test {

float oddActivation(Random &random, bool withNan) {
  switch (below(random, withNan ? 40 : 39)) {
  case 0:
    return 0.0f;
  case 1:
    return -0.0f;
  case 2:
    return 1e-41f;
  case 3:
    return uniform(random, -1e4f, 1e4f);
  case 39:
    return std::numeric_limits<float>::quiet_NaN();
  default:
    return uniform(random, -2.0f, 2.0f);
  }
}

static constexpr std::size_t kGuard = 256;

PoisonedBuffer::PoisonedBuffer(std::size_t sizeBytes)
    : bytes_(sizeBytes + 2 * kGuard + 64, 0xff), size_(sizeBytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + kGuard;
  start_ = bytes_.data() + kGuard + (64 - address % 64) % 64;
}

bool PoisonedBuffer::guardIntact() const {
  return std::all_of(bytes_.data(), static_cast<const std::uint8_t *>(start_),
                     [](std::uint8_t b) { return b == 0xff; }) &&
         std::all_of(static_cast<const std::uint8_t *>(start_) + size_,
                     bytes_.data() + bytes_.size(),
                     [](std::uint8_t b) { return b == 0xff; });
}

const MappedKernels &kernelsFor(const codegen::CpuLevel &level,
                                const std::string &op,
                                const codegen::KernelConfig &config) {
  static std::map<std::string, MappedKernels> compiled;
  auto variants = codegen::variantsFor(op, config);
  if (!variants) {
    ADD_FAILURE() << variants.status().message();
    std::abort();
  }
  std::vector<codegen::KernelRequest> requests;
  std::string key = level.name;
  for (const codegen::KernelVariant &variant : *variants) {
    requests.push_back({variant.name, variant.op, variant.constants});
    key += " " + variant.name;
  }
  auto found = compiled.find(key);
  if (found == compiled.end()) {
    auto kernels = MappedKernels::compile(level, requests);
    if (!kernels) {
      ADD_FAILURE() << kernels.status().message();
      std::abort();
    }
    found = compiled.emplace(key, std::move(*kernels)).first;
  }
  return found->second;
}

void runSliced(abi::KernelFn kernel, const void *params, int items,
               std::uint32_t scratchBytes, Random &random) {
  std::vector<abi::Slice> slices;
  for (int begin = 0; begin < items;) {
    const int end =
        begin + 1 +
        below(random, std::min(items - begin, 1 + below(random, items)));
    slices.push_back({begin, end, below(random, 2), 0, nullptr});
    begin = end;
  }
  std::shuffle(slices.begin(), slices.end(), random);
  for (abi::Slice &slice : slices) {
    PoisonedBuffer scratch(scratchBytes);
    slice.scratch = scratch.data();
    kernel(params, &slice);
    EXPECT_TRUE(scratch.guardIntact())
        << "wrote past the scratch of " << scratchBytes << " bytes";
  }
}

::testing::AssertionResult sameFloats(const float *got, const float *want,
                                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::bit_cast<std::uint32_t>(got[i]) !=
            std::bit_cast<std::uint32_t>(want[i]) &&
        !(std::isnan(got[i]) && std::isnan(want[i])))
      return ::testing::AssertionFailure()
             << "element " << i << ": got " << got[i] << ", want " << want[i];
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult sameBytes(const PoisonedBuffer &got,
                                     const PoisonedBuffer &want) {
  if (!got.guardIntact())
    return ::testing::AssertionFailure() << "wrote outside the buffer";
  for (std::size_t i = 0; i + 4 <= got.size(); i += 4) {
    std::uint32_t a, b;
    std::memcpy(&a, got.data() + i, 4);
    std::memcpy(&b, want.data() + i, 4);
    if (a != b && !(std::isnan(std::bit_cast<float>(a)) &&
                    std::isnan(std::bit_cast<float>(b))))
      return ::testing::AssertionFailure()
             << "byte " << i << ": got " << std::hex << a << ", want " << b
             << std::dec << " (" << std::bit_cast<float>(a) << ", "
             << std::bit_cast<float>(b) << ")";
  }
  return ::testing::AssertionSuccess();
}

std::string levelTestName(const ::testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

} // namespace ingot::test
