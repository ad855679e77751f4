// A launch of the plan, bound: the ABI struct with every pointer that cannot
// change filled in, and its variants as function pointers. A step only sets
// row counts and looks up the variant.
#pragma once

#include "runtime/memory/KvCache.h"
#include "runtime/plan/KernelAbi.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

union KernelParams {
  abi::EmbedParams embed;
  abi::RopeTableParams ropeTable;
  abi::RmsNormParams rmsNorm;
  abi::QuantizeParams quantize;
  abi::LinearParams linear;
  abi::GatedParams gated;
  abi::RopeCacheWriteParams ropeCacheWrite;
  abi::AttentionParams attention;
  abi::AlibiAttentionParams alibiAttention; // begins as attention
  abi::GatherRowsParams gatherRows;
  abi::LayerNormParams layerNorm;
  abi::ActivateParams activate;
  abi::AddParams add;
  abi::CapParams cap;
  abi::RouteParams route;
  abi::OrderSlotsParams orderSlots;
  abi::DispatchParams dispatch;
  abi::ExpertLinearParams expertLinear;
  abi::CombineParams combine;
  abi::PoolParams pool;
};

// The arrays of a step, at addresses that never change.
struct StepArrays {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> rotaryLengths;
  std::vector<std::int32_t> tokenSequence;
  std::vector<std::int32_t> logitRows;
  struct Group {
    std::vector<std::int32_t> blockTable;
    std::vector<abi::SequenceSpan> sequences;
  };
  std::vector<Group> groups; // one a state group
};

struct BoundVariant {
  std::int32_t last = 0; // serves row counts up to this; 0: any
  std::uint32_t kernel = 0;
  abi::KernelFn function = nullptr;
  std::uint64_t uses = 0;
};

struct BoundLaunch {
  const fbs::Launch *planned = nullptr; // what it was bound from
  std::string name;
  std::int32_t layer = -1;
  fbs::Params op = fbs::Params::NONE;
  fbs::Domain domain = fbs::Domain::token;
  KernelParams params = {};
  std::vector<BoundVariant> variants;

  std::int32_t itemsPerRow = 0;  // items are rows times this, or
  std::int32_t fixedItems = 0;   // this many, whatever the rows
  std::int32_t itemMultiple = 1; // slices in multiples of this many items
  double bytesPerRow = 0;        // activations
  double fixedBytes = 0;         // weights
  double bytesPerPosition = 0;   // state, for each cached position of the step
  double seconds = 0;
  double bytes = 0;
  std::uint64_t calls = 0;
  std::uint32_t latestKernel = 0;

  std::int32_t numItems(std::int32_t rows) const {
    return fixedItems != 0 ? fixedItems : itemsPerRow * rows;
  }
  // Items of a claim, for `rows` rows of sequences that have `positions` positions
  // together.
  std::int32_t grain(std::int32_t rows, double positions,
                     std::int32_t workers) const;
  void setRows(std::int32_t rows, std::int32_t numSequences);
  BoundVariant &variantFor(std::int32_t rows);
};

// What launches are bound against. The plan has been verified.
struct BindContext {
  const fbs::Plan *plan = nullptr;
  const fbs::Target *target = nullptr;
  const std::uint8_t *weights = nullptr;
  const std::vector<abi::KernelFn> *functions = nullptr;
  std::uint8_t *tokenArena = nullptr;
  std::uint8_t *logitArena = nullptr;
  std::int32_t tokenCapacity = 0;
  std::int32_t logitCapacity = 0;
  const KvCache *cache = nullptr;
  StepArrays *arrays = nullptr;

  std::uint8_t *bufferData(std::int32_t index) const;
};

BoundLaunch bindLaunch(const fbs::Launch &launch, const BindContext &context);

} // namespace ingot
