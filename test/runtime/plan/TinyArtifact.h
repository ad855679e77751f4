// A one-layer model small enough to build in a test: a complete plan with one
// launch of every operation, float32 weights, and a code segment whose kernels
// only return. Tests change the plan before it is packed.
#pragma once

#include "runtime/plan/Artifact.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ingot::test {

struct TinyShape {
  std::uint32_t vocab = 40, hidden = 32, heads = 4, kvHeads = 2, headDim = 16;
  std::uint32_t ffn = 48, context = 256, rotaryDim = 16;
};

// Kernels by index, in the order of the plan's kernel list.
enum TinyKernel {
  kEmbed,
  kRopeTable,
  kRmsNorm,
  kQuantize,
  kLinearOne,
  kLinearMany,
  kGated,
  kRopeCacheWrite,
  kAttention,
  kGatherRows,
  kNumTinyKernels
};

struct TinyArtifact {
  fbs::PlanT plan;
  std::vector<std::uint8_t> weights;
  std::vector<std::uint8_t> code;

  // Random weights of a fixed seed.
  static TinyArtifact make(const TinyShape &shape = {});

  std::vector<std::uint8_t> planBytes() const;
  std::vector<std::uint8_t> bytes() const; // the whole file
};

// The file's parts, put together with correct checksums.
struct RawSegment {
  container::SegmentKind kind;
  std::vector<std::uint8_t> bytes;
};
std::vector<std::uint8_t>
packContainer(const std::vector<RawSegment> &segments);
// Recomputes the checksums of a file whose segment table can be read.
void fixChecksums(std::vector<std::uint8_t> &file);

// A folder that is gone with the object.
class TempFolder {
public:
  TempFolder();
  ~TempFolder();
  std::string write(const std::string &name,
                    const std::vector<std::uint8_t> &bytes) const;
  std::string path(const std::string &name) const {
    return (root_ / name).string();
  }

private:
  std::filesystem::path root_;
};

} // namespace ingot::test
