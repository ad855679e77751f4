// Requests over tokens. One step is plan -> reserve -> run -> commit, or
// release: nothing that a request can see changes before the commit. Knows
// neither files nor text, so that tests drive it with an executor of their own.
#pragma once

#include "runtime/engine/EngineMetrics.h"
#include "runtime/engine/Request.h"
#include "runtime/execute/Executor.h"
#include "runtime/plan/RotaryChoice.h"
#include "runtime/sample/Sampler.h"
#include "runtime/schedule/ClientService.h"
#include "runtime/schedule/Scheduler.h"
#include "runtime/schedule/StepCost.h"
#include "runtime/speculate/Speculator.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

inline constexpr std::int32_t kMaxCopies = 128;

// What an early exit of the model is to policy.
struct ExitCurve {
  std::int32_t layers = 0;
  // How often its first choice is the model's, by the probability that the exit
  // gives it; empty: as often as it says.
  std::vector<float> curve;
  double confidence(std::span<const float> logits) const;
};

struct TokenRequest {
  std::vector<std::int32_t> prompt;
  SamplingParams sampling;
  // Lossy where above 0: a row of the output leaves the model at the first exit
  // whose confidence is at least this. 1 is never reached, and as exact as 0.
  double exitThreshold = 0;
  std::int64_t maxTokens = -1;       // -1: to the end of the context
  std::vector<std::int32_t> stopIds; // beside the model's own
  bool ignoreEos = false;            // the model's own do not stop it
  // What each next token may be; each copy follows it on its own. Null: all.
  std::shared_ptr<const LogitsMask> mask;

  std::int32_t priority = 0; // lower runs first
  std::string client;        // who is served fairly beside the others
  // Only requests of equal salt share cached prefixes: what one tenant has
  // sent cannot be told from the times that another sees.
  std::string cacheSalt;
  bool reusePrefix = true; // false: neither finds nor leaves a prefix
  // Outputs of one prompt, which is computed once. Copy i samples with the
  // seed of the request plus i.
  std::int32_t copies = 1;

  // Called for each token that is part of a copy's output; false ends that
  // copy with FinishReason::Stop.
  std::function<bool(std::int32_t copy, const Choice &choice)> onToken;
  // Called for each prompt token but the first, in order: `choice` is the
  // token, its log-probability and the `sampling.logprobs` most likely ones.
  // The logits of every position are needed, so no cached prefix is used.
  std::function<void(std::int32_t position, const Choice &choice)>
      onPromptToken;
};

// Logits of every position, in order; nothing is sampled.
struct ScoreRequest {
  std::vector<std::int32_t> tokens;
  std::int32_t priority = 0;
  std::string client;
  // `logits` predict the token after `position`; valid during the call.
  std::function<void(std::int32_t position, std::span<const float> logits)>
      onLogits;
};

struct CoreOptions {
  std::int32_t context = 0;     // longest prompt and output together
  std::int32_t chunkTokens = 0; // most prompt rows of a sequence in a step
  // A step that decodes takes prompt rows only so far that it is expected to
  // last at most this many times as long as without; 0: no limit.
  double stallFactor = 1.8;
  // And at most this many; 0: no limit of its own.
  std::int32_t mixedPromptTokens = 0;
  std::int32_t maxWaiting = 0; // sequences that may wait; 0: no limit
  SchedulePolicy policy;
  // After each step; always in builds with assertions.
  bool checkInvariants = false;
  std::vector<std::int32_t> eosIds;
  RotaryChoice rotary;          // of the plan
  std::vector<ExitCurve> exits; // those of the executor
};

struct RowChoice;

class EngineCore {
public:
  using OnFinish = ingot::OnFinish;

  // Both outlive the core. With a speculator, decoding sequences are given
  // drafts, which change how many steps a request takes and nothing else.
  EngineCore(Executor &executor, KvCache &cache, CoreOptions options,
             std::unique_ptr<Speculator> speculator = nullptr);

  // Refuses, naming the field, what can never run, and with Busy what a full
  // queue has no room for. `onFinish` is called once for each copy, from step()
  // or cancel().
  Result<RequestId> submit(TokenRequest request, OnFinish onFinish);
  Result<RequestId> submit(ScoreRequest request, OnFinish onFinish);
  // Ends the request now, all its copies, in whatever state; false when there
  // is none.
  bool cancel(RequestId id);
  // Removes the request, if it is there, without a word to its receivers: they
  // may be gone already.
  void abandon(RequestId id) noexcept;

  bool isIdle() const { return requests_.empty(); }
  // Sequences that run or wait.
  std::size_t numRequests() const { return requests_.size(); }

  // One step. On failure what had been reserved is released, and the requests
  // are as they were.
  Status step();
  Status runUntilIdle();

  EngineMetrics metrics() const;
  // What must hold between steps, of the requests and of the cache together.
  Status checkInvariants() const;
  // What the steps so far have done.
  struct Counters {
    std::uint64_t steps = 0;
    std::uint64_t promptRows = 0; // token rows that were not the next token
    std::uint64_t decodeRows = 0;
  };
  const Counters &counters() const { return counters_; }
  const CoreOptions &options() const { return options_; }
  const StepPlan &latestPlan() const { return latestPlan_; }
  const Speculator *speculator() const { return speculator_.get(); }

private:
  class CachePolicyView;

  Status checkTokens(const char *field,
                     const std::vector<std::int32_t> &tokens) const;
  Result<RequestId> admit(std::unique_ptr<Request> request);
  bool finishThoseWithoutTokens();
  void propose();
  Result<ScheduleResult> schedule();
  std::optional<PromptBudget> promptsBesideDecoding() const;
  void preempt(Request &request);
  Status reserve(const ScheduleResult &scheduled);
  void release(const ScheduleResult &scheduled);
  std::int32_t exitOf(const Request &request, std::int32_t position) const;
  Status runStep(const StepPlan &plan);
  Status runWhole(const StepPlan &plan);
  std::optional<std::vector<RowChoice>> plainChoices(const StepPlan &plan);
  std::span<const float> stepLogits(std::size_t logit) const;
  std::int32_t stepToken(std::size_t logit) const;
  void commitExits(const StepPlan &plan);
  void commit(const ScheduleResult &scheduled,
              Request::Clock::time_point start);
  void takeRows(Request &request, const StepSequence &rows);
  void charge(Request &request, std::int32_t firstPosition);
  bool takeDraft(std::uint64_t sequence, std::int32_t position,
                 std::int32_t token);
  void settleDraft(const StepSequence &rows, std::int32_t numDrafts,
                   std::int32_t numAccepted);
  void takeLogits(std::uint64_t sequence, std::int32_t position,
                  std::span<const float> logits, std::int32_t chosen);
  void takePromptLogits(Request &request, std::int32_t position,
                        std::span<const float> logits);
  void takeToken(Request &request, std::span<const float> logits,
                 std::int32_t chosen);
  std::vector<std::uint64_t> fork(Request &request);
  void finish(Request &request, FinishReason reason, Status status = {});
  Request *find(std::uint64_t sequence);
  bool isStop(const Request &request, std::int32_t token) const;

  Executor &executor_;
  KvCache &cache_;
  CoreOptions options_;
  ScheduleCapacity capacity_;
  Sampler sampler_;
  std::unique_ptr<Speculator> speculator_;       // null: no drafts
  std::list<std::unique_ptr<Request>> requests_; // in order of arrival
  RequestId nextId_ = 1;
  ClientService service_;
  StepCost stepCost_;
  Counters counters_;
  EngineMetrics totals_; // what is counted from the start
  StepPlan latestPlan_;
  // Of a step that was run in parts: the logits, and (row, exit) of each row
  // that decided where to leave.
  std::vector<std::vector<float>> stepLogits_;
  std::vector<std::pair<std::int32_t, std::int32_t>> stepExits_;
  bool stepChose_ = false; // the executor chose the tokens of the step
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
