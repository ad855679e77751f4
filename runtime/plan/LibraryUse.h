// What a cuda target leaves to a library of matrix products (cuBLASLt): variants of
// linear launches whose kernel is a "library_linear". Such a variant unpacks its
// weights, has the library multiply, and finishes with the kernel "library_finish".
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string_view>

namespace ingot {

// What kernels of such variants are for, and the one behind the library.
inline constexpr std::string_view kLibraryLinear = "library_linear";
inline constexpr std::string_view kLibraryFinish = "library_finish";

// Steps of so many rows are never left to a library: they are CUDA graphs.
inline constexpr std::uint32_t kMostRowsWithoutLibrary = 64;
// The most columns of a matrix that may be left to one.
inline constexpr std::uint32_t kMostLibraryColumns = 1 << 23;

struct LibraryUse {
  std::uint32_t numLaunches = 0;  // 0: no library is needed
  std::uint32_t firstRows = 0;    // the fewest rows of a step that it serves
  std::int32_t finishKernel = -1; // of the target
  // Scratch on the device: one launch at a time has it.
  std::uint64_t unpackedBytes = 0;   // the largest matrix as plain float16
  std::uint64_t sumsBytesPerRow = 0; // of the widest result
  bool isUsed() const { return numLaunches > 0; }
  std::uint64_t bytes(std::int32_t stepRows) const;
};

// Of a target that has been verified.
LibraryUse libraryUseOf(const fbs::Target &target);

// What the library may take for itself, on the device.
inline constexpr std::uint64_t kLibraryWorkspaceBytes = 32 << 20;

} // namespace ingot
