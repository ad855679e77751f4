// What a plan will take, computed before anything is taken: weights (mapped),
// arenas by step capacity, scratch by worker and state by block. The engine
// takes exactly this at the start, and nothing inside the contract runs out.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

struct ContractOptions {
  std::int32_t context =
      0; // tokens of one sequence; 0: the model's, at most 4096
  std::int32_t sequences = 1;    // that run at once with the full context
  std::int32_t stepTokens = 512; // token rows of one step
  std::int32_t logitRows = 0;    // rows of logits of one step; 0: `sequences`
  std::int32_t workers = 1;
  std::uint64_t kvBytes =
      0; // a budget for state; 0: what context x sequences need
};

struct MemoryContract {
  std::int32_t context = 0;
  std::int32_t sequences = 0;
  std::int32_t stepTokens = 0; // rounded up to rows that keep 64-byte alignment
  std::int32_t logitRows = 0;
  std::int32_t workers = 0;
  bool isOnDevice = false; // of a cuda target: all of it lies on the device

  std::uint64_t weightsBytes = 0;
  std::uint64_t tokenArenaBytes = 0;
  std::uint64_t logitArenaBytes = 0;
  std::uint64_t hiddenBytes = 0; // states kept at a cut; 0 without exits
  std::uint64_t scratchBytesPerWorker = 0;
  // Results of attention over parts of a sequence, of a cuda target: the slots for
  // them (CudaAbi.h) and their bytes.
  std::int32_t partialSlots = 0;
  std::uint64_t partialBytes = 0;
  std::uint64_t libraryBytes = 0; // around products by a library (LibraryUse.h)
  struct State {
    std::string name;
    std::string elements; // of keys and values: "f32", "f16" or "i8"
    std::int32_t blocks = 0;
    std::uint64_t blockBytes = 0;
    std::int32_t blockTokens = 0;
    std::int32_t window = 0;
    std::uint64_t bytes() const { return std::uint64_t(blocks) * blockBytes; }
  };
  std::vector<State> states;

  // All but the weights, which on the cpu are mapped and shared with the page cache.
  std::uint64_t privateBytes() const;
  std::uint64_t stateBytes() const;
  // The longest sequence that the state can hold alone.
  std::int64_t tokensThatFit() const;
  // A table for people.
  std::string describe() const;
};

// Fails with OutOfMemory where a budget holds less than one sequence of one
// block, and with InvalidInput where an option is out of range.
Result<MemoryContract> computeContract(const fbs::Plan &plan,
                                       const fbs::Target &target,
                                       const ContractOptions &options);

// Rows of capacity are rounded up to this many, so that every buffer of every
// arena starts 64-byte aligned.
inline constexpr std::int32_t kCapacityRows = 64;

} // namespace ingot
