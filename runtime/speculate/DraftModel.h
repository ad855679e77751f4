// Guesses by a smaller model with the same tokenizer. It keeps its own cache
// of what every sequence has said, samples with the request's own parameters,
// noise and mask, and so proposes what it would say in the model's place.
//
// Its cache holds, for each sequence:
//   [0, committed)            rows of final tokens
//   [committed, + pending)    rows of the last final token and of the latest
//                             draft, reserved only: `settle` commits those that
//                             stand and gives back the rest
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/plan/RotaryChoice.h"
#include "runtime/sample/Sampler.h"
#include "runtime/speculate/Drafter.h"

#include <functional>
#include <map>
#include <set>
#include <vector>

namespace ingot {

struct DraftModelOptions {
  std::int32_t targetVocab = 0; // rows of logits of the model that checks
  std::int32_t commonVocab = 0; // ids that are the same token in both
  std::int32_t context = 0;     // tokens that the draft can see
  RotaryChoice rotary{};        // of the draft's plan
};

class DraftModel final : public Drafter {
public:
  // Both outlive the drafter; the cache is its alone.
  DraftModel(Executor &executor, KvCache &cache,
             const DraftModelOptions &options);

  const char *name() const override { return "draft"; }
  // A sequence that is behind (its prompt is new here) is caught up first, all
  // together by one step's rows a call; until then it gets no draft. Nor does
  // one with a token that the draft does not know, one longer than the draft's
  // context, or one for which the draft's cache has no room.
  Status propose(std::span<const DraftRequest> requests,
                 std::span<Draft> drafts) override;
  void settle(SequenceId id, std::int32_t accepted) override;
  void forget(SequenceId id) override;

  std::uint64_t numSteps() const { return numSteps_; } // of the draft model

private:
  struct Sequence {
    std::vector<std::int32_t> committed; // whose rows are in the cache
    std::vector<std::int32_t> pending;
  };
  // Rows of one request in a step of the draft model.
  struct Rows {
    std::size_t request = 0;
    std::int32_t first = 0; // position
    std::span<const std::int32_t> tokens;
    bool wantsLogits = false;
  };

  bool prepare(const DraftRequest &request, std::int32_t rows,
               std::span<const DraftRequest> all);
  Status run(std::span<const DraftRequest> requests, std::span<const Rows> rows,
             std::span<Draft> drafts, std::vector<bool> &isActive);
  Status runSlice(std::span<const DraftRequest> requests,
                  std::span<const Rows> rows, std::span<Draft> drafts,
                  std::vector<bool> &isActive);
  bool extend(const DraftRequest &request, std::span<const float> logits,
              Draft &draft);
  void dropPending(SequenceId id, Sequence &sequence);

  Executor &executor_;
  KvCache &cache_;
  DraftModelOptions options_;
  Sampler sampler_;
  std::vector<float> wide_; // a row of the draft's logits over targetVocab
  std::map<SequenceId, Sequence> sequences_;
  std::uint64_t numSteps_ = 0;
};

} // namespace ingot
