// One sequence of a request from submit to end: what a step reads and changes.
// Internal to the engine. A request of n copies is one sequence until its
// prompt is done, and n from then on.
#pragma once

#include "runtime/memory/PrefixIndex.h"
#include "runtime/sample/Sampler.h"
#include "runtime/support/Status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

using RequestId = std::uint64_t;

enum class FinishReason {
  Stop,      // a stop id, a stop string, or the receiver's word
  Length,    // max tokens, or the end of the context
  Cancelled, // by cancel()
  Failed,    // `status` says why; other requests go on
};
const char *finishReasonName(FinishReason reason);

struct RequestOutcome {
  RequestId id = 0;
  std::int32_t copy = 0; // which of the request's copies this is the end of
  FinishReason reason = FinishReason::Failed;
  Status status;
  std::uint64_t seed = 0; // of this copy
  std::int32_t promptTokens = 0;
  std::int32_t cachedTokens = 0;    // of the prompt, not computed again
  std::vector<std::int32_t> tokens; // without the id that stopped it
  std::optional<Choice> ending;     // the id that stopped it
  std::int32_t preemptions = 0;
  // Seconds. The first three since submit; 0 where it did not come to that.
  double queueSeconds = 0; // until its first row was scheduled
  double firstTokenSeconds = 0;
  double totalSeconds = 0;
  double interTokenSeconds = 0; // the mean between tokens
  double longestGapSeconds = 0; // the longest between tokens
};

using OnFinish = std::function<void(const RequestOutcome &)>;

struct Request {
  using Clock = std::chrono::steady_clock;

  RequestId requestId = 0;
  std::uint64_t sequence = 0; // in the cache and in plans: requestId + copy
  std::int32_t copy = 0;
  std::int32_t copies = 1; // to be made when the prompt is done

  std::vector<std::int32_t> tokens; // prompt and output
  // `tokens` and, after them, the guesses of the coming step; empty where it
  // has none.
  std::vector<std::int32_t> drafted;
  std::int32_t promptTokens = 0;
  std::int32_t maxTotal = 0;
  std::int32_t rotaryLength = 0; // fixed at admission, also of its copies
  std::int32_t numComputed = 0;  // of tokens, in the cache
  std::int32_t numScored = 0;    // positions whose logits have been given out
  std::int32_t numCharged = 0;   // positions that its client has been charged
  // A row of its output leaves at the first exit that is this sure of its first
  // choice; 0: none does.
  double exitThreshold = 0;
  // The exit at which each row of the output left, from its first; the number
  // of exits where it did not. Kept for rows that are computed again.
  std::vector<std::int32_t> exits;
  bool isRunning = false;

  std::int32_t priority = 0;
  std::string client;
  PrefixScope scope;
  bool reusePrefix = true;

  bool ignoreEos = false;
  std::vector<std::int32_t> stopIds;
  std::unique_ptr<SamplerState> sampler; // null: a score request
  std::function<bool(std::int32_t, const Choice &)> onToken;
  std::function<void(std::int32_t, const Choice &)> onPromptToken;
  std::function<void(std::int32_t, std::span<const float>)> onLogits;
  OnFinish onFinish;
  std::optional<Choice> ending;

  Clock::time_point submitted;
  Clock::time_point latestToken;
  std::int32_t cachedTokens = 0;
  std::int32_t preemptions = 0;
  double queueSeconds = 0;
  double firstTokenSeconds = 0;
  double longestGapSeconds = 0;

  // Rows from this position on want logits.
  std::int32_t firstLogit() const {
    return onLogits || onPromptToken ? numScored
                                     : std::int32_t(tokens.size()) - 1;
  }
  bool isScore() const { return sampler == nullptr; }
  // No exit is ever sure to 1.
  bool mayExit() const { return exitThreshold > 0 && exitThreshold < 1; }
  // What may come from, and go to, the cached prefixes of other requests: not
  // the rows of an output that may have left early.
  std::span<const std::int32_t> shareableTokens() const {
    return std::span(tokens).first(mayExit() ? std::size_t(promptTokens)
                                             : tokens.size());
  }
  std::int32_t numDrafts() const {
    return drafted.empty() ? 0 : std::int32_t(drafted.size() - tokens.size());
  }
};

// Copy `copy` of a request with this seed samples with this one: copies differ
// and can be asked for again, one at a time.
inline std::uint64_t seedOfCopy(std::uint64_t seed, std::int32_t copy) {
  return seed + std::uint64_t(copy);
}

} // namespace ingot
