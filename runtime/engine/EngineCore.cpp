#include "runtime/engine/EngineCore.h"

#include <algorithm>
#include <random>

namespace ingot {
namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
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

EngineCore::EngineCore(Executor &executor, KvCache &cache, CoreOptions options)
    : executor_(executor), cache_(cache), options_(std::move(options)),
      sampler_(executor.limits().vocab) {
  const StepLimits &limits = executor.limits();
  capacity_.maxStepTokens = limits.maxTokens;
  capacity_.maxSequences = limits.maxSequences;
  capacity_.maxLogitRows = limits.maxLogitRows;
  capacity_.chunkTokens = options_.chunkTokens;
  for (std::size_t g = 0; g < cache.numGroups(); ++g)
    capacity_.groups.push_back({cache.allocator(g).numBlocks(),
                                cache.geometry(g).blockTokens,
                                cache.geometry(g).window});
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
  if (!canEverFit(request->maxTotal, capacity_))
    return Status::outOfMemory(
        "a sequence of " + std::to_string(request->maxTotal) +
        " tokens does not fit the state memory, even alone");
  request->id = nextId_++;
  request->submitted = std::chrono::steady_clock::now();
  RequestId id = request->id;
  requests_.push_back(std::move(request));
  return id;
}

Result<RequestId> EngineCore::submit(TokenRequest input, OnFinish onFinish) {
  INGOT_RETURN_IF_ERROR(validate(input.sampling, executor_.limits().vocab));
  INGOT_RETURN_IF_ERROR(checkTokens("prompt", input.prompt));
  INGOT_RETURN_IF_ERROR(checkTokens("stop_token_ids", input.stopIds));
  if (input.prompt.empty())
    return Status::invalid("prompt is empty: there is no token to begin with");
  if (input.maxTokens < -1)
    return Status::invalid("max_tokens is " + std::to_string(input.maxTokens) +
                           ", expected 0 or more (or -1: up to the context)");
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
  request->tokens = std::move(input.prompt);
  request->ignoreEos = input.ignoreEos;
  request->stopIds = std::move(input.stopIds);
  request->onToken = std::move(input.onToken);
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
  request->onLogits = std::move(input.onLogits);
  request->onFinish = std::move(onFinish);
  return admit(std::move(request));
}

EngineCore::Request *EngineCore::find(RequestId id) {
  for (auto &request : requests_)
    if (request->id == id)
      return request.get();
  return nullptr;
}

bool EngineCore::cancel(RequestId id) {
  Request *request = find(id);
  if (!request)
    return false;
  finish(*request, FinishReason::Cancelled);
  return true;
}

void EngineCore::finish(Request &request, FinishReason reason, Status status) {
  RequestOutcome outcome;
  outcome.id = request.id;
  outcome.reason = reason;
  outcome.status = std::move(status);
  outcome.seed = request.sampler ? request.sampler->seed() : 0;
  outcome.promptTokens = request.promptTokens;
  outcome.tokens.assign(request.tokens.begin() + request.promptTokens,
                        request.tokens.end());
  outcome.firstTokenSeconds = request.firstTokenSeconds;
  outcome.totalSeconds = secondsSince(request.submitted);
  cache_.removeSequence(request.id);
  OnFinish onFinish = std::move(request.onFinish);
  requests_.remove_if([&](const auto &r) { return r.get() == &request; });
  if (onFinish)
    onFinish(outcome);
}

bool EngineCore::isStop(const Request &request, std::int32_t token) const {
  auto has = [&](const std::vector<std::int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  return has(request.stopIds) || (!request.ignoreEos && has(options_.eosIds));
}

void EngineCore::takeToken(Request &request, std::span<const float> logits) {
  auto position = std::int64_t(request.tokens.size());
  auto choice = sampler_.sample(logits, *request.sampler, position);
  if (!choice)
    return finish(request, FinishReason::Failed, choice.status());
  if (request.firstTokenSeconds == 0)
    request.firstTokenSeconds = secondsSince(request.submitted);
  if (isStop(request, choice->token))
    return finish(request, FinishReason::Stop);
  request.tokens.push_back(choice->token);
  if (Status status = request.sampler->advance(choice->token); !status)
    return finish(request, FinishReason::Failed, std::move(status));
  RequestId id = request.id;
  bool wantsMore = !request.onToken || request.onToken(*choice);
  if (find(id) != &request)
    return; // cancelled by its own receiver
  if (!wantsMore)
    return finish(request, FinishReason::Stop);
  if (std::int32_t(request.tokens.size()) >= request.maxTotal)
    finish(request, FinishReason::Length);
}

void EngineCore::takeRows(Request &request, const StepSequence &rows) {
  cache_.commit(request.id, rows.numRows);
  request.numComputed += rows.numRows;
  bool isDecode =
      rows.numRows == 1 && rows.firstPosition >= request.promptTokens;
  (isDecode ? counters_.decodeRows : counters_.promptRows) +=
      std::uint64_t(rows.numRows);
}

Status EngineCore::step() {
  // A request that asks for no token is finished without a step.
  for (auto next = requests_.begin(); next != requests_.end();) {
    Request &request = **next++;
    if (request.sampler && request.maxTotal == request.promptTokens) {
      finish(request, FinishReason::Length);
      return Status::ok();
    }
  }
  std::vector<SequenceState> states;
  for (const auto &request : requests_)
    states.push_back({request->id, request->tokens, request->numComputed,
                      request->maxTotal, request->isRunning,
                      request->sampler == nullptr});
  ScheduleResult scheduled = scheduleStep(states, capacity_);
  const StepPlan &plan = scheduled.plan;
  if (plan.isEmpty())
    return requests_.empty()
               ? Status::ok()
               : Status::internal(std::to_string(requests_.size()) +
                                  " requests wait and none can be scheduled");

  auto release = [&] {
    for (const StepSequence &rows : plan.sequences)
      if (cache_.hasSequence(rows.id))
        cache_.rollback(rows.id);
    for (std::uint64_t id : scheduled.admitted)
      cache_.removeSequence(id);
  };
  Status status;
  for (std::uint64_t id : scheduled.admitted)
    if (status.isOk())
      status = cache_.addSequence(id);
  for (const StepSequence &rows : plan.sequences)
    if (status.isOk())
      status = cache_.reserve(rows.id, rows.numRows);
  if (status.isOk())
    status = executor_.run(plan, cache_);
  if (!status) {
    release();
    return status;
  }
  ++counters_.steps;
  latestPlan_ = plan;

  for (std::uint64_t id : scheduled.admitted)
    find(id)->isRunning = true;
  for (const StepSequence &rows : plan.sequences)
    takeRows(*find(rows.id), rows);
  std::size_t logit = 0;
  for (const StepSequence &rows : plan.sequences) {
    std::int32_t endRow = rows.firstRow + rows.numRows;
    for (; logit < plan.logitRows.size() && plan.logitRows[logit] < endRow;
         ++logit) {
      // A receiver may have cancelled any request.
      Request *request = find(rows.id);
      if (!request)
        continue;
      auto row = executor_.logits(std::int32_t(logit));
      if (request->sampler)
        takeToken(*request, row);
      else if (request->onLogits)
        request->onLogits(
            rows.firstPosition + plan.logitRows[logit] - rows.firstRow, row);
    }
    Request *request = find(rows.id);
    if (request && !request->sampler &&
        request->numComputed == request->promptTokens)
      finish(*request, FinishReason::Length);
  }
  return Status::ok();
}

Status EngineCore::runUntilIdle() {
  while (!isIdle())
    INGOT_RETURN_IF_ERROR(step());
  return Status::ok();
}

} // namespace ingot
