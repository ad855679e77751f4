// What one launch of a CUDA kernel moves and multiplies, in closed form from its tile
// and its sizes: the figures of the emulator's traces (test/simt), which tests compare
// with these (test/compiler/kernels/cuda/CudaCostTest.cpp). Changing how a kernel reads
// changes this page.
//
// Sectors are of 32 bytes. Each launch is alone: what it reads twice counts twice among
// the requests, once among the bytes.
#pragma once

#include "runtime/plan/CudaAbi.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ingot::cuda {

// Of one kind of memory: weights, the cache, activations, the step's arrays.
struct Stream {
  // Different sectors, in bytes: what memory must deliver, and take, at least.
  double bytesRead = 0;
  double bytesWritten = 0;
  // What the launch itself has written and reads again; the caches still have it.
  double bytesReadBack = 0;
  // Asked for by warps, each request counted: what the caches deliver and take; and
  // the fewest for as many bytes.
  double sectorsRead = 0;
  double sectorsWritten = 0;
  double idealRead = 0;
  double idealWritten = 0;

  double bytes() const { return bytesRead + bytesWritten; }
  double sectors() const { return sectorsRead + sectorsWritten; }
  double ideal() const { return idealRead + idealWritten; }
  Stream &operator+=(const Stream &other);
};

struct LaunchTraffic {
  Stream weights, cache, activations, arrays;
  double flops = 0; // on tensor cores, with what tiles are padded by
  // What the operation cannot do without: elements once, without padding.
  double neededBytes = 0;
  double neededFlops = 0;
  double blocks = 0;
  double conflict =
      1; // passes over the fewest, of the worst access to shared memory

  double bytes() const {
    return weights.bytes() + cache.bytes() + activations.bytes() +
           arrays.bytes();
  }
  double sectors() const {
    return weights.sectors() + cache.sectors() + activations.sectors() +
           arrays.sectors();
  }
  double ideal() const {
    return weights.ideal() + cache.ideal() + activations.ideal() +
           arrays.ideal();
  }
  LaunchTraffic &operator+=(const LaunchTraffic &other);
};

// ---- linear ----
struct LinearWork {
  abi::CudaCode code = abi::CudaCode::F16;
  std::int32_t group = 0;
  bool minimum = false;
  std::int32_t parts = 1; // of an activation
  abi::KernelGeometry geometry{};
  std::int32_t n = 0, k = 0, tokens = 0;
  bool hasBias = false, hasResidual = false;
  // In floats: rows of the output, and of the residual, and their first column.
  std::int64_t outputStride = 0, residualStride = 0, outputColumn = 0;
};
// The tile that a geometry of linearGeometry() belongs to.
abi::LinearTile linearTileOf(const abi::KernelGeometry &geometry);
LaunchTraffic linearTraffic(const LinearWork &work);

// ---- attention ----
enum class KvKind { F16, BF16, I8 };
struct AttentionWork {
  std::int32_t headDim = 0, heads = 0, kvHeads = 0, window = 0;
  KvKind kv = KvKind::F16;
  std::span<const abi::AttentionTile> tiles;
  std::int32_t gridSplits = 0; // blocks beside one another of attention_split
};
// attention_split: a block for each segment of each tile; attention: one for all of
// them. Different bytes of the cache are those of one sequence: tiles with the same
// blockTableOffset share them.
LaunchTraffic attentionTraffic(const AttentionWork &work, bool split);

struct MergeWork {
  std::int32_t heads = 0, headDim = 0;
  std::span<const abi::TokenSlots> rows;
  bool hasHalves = false;
  std::int32_t parts = 1;
};
LaunchTraffic mergeTraffic(const MergeWork &work);

struct RopeWriteWork {
  std::int32_t headDim = 0, heads = 0, kvHeads = 0, rotaryDim = 0;
  KvKind kv = KvKind::F16;
  std::int32_t rows = 0;
  std::int32_t padding = 0; // rows among them that write nothing to the cache
  bool hasNorm = false, isLayerNorm = false, isNormOfRow = false;
  bool hasOwnNorms = false; // weights for each head
  bool interleaved = false;
};
LaunchTraffic ropeWriteTraffic(const RopeWriteWork &work);

// ---- kernels with a block for each row ----
enum class RowOperation {
  RmsNorm,
  LayerNorm,
  Quantize,
  Gated, // rows of twice the width
  Activate,
  Add,
  Cap,
  GatherRows,
  RopeTable, // of `width` cosines and sines
};
struct RowWork {
  RowOperation operation{};
  std::int32_t rows = 0, width = 0;
  bool hasOutput = false, hasHalves = false, hasBias = false;
  std::int32_t parts = 1; // of half rows
};
LaunchTraffic rowTraffic(const RowWork &work);

struct EmbedWork {
  abi::CudaCode code = abi::CudaCode::F16;
  std::int32_t group = 0;
  bool minimum = false;
  std::int32_t rows = 0, width = 0;
};
LaunchTraffic embedTraffic(const EmbedWork &work);

// sample: rows of logits; with noise they are gone through once more.
struct SampleWork {
  std::int32_t rows = 0, vocab = 0;
  bool hasNoise = false;
};
LaunchTraffic sampleTraffic(const SampleWork &work);

// ---- shared memory ----
// Passes over the fewest of one request of a warp: lane i accesses `bytes` at
// addresses[i].
double bankPasses(std::span<const std::int64_t> addresses, std::int32_t bytes);

} // namespace ingot::cuda
