// What drafts add to a step: guesses before it, and after it the rows of those
// that stand. The rest of a step is in EngineCore.cpp.
#include "runtime/engine/EngineCore.h"

namespace ingot {

// Guesses for the sequences that would get one row each.
void EngineCore::propose() {
  std::vector<DraftInput> inputs;
  std::vector<Request *> drafting;
  for (const auto &request : requests_) {
    request->drafted.clear();
    auto size = std::int32_t(request->tokens.size());
    // The last of n guesses that stand is followed by one more token.
    std::int32_t room = request->maxTotal - size - 1;
    // The model's own choice, which a guess is held against, is that of all
    // layers.
    if (!request->isRunning || request->isScore() || request->mayExit() ||
        request->copies != 1 || request->numComputed != size - 1 || room < 1)
      continue;
    inputs.push_back({request->sequence, request->tokens,
                      request->sampler.get(), room, request->promptTokens,
                      request->maxTotal});
    drafting.push_back(request.get());
  }
  if (inputs.empty())
    return;
  std::vector<Draft> drafts = speculator_->propose(inputs);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].empty())
      continue;
    drafting[i]->drafted = drafting[i]->tokens;
    drafting[i]->drafted.insert(drafting[i]->drafted.end(), drafts[i].begin(),
                                drafts[i].end());
  }
}

// Does the guess at `position` stand, whose row the step has run? Then the row
// is final as any other.
bool EngineCore::takeDraft(std::uint64_t sequence, std::int32_t position,
                           std::int32_t token) {
  Request *request = find(sequence);
  if (!request || request->numComputed != position ||
      position >= std::int32_t(request->tokens.size()) ||
      request->tokens[std::size_t(position)] != token)
    return false;
  cache_.commit(sequence, 1, request->tokens);
  ++request->numComputed;
  charge(*request, position);
  return true;
}

// What was rejected leaves nothing behind.
void EngineCore::settleDraft(const StepSequence &rows, std::int32_t numDrafts,
                             std::int32_t numAccepted) {
  totals_.draftedTokens += std::uint64_t(numDrafts);
  totals_.acceptedTokens += std::uint64_t(numAccepted);
  Request *request = find(rows.id);
  if (!request || request->drafted.empty())
    return;
  cache_.rollback(rows.id);
  request->drafted.clear();
  speculator_->settle(rows.id, numDrafts, numAccepted);
}

} // namespace ingot
