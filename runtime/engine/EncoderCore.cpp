#include "runtime/engine/EncoderCore.h"

#include <algorithm>
#include <cmath>

namespace ingot {

EncoderCore::EncoderCore(Executor &executor, KvCache &cache,
                         std::int32_t context)
    : executor_(executor), cache_(cache),
      longest_(std::min(context, executor.limits().maxTokens)) {
  // What all blocks of a group hold, should that be less.
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    longest_ = std::int32_t(std::min<std::int64_t>(
        longest_, std::int64_t(cache.allocator(g).numBlocks()) *
                      cache.geometry(g).blockTokens));
}

Status EncoderCore::check(std::span<const std::int32_t> tokens) const {
  if (tokens.empty())
    return Status::invalid("the text has no tokens");
  if (std::int64_t(tokens.size()) > longest_)
    return Status::invalid("the text has " + std::to_string(tokens.size()) +
                           " tokens, the longest that is taken has " +
                           std::to_string(longest_) +
                           "; nothing is cut off in silence");
  std::int32_t vocab = executor_.limits().vocab;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return Status::invalid(
          "token id " + std::to_string(tokens[i]) + " at " + std::to_string(i) +
          " is outside the vocabulary of " + std::to_string(vocab));
  return Status::ok();
}

// Takes texts while rows, results, sequences and blocks are left for them.
std::size_t
EncoderCore::reserve(std::span<const std::vector<std::int32_t>> texts,
                     StepPlan &plan) {
  const StepLimits &limits = executor_.limits();
  std::size_t most = std::size_t(
      std::max(0, std::min(limits.maxSequences, limits.maxLogitRows)));
  std::size_t taken = 0;
  for (; taken < std::min(texts.size(), most); ++taken) {
    const std::vector<std::int32_t> &text = texts[taken];
    if (plan.tokens.size() + text.size() > std::size_t(limits.maxTokens))
      break;
    SequenceId id = taken + 1;
    auto rows = std::int32_t(text.size());
    if (!cache_.addSequence(id))
      break;
    if (!cache_.reserve(id, rows)) {
      cache_.removeSequence(id);
      break;
    }
    plan.sequences.push_back({id, plan.numRows(), rows, 0, 0});
    plan.tokens.insert(plan.tokens.end(), text.begin(), text.end());
    plan.logitRows.push_back(plan.numRows() - 1);
  }
  return taken;
}

void EncoderCore::release(const StepPlan &plan) {
  for (const StepSequence &sequence : plan.sequences)
    cache_.removeSequence(sequence.id);
}

Result<std::size_t>
EncoderCore::step(std::span<const std::vector<std::int32_t>> texts,
                  std::vector<Result<Embedding>> &embeddings) {
  if (texts.empty())
    return Status::invalid("there is no text to embed");
  INGOT_RETURN_IF_ERROR(check(texts.front()));
  StepPlan plan;
  // A later text that cannot run ends the step before it.
  std::size_t sound = 1;
  while (sound < texts.size() && check(texts[sound]).isOk())
    ++sound;
  std::size_t taken = reserve(texts.first(sound), plan);
  Status status = taken == 0
                      ? Status::internal("a text of " +
                                         std::to_string(texts.front().size()) +
                                         " tokens does not fit an empty step")
                      : executor_.run(plan, cache_);
  release(plan);
  INGOT_RETURN_IF_ERROR(status);
  for (std::size_t i = 0; i < taken; ++i) {
    std::span<const float> row = executor_.logits(std::int32_t(i));
    if (std::all_of(row.begin(), row.end(),
                    [](float x) { return std::isfinite(x); }))
      embeddings.push_back(Embedding(row.begin(), row.end()));
    else
      embeddings.push_back(Status::internal("the vector of a text of " +
                                            std::to_string(texts[i].size()) +
                                            " tokens is not finite"));
  }
  return taken;
}

Result<std::vector<Embedding>>
EncoderCore::embed(std::span<const std::vector<std::int32_t>> texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (Status status = check(texts[i]); !status)
      return texts.size() == 1
                 ? status
                 : status.withContext("text " + std::to_string(i + 1));
  std::vector<Result<Embedding>> results;
  while (results.size() < texts.size())
    INGOT_RETURN_IF_ERROR(
        step(texts.subspan(results.size()), results).status());
  std::vector<Embedding> embeddings;
  for (Result<Embedding> &result : results) {
    INGOT_RETURN_IF_ERROR(result.status());
    embeddings.push_back(std::move(*result));
  }
  return embeddings;
}

} // namespace ingot
