// The meaning of a plan, checked once so that nothing later has to: after
// verifyPlan every index, range, offset, size and symbol that the executor
// will follow is known to be inside what it points into. Every string and
// vector that later code reads directly is present (others: listOf, textOf).
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Whether the target is for CUDA devices; any other is for the cpu.
inline constexpr const char *kCudaTarget = "cuda";
bool isCuda(const fbs::Target &target);

// A level of a cuda target by its name: "sm_90" and "sm_90a" are cubins, which run on
// chips of that capability (without a letter also on later ones of the same major),
// "compute_80" is PTX, which runs on any chip from it on.
struct CudaLevel {
  int major = 0;
  int minor = 0;
  char suffix = 0; // 'a', 'f' or 0
  bool isText = false;

  bool runsOn(int deviceMajor, int deviceMinor) const;
  // Nothing where the name is none.
  static std::optional<CudaLevel> parse(std::string_view name);
};

// Writers leave empty lists and strings out; readers see them as empty. Those
// that must not be empty are required by verifyPlan.
inline std::vector<std::int32_t>
listOf(const flatbuffers::Vector<std::int32_t> *list) {
  return list ? std::vector<std::int32_t>(list->begin(), list->end())
              : std::vector<std::int32_t>();
}
inline std::vector<std::string> listOf(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *list) {
  std::vector<std::string> strings;
  if (list)
    for (const flatbuffers::String *text : *list)
      strings.push_back(text->str());
  return strings;
}
inline std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : std::string();
}

struct PlanBounds {
  std::uint64_t weightsBytes = 0; // of the Weights segment
  std::uint64_t codeBytes = 0;    // of the Code segment
};

// Limits that keep every product of sizes within 64 bits.
inline constexpr std::uint64_t kMaxDimension = std::uint64_t(1) << 28;
inline constexpr std::uint64_t kMaxRowBytes = std::uint64_t(1) << 34;
// Experts of one token.
inline constexpr std::uint32_t kMaxSlots = 1024;

Status verifyPlan(const fbs::Plan &plan, const PlanBounds &bounds);

// The launches of one target: operands, shapes, layouts and variants.
Status verifyLaunches(const fbs::Plan &plan, const fbs::Target &target);

// The bytes that a weight's planes take: codes, and each of scales and mins.
struct PlaneBytes {
  std::uint64_t codes = 0;
  std::uint64_t scales = 0;
};
PlaneBytes weightPlaneBytes(const fbs::Weight &weight);

} // namespace ingot
