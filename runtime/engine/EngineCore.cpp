#include "runtime/engine/EngineCore.h"

#include <algorithm>
#include <map>
#include <random>
#include <string_view>

namespace ingot {
namespace {

double secondsSince(Request::Clock::time_point start) {
  return std::chrono::duration<double>(Request::Clock::now() - start).count();
}

std::uint64_t freshSeed() {
  std::random_device device;
  return (std::uint64_t(device()) << 32) ^ device();
}

} // namespace

const char *finishReasonName(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  case FinishReason::Failed:
    return "failed";
  }
  return "unknown";
}

EngineCore::EngineCore(Executor &executor, KvCache &cache, CoreOptions options,
                       std::unique_ptr<Speculator> speculator)
    : executor_(executor), cache_(cache), options_(std::move(options)),
      sampler_(executor.limits().vocab), speculator_(std::move(speculator)) {
  const StepLimits &limits = executor.limits();
  capacity_.maxStepTokens = limits.maxTokens;
  capacity_.maxSequences = limits.maxSequences;
  capacity_.maxLogitRows = limits.maxLogitRows;
  capacity_.chunkTokens = options_.chunkTokens;
  capacity_.mixedPromptTokens = options_.mixedPromptTokens;
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    capacity_.groups.push_back({cache.allocator(g).numBlocks(),
                                cache.geometry(g).blockTokens,
                                cache.geometry(g).window, 0});
  totals_.exitDepths.resize(options_.exits.empty() ? 0
                                                   : options_.exits.size() + 1);
  // A sequence that outgrew all blocks could not go on even alone.
  options_.context = std::int32_t(
      std::min<std::int64_t>(options_.context, longestSequence(capacity_)));
}

Status EngineCore::checkTokens(const char *field,
                               const std::vector<std::int32_t> &tokens) const {
  std::int32_t vocab = executor_.limits().vocab;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return Status::invalid(std::string(field) + "[" + std::to_string(i) +
                             "]: token id " + std::to_string(tokens[i]) +
                             " is outside the vocabulary of " +
                             std::to_string(vocab));
  return Status::ok();
}

Result<RequestId> EngineCore::admit(std::unique_ptr<Request> request) {
  auto waiting = std::count_if(requests_.begin(), requests_.end(),
                               [](const auto &r) { return !r->isRunning; });
  if (options_.maxWaiting > 0 && waiting >= options_.maxWaiting) {
    ++totals_.refused;
    return Status::busy("the queue is full: " + std::to_string(waiting) +
                        " requests wait, of at most " +
                        std::to_string(options_.maxWaiting));
  }
  ++totals_.requests;
  RequestId id = nextId_;
  nextId_ += RequestId(request->copies);
  request->requestId = request->sequence = id;
  request->rotaryLength =
      options_.rotary.lengthFor(request->promptTokens, request->maxTotal);
  if (std::int32_t variant = options_.rotary.variantOf(request->rotaryLength))
    request->scope.variant = "rotary " + std::to_string(variant);
  service_.arrive(request->client);
  request->submitted = Request::Clock::now();
  requests_.push_back(std::move(request));
  return id;
}

Result<RequestId> EngineCore::submit(TokenRequest input, OnFinish onFinish) {
  INGOT_RETURN_IF_ERROR(validate(input.sampling, executor_.limits().vocab));
  INGOT_RETURN_IF_ERROR(checkTokens("prompt", input.prompt));
  INGOT_RETURN_IF_ERROR(checkTokens("stop_token_ids", input.stopIds));
  if (input.prompt.empty())
    return Status::invalid("prompt is empty: there is no token to begin with");
  if (input.copies < 1 || input.copies > kMaxCopies)
    return Status::invalid("n is " + std::to_string(input.copies) +
                           ", expected 1 to " + std::to_string(kMaxCopies));
  if (input.maxTokens < -1)
    return Status::invalid("max_tokens is " + std::to_string(input.maxTokens) +
                           ", expected 0 or more (or -1: up to the context)");
  if (!(input.exitThreshold >= 0 && input.exitThreshold <= 1))
    return Status::invalid("exit_threshold is " +
                           std::to_string(input.exitThreshold) +
                           ", expected 0 to 1");
  if (input.exitThreshold > 0 && options_.exits.empty())
    return Status::unsupported(
        "exit_threshold: the model has no early exits that fill the layers "
        "behind them");
  std::int64_t length = std::int64_t(input.prompt.size());
  if (length >= options_.context)
    return Status::invalid("prompt has " + std::to_string(length) +
                           " tokens, the context holds " +
                           std::to_string(options_.context) +
                           " and needs room for at least one more");
  auto request = std::make_unique<Request>();
  request->promptTokens = std::int32_t(length);
  request->maxTotal = options_.context;
  if (input.maxTokens >= 0 && input.maxTokens < options_.context - length)
    request->maxTotal = std::int32_t(length + input.maxTokens);
  request->sampler = std::make_unique<SamplerState>(
      input.sampling, input.sampling.seed ? *input.sampling.seed : freshSeed());
  for (std::int32_t token : input.prompt)
    request->sampler->addPromptToken(token);
  std::vector<std::int32_t> endIds = input.stopIds;
  if (!input.ignoreEos)
    endIds.insert(endIds.end(), options_.eosIds.begin(), options_.eosIds.end());
  request->sampler->setEndIds(std::move(endIds));
  if (input.mask)
    request->sampler->setMask(input.mask->fork());
  request->tokens = std::move(input.prompt);
  request->copies = input.copies;
  request->exitThreshold = input.exitThreshold;
  request->priority = input.priority;
  request->client = std::move(input.client);
  request->scope.salt = std::move(input.cacheSalt);
  request->reusePrefix = input.reusePrefix && !input.onPromptToken;
  request->ignoreEos = input.ignoreEos;
  request->stopIds = std::move(input.stopIds);
  request->onToken = std::move(input.onToken);
  request->onPromptToken = std::move(input.onPromptToken);
  request->onFinish = std::move(onFinish);
  return admit(std::move(request));
}

Result<RequestId> EngineCore::submit(ScoreRequest input, OnFinish onFinish) {
  INGOT_RETURN_IF_ERROR(checkTokens("tokens", input.tokens));
  if (input.tokens.empty())
    return Status::invalid("tokens is empty: there is nothing to score");
  if (std::int64_t(input.tokens.size()) > options_.context)
    return Status::invalid("tokens has " + std::to_string(input.tokens.size()) +
                           " ids, the context holds " +
                           std::to_string(options_.context));
  auto request = std::make_unique<Request>();
  request->promptTokens = std::int32_t(input.tokens.size());
  request->maxTotal = request->promptTokens;
  request->tokens = std::move(input.tokens);
  request->priority = input.priority;
  request->client = std::move(input.client);
  request->reusePrefix = false;
  request->onLogits = std::move(input.onLogits);
  request->onFinish = std::move(onFinish);
  return admit(std::move(request));
}

Request *EngineCore::find(std::uint64_t sequence) {
  for (auto &request : requests_)
    if (request->sequence == sequence)
      return request.get();
  return nullptr;
}

bool EngineCore::cancel(RequestId id) {
  std::vector<std::uint64_t> sequences;
  for (const auto &request : requests_)
    if (request->requestId == id)
      sequences.push_back(request->sequence);
  for (std::uint64_t sequence : sequences)
    if (Request *request = find(sequence)) // a receiver may have been faster
      finish(*request, FinishReason::Cancelled);
  return !sequences.empty();
}

// Nothing is told to the request's callbacks: their owner is gone.
void EngineCore::abandon(RequestId id) noexcept {
  requests_.remove_if([&](const auto &request) {
    if (request->requestId != id)
      return false;
    cache_.removeSequence(request->sequence);
    if (speculator_)
      speculator_->forget(request->sequence);
    service_.leave(request->client);
    return true;
  });
}

// Copies that have not come to be end with the one that stands for them.
void EngineCore::finish(Request &request, FinishReason reason, Status status) {
  RequestOutcome outcome;
  outcome.id = request.requestId;
  outcome.reason = reason;
  outcome.status = std::move(status);
  outcome.promptTokens = request.promptTokens;
  outcome.cachedTokens = request.cachedTokens;
  outcome.preemptions = request.preemptions;
  outcome.tokens.assign(request.tokens.begin() + request.promptTokens,
                        request.tokens.end());
  outcome.ending = std::move(request.ending);
  outcome.queueSeconds = request.queueSeconds;
  outcome.firstTokenSeconds = request.firstTokenSeconds;
  outcome.totalSeconds = secondsSince(request.submitted);
  if (outcome.tokens.size() > 1)
    outcome.interTokenSeconds =
        std::chrono::duration<double>(request.latestToken - request.submitted)
            .count() -
        request.firstTokenSeconds;
  if (outcome.tokens.size() > 1)
    outcome.interTokenSeconds /= double(outcome.tokens.size() - 1);
  outcome.longestGapSeconds = request.longestGapSeconds;
  cache_.removeSequence(request.sequence);
  if (speculator_)
    speculator_->forget(request.sequence);
  service_.leave(request.client);
  OnFinish onFinish = std::move(request.onFinish);
  std::int32_t first = request.copy, copies = request.copies;
  std::uint64_t seed = request.sampler ? request.sampler->seed() : 0;
  requests_.remove_if([&](const auto &r) { return r.get() == &request; });
  if (!onFinish)
    return;
  for (std::int32_t copy = first; copy < first + copies; ++copy) {
    outcome.copy = copy;
    outcome.seed = seedOfCopy(seed, copy - first);
    onFinish(outcome);
  }
}

bool EngineCore::isStop(const Request &request, std::int32_t token) const {
  auto has = [&](const std::vector<std::int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  return has(request.stopIds) || (!request.ignoreEos && has(options_.eosIds));
}

void EngineCore::takePromptLogits(Request &request, std::int32_t position,
                                  std::span<const float> logits) {
  std::int32_t next = position + 1;
  if (next >= request.promptTokens)
    return;
  Choice choice =
      sampler_.score(logits, request.tokens[next],
                     std::max(request.sampler->params().logprobs, 0));
  request.onPromptToken(next, choice);
}

// The prompt is done: every copy begins from here. Returns their sequences.
std::vector<std::uint64_t> EngineCore::fork(Request &request) {
  std::vector<std::uint64_t> sequences = {request.sequence};
  auto running = std::count_if(requests_.begin(), requests_.end(),
                               [](const auto &r) { return r->isRunning; });
  auto after = std::find_if(requests_.begin(), requests_.end(),
                            [&](const auto &r) { return r.get() == &request; });
  for (std::int32_t copy = 1; copy < request.copies; ++copy) {
    auto made = std::make_unique<Request>();
    made->requestId = request.requestId;
    made->sequence = request.requestId + std::uint64_t(copy);
    made->copy = copy;
    made->tokens = request.tokens;
    made->promptTokens = request.promptTokens;
    made->maxTotal = request.maxTotal;
    made->rotaryLength = request.rotaryLength;
    made->exitThreshold = request.exitThreshold;
    made->priority = request.priority;
    made->client = request.client;
    service_.arrive(made->client);
    made->scope = request.scope;
    made->reusePrefix = request.reusePrefix;
    made->ignoreEos = request.ignoreEos;
    made->stopIds = request.stopIds;
    made->sampler = std::make_unique<SamplerState>(
        request.sampler->withSeed(seedOfCopy(request.sampler->seed(), copy)));
    made->onToken = request.onToken;
    made->onFinish = request.onFinish;
    made->submitted = request.submitted;
    made->cachedTokens = request.cachedTokens;
    made->queueSeconds = request.queueSeconds;
    // Where there is no room for one more, it waits for it.
    if (running < capacity_.maxSequences &&
        cache_.forkSequence(request.sequence, made->sequence).isOk()) {
      made->isRunning = true;
      made->numComputed = request.numComputed;
      ++running;
    }
    made->numCharged = request.numCharged;
    sequences.push_back(made->sequence);
    after = requests_.insert(std::next(after), std::move(made));
  }
  request.copies = 1;
  return sequences;
}

// `chosen`: by the executor; -1: the sampler chooses from the logits.
void EngineCore::takeToken(Request &request, std::span<const float> logits,
                           std::int32_t chosen) {
  auto position = std::int64_t(request.tokens.size());
  Result<Choice> choice =
      chosen >= 0 ? Choice{chosen, 0, {}}
                  : sampler_.sample(logits, *request.sampler, position);
  if (!choice)
    return finish(request, FinishReason::Failed, choice.status());
  auto now = Request::Clock::now();
  if (position == request.promptTokens) {
    request.firstTokenSeconds =
        std::chrono::duration<double>(now - request.submitted).count();
  } else {
    std::chrono::duration<double> gap = now - request.latestToken;
    request.longestGapSeconds =
        std::max(request.longestGapSeconds, gap.count());
  }
  request.latestToken = now;
  if (isStop(request, choice->token)) {
    request.ending = std::move(*choice);
    return finish(request, FinishReason::Stop);
  }
  if (Status status = request.sampler->advance(choice->token); !status)
    return finish(request, FinishReason::Failed, std::move(status));
  request.tokens.push_back(choice->token);
  ++totals_.generatedTokens;
  std::uint64_t sequence = request.sequence;
  bool wantsMore = !request.onToken || request.onToken(request.copy, *choice);
  if (find(sequence) != &request)
    return; // cancelled by its own receiver
  if (!wantsMore)
    return finish(request, FinishReason::Stop);
  if (std::int32_t(request.tokens.size()) >= request.maxTotal)
    finish(request, FinishReason::Length);
}

// `position` is that of the row; its logits predict the token after it.
void EngineCore::takeLogits(std::uint64_t sequence, std::int32_t position,
                            std::span<const float> logits,
                            std::int32_t chosen) {
  Request *request = find(sequence);
  if (!request)
    return; // a receiver may have cancelled any request
  if (position >= request->numScored) {
    request->numScored = position + 1;
    if (request->onLogits)
      request->onLogits(position, logits);
    else if (request->onPromptToken)
      takePromptLogits(*request, position, logits);
    request = find(sequence);
  }
  if (!request || request->isScore() ||
      position + 1 != std::int32_t(request->tokens.size()))
    return;
  if (position + 1 == request->promptTokens)
    totals_.promptTokens += std::uint64_t(request->promptTokens);
  if (request->maxTotal == request->promptTokens)
    return finish(*request, FinishReason::Length);
  if (request->copies == 1)
    return takeToken(*request, logits, chosen);
  for (std::uint64_t copy : fork(*request))
    if (Request *made = find(copy))
      takeToken(*made, logits, -1);
}

void EngineCore::takeRows(Request &request, const StepSequence &rows) {
  // Rows of guesses are final when they stand.
  std::int32_t numFinal = std::min(
      rows.numRows, std::int32_t(request.tokens.size()) - rows.firstPosition);
  cache_.commit(request.sequence, numFinal, request.shareableTokens());
  request.numComputed += numFinal;
  bool isDecode = numFinal == 1 && rows.firstPosition >= request.promptTokens;
  (isDecode ? counters_.decodeRows : counters_.promptRows) +=
      std::uint64_t(numFinal);
  charge(request, rows.firstPosition);
}

// For the rows from `firstPosition` to what is computed now.
void EngineCore::charge(Request &request, std::int32_t firstPosition) {
  // Rows that are computed again after a preemption are nobody's debt.
  std::int32_t from = std::max(request.numCharged, firstPosition);
  if (from < request.numComputed) {
    std::int32_t prompt =
        std::max(0, std::min(request.promptTokens, request.numComputed) - from);
    service_.charge(request.client, prompt,
                    request.numComputed - from - prompt);
    request.numCharged = request.numComputed;
  }
}

EngineMetrics EngineCore::metrics() const {
  EngineMetrics metrics = totals_;
  for (const auto &request : requests_)
    ++(request->isRunning ? metrics.running : metrics.waiting);
  metrics.steps = counters_.steps;
  for (std::size_t g = 0; g < cache_.numGroups(); ++g) {
    metrics.kvBlocks += cache_.allocator(g).numBlocks();
    metrics.kvBlocksUsed += cache_.allocator(g).numHeld();
    metrics.kvBlocksReusable += cache_.allocator(g).numReusable();
  }
  return metrics;
}

Status EngineCore::checkInvariants() const {
  INGOT_RETURN_IF_ERROR(cache_.checkInvariants());
  std::size_t running = 0;
  for (const auto &request : requests_) {
    std::string name = "sequence " + std::to_string(request->sequence);
    if (request->isRunning != cache_.hasSequence(request->sequence))
      return Status::internal(name + (request->isRunning
                                          ? " runs without a place in the cache"
                                          : " waits and is in the cache"));
    running += request->isRunning;
    std::int32_t committed =
        request->isRunning ? cache_.committedTokens(request->sequence) : 0;
    if (committed != request->numComputed)
      return Status::internal(name + " has " + std::to_string(committed) +
                              " tokens in the cache and counts " +
                              std::to_string(request->numComputed));
    if (std::size_t(committed) > request->tokens.size())
      return Status::internal(
          name + " has computed " + std::to_string(committed) + " of " +
          std::to_string(request->tokens.size()) + " tokens");
  }
  if (running != cache_.numSequences())
    return Status::internal(std::to_string(cache_.numSequences()) +
                            " sequences in the cache, " +
                            std::to_string(running) + " run");
  if (running > std::size_t(capacity_.maxSequences))
    return Status::internal(std::to_string(running) + " sequences run, of " +
                            std::to_string(capacity_.maxSequences));
  return Status::ok();
}

// The cache as policy sees it.
class EngineCore::CachePolicyView final : public CacheView {
public:
  explicit CachePolicyView(EngineCore &core) : core_(core) {}

  PrefixOffer offer(std::uint64_t id) const override {
    const Request &request = *core_.find(id);
    if (!request.reusePrefix)
      return {0, std::vector<std::int32_t>(core_.cache_.numGroups(), 0)};
    PrefixMatch match =
        core_.cache_.matchPrefix(request.scope, request.shareableTokens());
    return {match.tokens, std::move(match.reusable)};
  }
  std::vector<std::int32_t> releasable(std::uint64_t id) const override {
    std::vector<std::int32_t> blocks;
    for (std::size_t g = 0; g < core_.cache_.numGroups(); ++g)
      blocks.push_back(core_.cache_.blocksHeldAlone(id, g));
    return blocks;
  }

private:
  EngineCore &core_;
};

void EngineCore::preempt(Request &request) {
  cache_.removeSequence(request.sequence);
  if (speculator_)
    speculator_->forget(request.sequence);
  request.drafted.clear();
  request.isRunning = false;
  request.numComputed = 0;
  ++request.preemptions;
  ++totals_.preemptions;
}

// What the next step's prompts may cost those that decode.
std::optional<PromptBudget> EngineCore::promptsBesideDecoding() const {
  if (options_.stallFactor <= 0)
    return {};
  StepWork decoding;
  for (const auto &request : requests_)
    if (request->isRunning &&
        request->numComputed + 1 == std::int32_t(request->tokens.size())) {
      ++decoding.rows;
      decoding.positions += double(request->tokens.size());
    }
  return stepCost_.promptBudget(decoding, options_.stallFactor);
}

// Asks policy for a step, and preempts at its word until there is one.
Result<ScheduleResult> EngineCore::schedule() {
  CachePolicyView view(*this);
  while (true) {
    std::vector<SequenceState> states;
    std::vector<double> service;
    std::map<std::string_view, std::int32_t> clients;
    auto now = Request::Clock::now();
    for (const auto &request : requests_) {
      auto [client, isNew] =
          clients.emplace(request->client, std::int32_t(service.size()));
      if (isNew)
        service.push_back(service_.served(request->client));
      SequenceState state;
      state.id = request->sequence;
      state.tokens =
          request->drafted.empty() ? request->tokens : request->drafted;
      state.numDrafts = request->numDrafts();
      state.numComputed = request->numComputed;
      state.firstLogit = request->firstLogit();
      state.isRunning = request->isRunning;
      state.sharesLastBlock =
          request->isRunning && cache_.sharesLastBlock(request->sequence);
      state.copies = request->copies;
      state.priority = request->priority;
      state.ageSeconds =
          std::chrono::duration<double>(now - request->submitted).count();
      state.client = client->second;
      state.rotaryLength = request->rotaryLength;
      states.push_back(state);
    }
    capacity_.mixedPromptBudget = promptsBesideDecoding();
    for (std::size_t g = 0; g < cache_.numGroups(); ++g)
      capacity_.groups[g].available = cache_.allocator(g).numAvailable();
    ScheduleResult scheduled =
        scheduleStep(states, service, capacity_, options_.policy, view);
    for (std::uint64_t id : scheduled.preempted)
      preempt(*find(id));
    if (!scheduled.plan.isEmpty())
      return scheduled;
    if (scheduled.preempted.empty())
      return Status::internal(std::to_string(requests_.size()) +
                              " requests wait and none can be scheduled");
  }
}

// Prefixes first: what one sequence begins with must not be reclaimed for the
// rows of another.
Status EngineCore::reserve(const ScheduleResult &scheduled) {
  for (const Admission &admission : scheduled.admitted) {
    const Request &request = *find(admission.id);
    if (!request.reusePrefix) {
      INGOT_RETURN_IF_ERROR(cache_.addSequence(admission.id));
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(std::int32_t cached,
                           cache_.addSequence(admission.id, request.scope,
                                              request.shareableTokens()));
    if (cached != admission.cachedTokens)
      return Status::internal("a prefix of " + std::to_string(cached) +
                              " tokens was found, one of " +
                              std::to_string(admission.cachedTokens) +
                              " was planned");
  }
  for (const StepSequence &rows : scheduled.plan.sequences)
    INGOT_RETURN_IF_ERROR(cache_.reserve(rows.id, rows.numRows));
  return Status::ok();
}

void EngineCore::release(const ScheduleResult &scheduled) {
  for (const StepSequence &rows : scheduled.plan.sequences)
    if (cache_.hasSequence(rows.id))
      cache_.rollback(rows.id);
  for (const Admission &admission : scheduled.admitted)
    cache_.removeSequence(admission.id);
}

void EngineCore::commit(const ScheduleResult &scheduled,
                        Request::Clock::time_point start) {
  for (const Admission &admission : scheduled.admitted) {
    Request &request = *find(admission.id);
    request.isRunning = true;
    request.numComputed = admission.cachedTokens;
    if (request.preemptions > 0 || request.copy > 0)
      continue; // its prompt has been counted
    request.queueSeconds =
        std::chrono::duration<double>(start - request.submitted).count();
    request.cachedTokens = admission.cachedTokens;
    request.numCharged = admission.cachedTokens;
    if (request.reusePrefix) {
      totals_.prefixQueryTokens += std::uint64_t(request.promptTokens);
      totals_.prefixHitTokens += std::uint64_t(admission.cachedTokens);
    }
  }
  const StepPlan &plan = scheduled.plan;
  commitExits(plan);
  std::vector<std::int32_t> finalEnds; // the position after the final rows
  for (const StepSequence &rows : plan.sequences) {
    Request &request = *find(rows.id);
    takeRows(request, rows);
    finalEnds.push_back(request.numComputed);
  }
  std::size_t logit = 0;
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const StepSequence &rows = plan.sequences[s];
    std::int32_t endRow = rows.firstRow + rows.numRows;
    std::int32_t numDrafts = rows.firstPosition + rows.numRows - finalEnds[s];
    std::int32_t numAccepted = 0;
    bool stands = true;
    for (; logit < plan.logitRows.size() && plan.logitRows[logit] < endRow;
         ++logit) {
      std::int32_t row = plan.logitRows[logit];
      std::int32_t position = rows.firstPosition + row - rows.firstRow;
      if (position >= finalEnds[s]) {
        stands = stands &&
                 takeDraft(rows.id, position, plan.tokens[std::size_t(row)]);
        if (!stands)
          continue;
        ++numAccepted;
      }
      takeLogits(rows.id, position, stepLogits(logit), stepToken(logit));
    }
    if (speculator_)
      settleDraft(rows, numDrafts, numAccepted);
    Request *request = find(rows.id);
    if (request && request->isScore() &&
        request->numComputed == request->promptTokens)
      finish(*request, FinishReason::Length);
  }
}

// A request that asks for no token is finished without a step.
bool EngineCore::finishThoseWithoutTokens() {
  for (const auto &request : requests_)
    if (request->sampler && request->maxTotal == request->promptTokens &&
        !request->onPromptToken) {
      finish(*request, FinishReason::Length);
      return true;
    }
  return false;
}

Status EngineCore::step() {
  if (finishThoseWithoutTokens() || requests_.empty())
    return Status::ok();
  auto start = Request::Clock::now();
  if (speculator_)
    propose();
  INGOT_ASSIGN_OR_RETURN(ScheduleResult scheduled, schedule());
  Status status = reserve(scheduled);
  auto launched = Request::Clock::now();
  double attention = executor_.attentionSeconds();
  if (status.isOk())
    status = runStep(scheduled.plan);
  if (!status) {
    release(scheduled);
    return status;
  }
  stepCost_.observe(workOf(scheduled.plan), secondsSince(launched),
                    executor_.attentionSeconds() - attention);
  ++counters_.steps;
  latestPlan_ = scheduled.plan;
  commit(scheduled, start);
#ifdef NDEBUG
  if (!options_.checkInvariants)
    return Status::ok();
#endif
  return checkInvariants();
}

Status EngineCore::runUntilIdle() {
  while (!isIdle())
    INGOT_RETURN_IF_ERROR(step());
  return Status::ok();
}

} // namespace ingot
