#include "runtime/memory/MemoryContract.h"

#include "runtime/memory/KvCache.h"
#include "runtime/plan/Container.h"
#include "runtime/plan/CudaAbi.h"
#include "runtime/plan/LibraryUse.h"
#include "runtime/plan/TargetWeights.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/support/Printable.h"

#include <algorithm>
#include <cstdio>

namespace ingot {
namespace {

std::string sizeText(std::uint64_t bytes) {
  char text[64];
  double value = double(bytes);
  const char *unit = "B";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  std::snprintf(text, sizeof text, unit[0] == 'B' ? "%.0f %s" : "%.1f %s",
                value, unit);
  return text;
}

Status checkRange(const char *name, std::int64_t value, std::int64_t low,
                  std::int64_t high) {
  if (value < low || value > high)
    return Status::invalid(std::string(name) + " is " + std::to_string(value) +
                           ", expected " + std::to_string(low) + " to " +
                           std::to_string(high));
  return Status::ok();
}

std::int32_t roundUpRows(std::int32_t rows) {
  return (rows + kCapacityRows - 1) / kCapacityRows * kCapacityRows;
}

// Slots for the parts of the sequences that run at once, one query each, or of some
// queries of few sequences: a step with more of them takes kernels that need none.
constexpr std::int64_t kLeastQueries = 16;
Status addPartials(const fbs::Target &target, MemoryContract &contract) {
  std::int64_t parts =
      (std::int64_t(contract.context) + abi::kSegmentTokens - 1) /
      abi::kSegmentTokens;
  std::int64_t slots =
      parts * std::max<std::int64_t>(contract.sequences, kLeastQueries);
  std::int64_t bytes = 0;
  for (const fbs::ProgramSegment *segment : *target.segments())
    for (const fbs::Launch *launch : *segment->launches())
      if (auto *op = launch->params_as_Attention()) {
        std::int64_t width = std::int64_t(op->heads()) * op->head_dim();
        if (slots > INT32_MAX || width * slots > (std::int64_t(1) << 40))
          return Status::invalid(std::to_string(slots) +
                                 " parts of sequences with " +
                                 std::to_string(width) + " columns overflow");
        bytes = std::max(
            bytes, abi::partialValuesBytes(slots, op->heads(), op->head_dim()) +
                       abi::partialStatsBytes(slots, op->heads()));
      }
  contract.partialSlots = std::int32_t(slots);
  contract.partialBytes = std::uint64_t(bytes);
  return Status::ok();
}

} // namespace

std::uint64_t MemoryContract::stateBytes() const {
  std::uint64_t sum = 0;
  for (const State &state : states)
    sum += state.bytes();
  return sum;
}

std::uint64_t MemoryContract::privateBytes() const {
  return tokenArenaBytes + logitArenaBytes + hiddenBytes + partialBytes +
         libraryBytes + scratchBytesPerWorker * workers + stateBytes();
}

std::int64_t MemoryContract::tokensThatFit() const {
  std::int64_t tokens = std::int64_t(1) << 40;
  for (const State &state : states)
    if (state.window == 0)
      tokens = std::min(tokens, std::int64_t(state.blocks) * state.blockTokens);
  return tokens;
}

std::string MemoryContract::describe() const {
  std::string text;
  auto row = [&](const std::string &name, std::uint64_t bytes,
                 const std::string &how) {
    char line[256];
    std::snprintf(line, sizeof line, "  %-18s %12s  %s\n", name.c_str(),
                  sizeText(bytes).c_str(), how.c_str());
    text += line;
  };
  row("weights", weightsBytes,
      isOnDevice ? "copied to the device" : "mapped from the file, shared");
  row("token arena", tokenArenaBytes,
      std::to_string(stepTokens) + " token rows a step");
  row("logit arena", logitArenaBytes,
      std::to_string(logitRows) + " rows of logits a step");
  if (hiddenBytes != 0)
    row("states at exits", hiddenBytes,
        std::to_string(stepTokens) + " token rows a step");
  if (isOnDevice)
    row("parts of attention", partialBytes,
        std::to_string(partialSlots) + " parts of a sequence");
  else
    row("scratch", scratchBytesPerWorker * workers,
        std::to_string(workers) + " workers");
  if (libraryBytes != 0)
    row("products by library", libraryBytes,
        "a matrix and its sums, and what cuBLASLt works in");
  for (const State &state : states)
    row("state " + printable(state.name), state.bytes(),
        std::to_string(state.blocks) + " blocks of " +
            std::to_string(state.blockTokens) + " tokens, " +
            sizeText(state.blockBytes) + " each, " + state.elements);
  row("taken at start", privateBytes(), "all but the weights");
  text += "  fits: " + std::to_string(sequences) + " x " +
          std::to_string(context) + " tokens; the longest alone " +
          std::to_string(tokensThatFit()) + "\n";
  return text;
}

Result<MemoryContract> computeContract(const fbs::Plan &plan,
                                       const fbs::Target &target,
                                       const ContractOptions &options) {
  std::int64_t modelContext = plan.model()->context();
  MemoryContract contract;
  contract.context =
      options.context != 0
          ? options.context
          : std::int32_t(std::min<std::int64_t>(modelContext, 4096));
  INGOT_RETURN_IF_ERROR(
      checkRange("context", contract.context, 1, modelContext));
  INGOT_RETURN_IF_ERROR(checkRange("sequences", options.sequences, 1, 4096));
  INGOT_RETURN_IF_ERROR(
      checkRange("step tokens", options.stepTokens, 1, 65536));
  INGOT_RETURN_IF_ERROR(checkRange("logit rows", options.logitRows, 0, 65536));
  INGOT_RETURN_IF_ERROR(checkRange("workers", options.workers, 1, 1024));
  contract.sequences = options.sequences;
  // Every running sequence gets at least its one decoded token in each step.
  contract.stepTokens =
      roundUpRows(std::max(options.stepTokens, options.sequences));
  contract.logitRows =
      roundUpRows(std::max(options.logitRows, options.sequences));
  contract.workers = options.workers;

  // Items of attention are counted in 32 bits.
  for (const fbs::ProgramSegment *segment : *target.segments())
    for (const fbs::Launch *launch : *segment->launches())
      if (auto *attention = launch->params_as_Attention())
        if (std::int64_t(attention->heads()) * contract.stepTokens > INT32_MAX)
          return Status::invalid(
              "step tokens " + std::to_string(contract.stepTokens) + " times " +
              std::to_string(attention->heads()) + " heads overflow");

  if (std::int64_t(target.slots()) * contract.stepTokens > INT32_MAX)
    return Status::invalid(
        "step tokens " + std::to_string(contract.stepTokens) + " times " +
        std::to_string(target.slots()) + " experts overflow");

  contract.isOnDevice = isCuda(target);
  // Each of several targets may have its own packing of the same weights.
  contract.weightsBytes =
      plan.targets()->size() == 1
          ? plan.weights_bytes()
          : weightBytesOfTarget(plan, target, container::kTensorAlignment);
  contract.tokenArenaBytes =
      target.token_arena_bytes() * std::uint64_t(contract.stepTokens);
  contract.logitArenaBytes =
      target.logit_row_arena_bytes() * std::uint64_t(contract.logitRows);
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      int cut = target.segments()->Get(exit->after() - 1)->output();
      contract.hiddenBytes = std::max<std::uint64_t>(
          contract.hiddenBytes, target.buffers()->Get(cut)->row_bytes() *
                                    std::uint64_t(contract.stepTokens));
    }
  for (const fbs::Kernel *kernel : *target.kernels())
    contract.scratchBytesPerWorker =
        std::max<std::uint64_t>(contract.scratchBytesPerWorker,
                                (kernel->scratch_bytes() + 63) / 64 * 64);

  if (contract.isOnDevice)
    INGOT_RETURN_IF_ERROR(addPartials(target, contract));
  if (contract.isOnDevice)
    contract.libraryBytes = libraryUseOf(target).bytes(contract.stepTokens);

  std::uint64_t wanted = 0;
  for (const fbs::StateGroup *group : *plan.states()) {
    GroupGeometry geometry = GroupGeometry::of(*group);
    MemoryContract::State state;
    state.name = geometry.name;
    state.elements = fbs::EnumNameDType(group->dtype());
    state.blockTokens = geometry.blockTokens;
    state.window = geometry.window;
    std::int64_t blocks =
        std::int64_t(blocksForTokens(contract.context, geometry.blockTokens,
                                     geometry.window, contract.stepTokens)) *
        contract.sequences;
    std::uint64_t bytes = 0;
    if (blocks > INT32_MAX ||
        __builtin_mul_overflow(geometry.layerBytes,
                               std::uint64_t(geometry.layers),
                               &state.blockBytes) ||
        __builtin_mul_overflow(state.blockBytes, std::uint64_t(blocks),
                               &bytes) ||
        __builtin_add_overflow(wanted, bytes, &wanted))
      return Status::outOfMemory("state \"" + state.name +
                                 "\": size overflows");
    state.blocks = std::int32_t(blocks);
    contract.states.push_back(std::move(state));
  }
  if (options.kvBytes != 0 && wanted > options.kvBytes) {
    // Every group shrinks by the same share; what fits is then less than
    // sequences x context, and admission keeps to it.
    for (MemoryContract::State &state : contract.states) {
      auto share = static_cast<std::int32_t>(
          double(state.blocks) * double(options.kvBytes) / double(wanted));
      if (share < 1)
        return Status::outOfMemory(
            "a state budget of " + std::to_string(options.kvBytes) +
            " bytes holds no block of \"" + state.name + "\"; " +
            std::to_string(wanted) + " bytes hold " +
            std::to_string(contract.sequences) + " x " +
            std::to_string(contract.context) + " tokens");
      state.blocks = share;
    }
    contract.context = std::int32_t(
        std::min<std::int64_t>(contract.context, contract.tokensThatFit()));
  }
  return contract;
}

} // namespace ingot
