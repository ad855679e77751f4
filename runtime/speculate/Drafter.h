// Who guesses what a model will say. A guess is checked by the model itself,
// row by row, with the noise of plain decoding: a draft token stands where it
// is the model's own choice. So a wrong guess costs time and never a token.
//
// A drafter sees all sequences of a step together, so that one that runs a
// model runs it in batches:
//
//   propose   guesses for each sequence what comes after its tokens
//   settle    so many of the latest guesses stood; what came of the others is
//             dropped
//   forget    the sequence has ended, or waits to be computed again
#pragma once

#include "runtime/memory/KvCache.h"
#include "runtime/sample/SamplerBranch.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

using Draft = std::vector<std::int32_t>;

struct DraftRequest {
  SequenceId id = 0;
  std::span<const std::int32_t> tokens; // prompt and output; all final
  // The request's own parameters, seed, counts and mask, at the end of
  // `tokens`; what is advanced is taken back by the caller.
  SamplerBranch *sampler = nullptr;
  std::int32_t length = 0; // the most tokens to propose; at least 1
  // Of the whole sequence: its prompt, and the longest that it may become.
  std::int32_t promptTokens = 0;
  std::int32_t maxTokens = 0;
};

class Drafter {
public:
  virtual ~Drafter() = default;

  virtual const char *name() const = 0;

  // drafts[i] is for requests[i], has at most its length and may stay empty.
  // An error is no draft for anyone this time.
  virtual Status propose(std::span<const DraftRequest> requests,
                         std::span<Draft> drafts) = 0;

  // The first `accepted` tokens of the sequence's latest draft stand, and one
  // more token follows them. Not called where the step failed.
  virtual void settle(SequenceId id, std::int32_t accepted) = 0;

  // Also of a sequence that the drafter has never seen.
  virtual void forget(SequenceId id) = 0;
};

} // namespace ingot
