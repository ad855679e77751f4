// Guesses that a text repeats itself: the longest ending of prompt and output
// that also stands earlier is looked up, the latest such place wins a tie, and
// what followed there is proposed (A. Saxena, "Prompt Lookup Decoding", 2023).
// Costs no model and helps where output copies: summaries, edits, code, lists.
//
//   ... the old mill [by the river] ... I saw the old mill
//           ^ "the old mill" stood here: propose "by the river"
//
// Where the copy reaches the end of what is known it goes on into itself, so a
// text with a period of one token is continued too.
#pragma once

#include "runtime/speculate/Drafter.h"

namespace ingot {

struct NgramOptions {
  // An ending shorter than `least` is no evidence; beyond `most` tokens a
  // longer match is not better, only older.
  std::int32_t least = 2;
  std::int32_t most = 8;
};

class NgramDrafter final : public Drafter {
public:
  explicit NgramDrafter(const NgramOptions &options = {}) : options_(options) {}

  const char *name() const override { return "ngram"; }
  Status propose(std::span<const DraftRequest> requests,
                 std::span<Draft> drafts) override;
  // Everything is read from the tokens; there is nothing to keep.
  void settle(SequenceId, std::int32_t) override {}
  void forget(SequenceId) override {}

  // What follows the best earlier match of the ending of `tokens`.
  static Draft lookUp(std::span<const std::int32_t> tokens, std::int32_t length,
                      const NgramOptions &options);

private:
  NgramOptions options_;
};

} // namespace ingot
