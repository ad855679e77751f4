// Requests over tokens. One step is plan -> reserve -> run -> commit, or
// release: nothing that a request can see changes before the commit. Knows
// neither files nor text, so that tests drive it with an executor of their own.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/sample/Sampler.h"
#include "runtime/schedule/Scheduler.h"
#include "runtime/support/Status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
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

struct TokenRequest {
  std::vector<std::int32_t> prompt;
  SamplingParams sampling;
  std::int64_t maxTokens = -1;       // -1: to the end of the context
  std::vector<std::int32_t> stopIds; // beside the model's own
  bool ignoreEos = false;            // the model's own do not stop it
  // Called for each token that is part of the output; false ends the request
  // with FinishReason::Stop.
  std::function<bool(const Choice &)> onToken;
};

// Logits of every position, in order; nothing is sampled.
struct ScoreRequest {
  std::vector<std::int32_t> tokens;
  // `logits` predict the token after `position`; valid during the call.
  std::function<void(std::int32_t position, std::span<const float> logits)>
      onLogits;
};

struct RequestOutcome {
  RequestId id = 0;
  FinishReason reason = FinishReason::Failed;
  Status status;
  std::uint64_t seed = 0;
  std::int32_t promptTokens = 0;
  std::vector<std::int32_t> tokens; // without the id that stopped it
  // Seconds since submit.
  double firstTokenSeconds = 0;
  double totalSeconds = 0;
};

struct CoreOptions {
  std::int32_t context = 0;     // longest prompt and output together
  std::int32_t chunkTokens = 0; // most prompt rows of a sequence in a step
  std::vector<std::int32_t> eosIds;
};

class EngineCore {
public:
  using OnFinish = std::function<void(const RequestOutcome &)>;

  // Both outlive the core.
  EngineCore(Executor &executor, KvCache &cache, CoreOptions options);

  // Refuses, naming the field, what can never run. `onFinish` is called once,
  // from step() or cancel().
  Result<RequestId> submit(TokenRequest request, OnFinish onFinish);
  Result<RequestId> submit(ScoreRequest request, OnFinish onFinish);
  // Ends the request now, in whatever state; false when there is none.
  bool cancel(RequestId id);
  // Removes the request, if it is there, without a word to its receivers: they
  // may be gone already.
  void abandon(RequestId id) noexcept;

  bool isIdle() const { return requests_.empty(); }
  std::size_t numRequests() const { return requests_.size(); }

  // One step. On failure what had been reserved is released, and the requests
  // are as they were.
  Status step();
  Status runUntilIdle();

  // What the steps so far have done.
  struct Counters {
    std::uint64_t steps = 0;
    std::uint64_t promptRows = 0; // token rows that were not the next token
    std::uint64_t decodeRows = 0;
  };
  const Counters &counters() const { return counters_; }
  const CoreOptions &options() const { return options_; }
  const StepPlan &latestPlan() const { return latestPlan_; }

private:
  struct Request {
    RequestId id = 0;
    std::vector<std::int32_t> tokens; // prompt and output
    std::int32_t promptTokens = 0;
    std::int32_t numComputed = 0;
    std::int32_t maxTotal = 0;
    bool isRunning = false;
    bool ignoreEos = false;
    std::vector<std::int32_t> stopIds;
    std::function<bool(const Choice &)> onToken;
    std::function<void(std::int32_t, std::span<const float>)> onLogits;
    std::unique_ptr<SamplerState> sampler; // null: a score request
    OnFinish onFinish;
    std::chrono::steady_clock::time_point submitted;
    double firstTokenSeconds = 0;
  };

  Status checkTokens(const char *field,
                     const std::vector<std::int32_t> &tokens) const;
  Result<RequestId> admit(std::unique_ptr<Request> request);
  void takeRows(Request &request, const StepSequence &rows);
  void takeToken(Request &request, std::span<const float> logits);
  void finish(Request &request, FinishReason reason, Status status = {});
  Request *find(RequestId id);
  bool isStop(const Request &request, std::int32_t token) const;

  Executor &executor_;
  KvCache &cache_;
  CoreOptions options_;
  ScheduleCapacity capacity_;
  Sampler sampler_;
  std::list<std::unique_ptr<Request>> requests_; // in order of arrival
  RequestId nextId_ = 1;
  Counters counters_;
  StepPlan latestPlan_;
};

// Requests whose receivers live on the stack. What is left of them when the
// scope is left, by a failure or by an exception, is abandoned.
class RequestScope {
public:
  RequestScope(EngineCore &core, std::size_t numRequests) : core_(core) {
    ids_.reserve(numRequests); // so that add() cannot fail
  }
  ~RequestScope() {
    for (RequestId id : ids_)
      core_.abandon(id);
  }
  RequestScope(const RequestScope &) = delete;
  RequestScope &operator=(const RequestScope &) = delete;

  void add(RequestId id) { ids_.push_back(id); }

private:
  EngineCore &core_;
  std::vector<RequestId> ids_;
};

} // namespace ingot
