// A language model made of hashing. It keeps its tokens where a real executor
// keeps keys and values, in the cache's blocks, and what it says next depends
// on every token that it finds there: a row that was left behind, a block of
// another sequence or one that was never written changes its words. It has two
// layers and an early exit between them: each layer keeps the tokens for itself.
// A row that runs both hears what the second layer keeps and refuses a position
// that it has not written; one that leaves at the exit fills in something else,
// which changes the words of all rows that see it.
#pragma once

#include "runtime/execute/Executor.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace ingot::test {

struct FakeModelOptions {
  std::int32_t vocab = 40;
  std::int32_t maxTokens = 64;
  std::int32_t maxLogitRows = 64;
  std::int32_t maxSequences = 16;
  // In how many of 1000 places this model differs from the one it follows.
  int disagreement = 0;
  int exitDisagreement = 300; // and its exit from itself
  // Tokens that decide its words, but for the last digits of the logits, which
  // depend on all; 0: all. Few make its words repeat.
  std::int32_t memory = 0;
  // Replaces the hash: the logits after these tokens.
  std::function<std::vector<float>(std::span<const std::int32_t>)> says;
};

class FakeModel final : public Executor {
public:
  explicit FakeModel(const FakeModelOptions &options) : options_(options) {
    limits_.maxTokens = options.maxTokens;
    limits_.maxLogitRows = options.maxLogitRows;
    limits_.maxSequences = options.maxSequences;
    limits_.vocab = options.vocab;
    limits_.numSegments = 2;
    limits_.exitsAfter = {1};
  }

  // One group of `numBlocks` blocks of 4 tokens.
  static KvCache makeCache(std::int32_t numBlocks,
                           const KvCacheOptions &options = {}) {
    GroupGeometry geometry;
    geometry.name = "fake";
    geometry.layers = 1;
    geometry.layerBytes = 64;
    geometry.valueOffset = 32;
    geometry.blockTokens = 4;
    std::vector<std::int32_t> blocks = {numBlocks};
    return std::move(KvCache::create({geometry}, blocks, options)).value();
  }

  // What the model says after `tokens`.
  std::vector<float> logitsAfter(std::span<const std::int32_t> tokens,
                                 bool isExit = false) const {
    if (options_.says)
      return options_.says(tokens);
    std::uint64_t all = hashOf(tokens);
    if (options_.memory > 0 && std::ssize(tokens) > options_.memory)
      tokens = tokens.last(std::size_t(options_.memory));
    std::uint64_t state = hashOf(tokens);
    if (int(mix(state ^ 77) % 1000) < options_.disagreement)
      state = mix(state ^ 12345);
    if (isExit && int(mix(state ^ 99) % 1000) < options_.exitDisagreement)
      state = mix(state ^ 54321);
    std::vector<float> logits(std::size_t(options_.vocab));
    for (std::size_t t = 0; t < logits.size(); ++t)
      logits[t] = float(mix(state + t) % 6000) / 1000.0f +
                  float(mix(all + t) % 1000) / 1e6f;
    return logits;
  }

  const StepLimits &limits() const override { return limits_; }

  Status run(const StepPlan &plan, const KvCache &cache) override {
    INGOT_RETURN_IF_ERROR(checkStepPlan(plan, limits_));
    if (failAt >= 0 && failAt-- == 0)
      return Status::internal("planned failure");
    ++steps;
    largestStep = std::max(largestStep, plan.numRows());
    rows_.clear();
    INGOT_RETURN_IF_ERROR(goOnFrom(plan));
    std::size_t logit = 0;
    bool isWhole = plan.endSegment == -1, isFill = plan.exitFill != -1;
    std::vector<Row> rows;
    for (const StepSequence &sequence : plan.sequences) {
      rotaryLengths.emplace(sequence.id, sequence.rotaryLength);
      auto table = cache.blockTable(sequence.id, 0);
      std::int32_t size = cache.geometry(0).blockTokens;
      std::vector<std::int32_t> first, second;
      for (std::int32_t r = -sequence.firstPosition; r < sequence.numRows;
           ++r) {
        std::int32_t position = sequence.firstPosition + r;
        if (std::size_t(position / size) >= table.size())
          return Status::internal("position without a block");
        // In the block's own bytes, so that it goes where the block goes.
        auto *place = reinterpret_cast<std::int32_t *>(
                          cache.base(0) +
                          std::uint64_t(table[std::size_t(position / size)]) *
                              cache.geometry(0).blockBytes()) +
                      position % size;
        std::int32_t *later = place + 8; // the second layer's, 32 bytes on
        if (r >= 0) {
          std::int32_t token = plan.tokens[std::size_t(sequence.firstRow + r)];
          rows.push_back({sequence.id, position, token});
          if (plan.firstSegment == 0)
            *place = token;
          if (isWhole || isFill)
            *later = isFill ? token + kFilled : token;
        }
        if (isWhole && *later != *place && *later != *place + kFilled)
          return Status::internal("the second layer has not written position " +
                                  std::to_string(position));
        first.push_back(*place);
        second.push_back(*later);
        if (r >= 0 && logit < plan.logitRows.size() &&
            plan.logitRows[logit] == sequence.firstRow + r) {
          rows_.push_back(isWhole ? logitsAfter(second)
                                  : logitsAfter(first, true));
          ++logit;
        }
      }
    }
    if (plan.keepsHidden)
      kept_ = rows;
    numFilled += isFill ? plan.numRows() : 0;
    return Status::ok();
  }
  std::span<const float> logits(std::int32_t row) const override {
    return rows_[std::size_t(row)];
  }
  void setProfiling(bool) override {}
  std::vector<LaunchProfile> profile() const override { return {}; }

  // What a row that leaves has behind the exit is not what all layers make.
  static constexpr std::int32_t kFilled = 1000;

  std::int64_t numFilled = 0;
  int failAt = -1; // the run that fails; -1: none
  int steps = 0;
  std::int32_t largestStep = 0;
  // Of each sequence that has run, all that it has run with.
  std::set<std::pair<std::uint64_t, std::int32_t>> rotaryLengths;

private:
  struct Row {
    SequenceId id;
    std::int32_t position;
    std::int32_t token;
    bool operator==(const Row &) const = default;
  };

  // Rows that go on from kept states are the rows that those are of.
  Status goOnFrom(const StepPlan &plan) const {
    std::size_t row = 0;
    if (plan.firstSegment > 0 && plan.hiddenRows.empty())
      return Status::internal("no states to go on from");
    for (const StepSequence &sequence : plan.sequences)
      for (std::int32_t r = 0; r < sequence.numRows; ++r, ++row) {
        Row wanted{sequence.id, sequence.firstPosition + r, plan.tokens[row]};
        if (plan.firstSegment > 0 &&
            kept_.at(std::size_t(plan.hiddenRows[row])) != wanted)
          return Status::internal("a row goes on from another's state");
      }
    return Status::ok();
  }

  static std::uint64_t hashOf(std::span<const std::int32_t> tokens) {
    std::uint64_t state = 1;
    for (std::int32_t token : tokens)
      state = mix(state ^ std::uint64_t(token + 1));
    return state;
  }
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  FakeModelOptions options_;
  StepLimits limits_;
  std::vector<std::vector<float>> rows_;
  std::vector<Row> kept_;
};

} // namespace ingot::test
