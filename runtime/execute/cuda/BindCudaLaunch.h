// A launch of a cuda target, bound: the params of its kernel with every pointer that
// cannot change, and its variants as functions of the driver. A step sets row counts,
// looks the variant up and computes the grid.
#pragma once

#include "runtime/execute/cuda/AttentionTiles.h"
#include "runtime/execute/cuda/Device.h"
#include "runtime/memory/KvCache.h"
#include "runtime/plan/CudaAbi.h"
#include "runtime/plan/CudaExpertsAbi.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::cuda {

union CudaParams {
  abi::EmbedParams embed;
  abi::RopeTableParams ropeTable;
  abi::RmsNormParams rmsNorm;
  abi::LayerNormParams layerNorm;
  abi::QuantizeParams quantize;
  abi::LinearParams linear;
  abi::GatedParams gated;
  abi::ActivateParams activate;
  abi::AddParams add;
  abi::CapParams cap;
  abi::RopeCacheWriteParams ropeCacheWrite;
  abi::GatherRowsParams gatherRows;
  abi::CudaAttentionParams attention;
  abi::CudaRouteParams route;
  abi::OrderSlotsParams orderSlots;
  abi::CudaDispatchParams dispatch;
  abi::ExpertLinearParams expertLinear;
  abi::CombineParams combine;
};

// A kernel of the plan as the driver knows it.
struct BoundKernel {
  std::uint32_t kernel = 0; // of the target
  FunctionHandle function = nullptr;
  abi::KernelGeometry geometry{};
};

struct CudaVariant {
  std::int32_t last = 0; // serves row counts up to this; 0: any
  BoundKernel kernel;
  std::uint64_t uses = 0;
};

struct CudaLaunch {
  std::string name;
  std::int32_t layer = -1;
  fbs::Params op = fbs::Params::NONE;
  fbs::Domain domain = fbs::Domain::token;
  CudaParams params = {};
  std::vector<CudaVariant> variants;

  // Of attention: its tiles, and the two kernels beside the variant.
  std::int32_t shape = -1; // of the executor's attention shapes
  BoundKernel split, merge;
  abi::CudaAttentionMergeParams mergeParams = {};

  double bytesPerRow = 0;      // activations
  double fixedBytes = 0;       // weights
  double bytesPerPosition = 0; // state, for each cached position of the step

  // Of the latest step, and summed for the profile.
  std::uint32_t latestKernel = 0;
  std::uint64_t calls = 0;
  double seconds = 0;
  double bytes = 0;

  CudaVariant &variantFor(std::int32_t rows);
  // Writes row counts into the params.
  void setRows(std::int32_t rows, std::int32_t numSequences);
  // Of every launch but attention.
  abi::KernelGrid grid(const abi::KernelGeometry &geometry,
                       std::int32_t rows) const;
};

// The arrays of a step, as the device sees them.
struct DeviceArrays {
  DevicePointer tokens = 0, positions = 0, rotaryLengths = 0;
  DevicePointer tokenSequence = 0, logitRows = 0;
  struct Group {
    DevicePointer blockTable = 0, sequences = 0;
  };
  std::vector<Group> groups; // one a state group
  struct Shape {
    DevicePointer splitTiles = 0, wideTiles = 0, tokenSlots = 0;
  };
  std::vector<Shape> shapes; // one an attention shape
};

struct CudaBindContext {
  const fbs::Plan *plan = nullptr;
  const fbs::Target *target = nullptr;
  const std::vector<FunctionHandle> *functions = nullptr; // one a kernel
  std::vector<DevicePointer> weights; // one a weight of the plan; 0: not there
  DevicePointer tokenArena = 0, logitArena = 0;
  std::int32_t tokenCapacity = 0, logitCapacity = 0;
  const KvCache *cache = nullptr;
  const DeviceArrays *arrays = nullptr;
  const std::vector<AttentionShape> *shapes = nullptr;
  DevicePointer partialValues = 0, partialStats = 0;

  DevicePointer bufferAddress(std::int32_t index) const;
};

// The shape of an attention launch.
AttentionShape shapeOf(const fbs::Attention &op);

// A kernel of the target by its index.
BoundKernel bindKernel(std::uint32_t index, const CudaBindContext &context);

// The plan has been verified; every index is in range.
CudaLaunch bindCudaLaunch(const fbs::Launch &launch,
                          const CudaBindContext &context);

} // namespace ingot::cuda
