#include "runtime/speculate/DraftModel.h"

#include <algorithm>
#include <limits>

namespace ingot {

DraftModel::DraftModel(Executor &executor, KvCache &cache,
                       const DraftModelOptions &options)
    : executor_(executor), cache_(cache), options_(options),
      sampler_(options.targetVocab),
      wide_(std::size_t(options.targetVocab),
            -std::numeric_limits<float>::infinity()) {}

void DraftModel::dropPending(SequenceId id, Sequence &sequence) {
  sequence.pending.clear();
  cache_.rollback(id);
}

void DraftModel::settle(SequenceId id, std::int32_t accepted) {
  auto found = sequences_.find(id);
  if (found == sequences_.end())
    return;
  Sequence &sequence = found->second;
  auto stands = std::min<std::ptrdiff_t>(std::ptrdiff_t(accepted) + 1,
                                         std::ssize(sequence.pending));
  if (stands > 0) {
    cache_.commit(id, std::int32_t(stands));
    sequence.committed.insert(sequence.committed.end(),
                              sequence.pending.begin(),
                              sequence.pending.begin() + stands);
  }
  dropPending(id, sequence);
}

void DraftModel::forget(SequenceId id) {
  if (sequences_.erase(id) != 0)
    cache_.removeSequence(id);
}

// Room in the cache for `rows` more than what is committed; false: no draft.
bool DraftModel::prepare(const DraftRequest &request, std::int32_t rows,
                         std::span<const DraftRequest> all) {
  auto [found, isNew] = sequences_.try_emplace(request.id);
  if (isNew && !cache_.addSequence(request.id)) {
    sequences_.erase(found);
    return false;
  }
  if (cache_.reserve(request.id, rows))
    return true;
  // Those that are not in this step can be computed again.
  std::vector<SequenceId> idle;
  for (const auto &[id, sequence] : sequences_)
    if (std::none_of(all.begin(), all.end(),
                     [&](const DraftRequest &r) { return r.id == id; }))
      idle.push_back(id);
  for (SequenceId id : idle)
    forget(id);
  if (!idle.empty() && cache_.reserve(request.id, rows))
    return true;
  return false;
}

// Appends the draft's own choice; false where the draft ends with it.
bool DraftModel::extend(const DraftRequest &request,
                        std::span<const float> logits, Draft &draft) {
  std::copy_n(logits.begin(), options_.commonVocab, wide_.begin());
  auto position = std::int64_t(request.tokens.size() + draft.size());
  auto token = sampler_.choose(wide_, request.sampler->state(), position);
  if (!token)
    return false;
  draft.push_back(*token);
  return !request.sampler->state().isEnd(*token) &&
         request.sampler->advance(*token).isOk();
}

Status DraftModel::runSlice(std::span<const DraftRequest> requests,
                            std::span<const Rows> rows, std::span<Draft> drafts,
                            std::vector<bool> &isActive) {
  StepPlan plan;
  for (const Rows &part : rows) {
    std::int32_t firstRow = plan.numRows();
    const DraftRequest &request = requests[part.request];
    plan.sequences.push_back(
        {request.id, firstRow, std::int32_t(part.tokens.size()), part.first,
         options_.rotary.lengthFor(request.promptTokens, request.maxTokens)});
    plan.tokens.insert(plan.tokens.end(), part.tokens.begin(),
                       part.tokens.end());
    if (part.wantsLogits)
      plan.logitRows.push_back(plan.numRows() - 1);
  }
  INGOT_RETURN_IF_ERROR(executor_.run(plan, cache_));
  ++numSteps_;
  std::int32_t logit = 0;
  for (const Rows &part : rows) {
    std::size_t r = part.request;
    if (part.wantsLogits)
      isActive[r] = extend(requests[r], executor_.logits(logit++), drafts[r]);
  }
  return Status::ok();
}

// In as few steps as the executor's limits allow.
Status DraftModel::run(std::span<const DraftRequest> requests,
                       std::span<const Rows> rows, std::span<Draft> drafts,
                       std::vector<bool> &isActive) {
  const StepLimits &limits = executor_.limits();
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    std::int64_t tokens = 0, logits = 0;
    for (; end < rows.size(); ++end) {
      tokens += std::ssize(rows[end].tokens);
      logits += rows[end].wantsLogits;
      if (tokens > limits.maxTokens || logits > limits.maxLogitRows ||
          std::int64_t(end - begin) >= limits.maxSequences)
        break;
    }
    if (end == begin)
      return Status::internal("the draft model has no room for a row");
    INGOT_RETURN_IF_ERROR(
        runSlice(requests, rows.subspan(begin, end - begin), drafts, isActive));
    begin = end;
  }
  return Status::ok();
}

Status DraftModel::propose(std::span<const DraftRequest> requests,
                           std::span<Draft> drafts) {
  std::vector<bool> isActive(requests.size(), false);
  std::vector<Rows> rows;

  // 1. Each sequence's final tokens that are not in the cache yet; the last
  //    one's logits give the first guess.
  std::int32_t budget = executor_.limits().maxTokens;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const DraftRequest &request = requests[r];
    auto size = std::int32_t(request.tokens.size());
    if (size < 1 || size + request.length - 1 > options_.context)
      continue;
    if (auto found = sequences_.find(request.id); found != sequences_.end()) {
      Sequence &known = found->second;
      dropPending(request.id, known); // of a step that failed
      if (std::ssize(known.committed) >= size ||
          !std::equal(known.committed.begin(), known.committed.end(),
                      request.tokens.begin()))
        forget(request.id);
    }
    auto known = sequences_.find(request.id);
    std::int32_t first = known == sequences_.end()
                             ? 0
                             : std::int32_t(known->second.committed.size());
    auto fresh = request.tokens.subspan(std::size_t(first));
    std::int32_t vocab =
        std::min(options_.commonVocab, executor_.limits().vocab);
    bool isKnown = std::all_of(fresh.begin(), fresh.end(),
                               [&](std::int32_t t) { return t < vocab; });
    std::int32_t count = std::min(size - first, budget);
    bool isWhole = first + count == size;
    if (!isKnown || count < 1 ||
        !prepare(request, count + (isWhole ? request.length - 1 : 0), requests))
      continue;
    budget -= count;
    rows.push_back({r, first, fresh.first(std::size_t(count)), isWhole});
  }
  auto abandon = [&] {
    for (const DraftRequest &request : requests)
      forget(request.id);
  };
  if (Status status = run(requests, rows, drafts, isActive); !status) {
    abandon();
    return status;
  }
  for (const Rows &part : rows) {
    // The last token's row waits, so that it can run again for its logits.
    SequenceId id = requests[part.request].id;
    Sequence &sequence = sequences_.at(id);
    auto done = part.tokens.first(part.tokens.size() - part.wantsLogits);
    cache_.commit(id, std::int32_t(done.size()));
    sequence.committed.insert(sequence.committed.end(), done.begin(),
                              done.end());
    if (part.wantsLogits)
      sequence.pending.push_back(part.tokens.back());
  }

  // 2. One more guess at a time, for all that go on together.
  for (;;) {
    rows.clear();
    for (std::size_t r = 0; r < requests.size(); ++r) {
      if (!isActive[r] || std::ssize(drafts[r]) >= requests[r].length)
        continue;
      Sequence &sequence = sequences_.at(requests[r].id);
      std::size_t at = drafts[r].size() - 1;
      sequence.pending.push_back(drafts[r][at]);
      rows.push_back(
          {r, std::int32_t(requests[r].tokens.size() + at),
           std::span<const std::int32_t>(&sequence.pending.back(), 1), true});
    }
    if (rows.empty())
      return Status::ok();
    if (Status status = run(requests, rows, drafts, isActive); !status) {
      abandon();
      return status;
    }
  }
}

} // namespace ingot
