#include "runtime/serve/EngineLoop.h"

#include <algorithm>

namespace ingot::serve {
namespace {

double secondsBetween(std::chrono::steady_clock::time_point from,
                      std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

EngineLoop::EngineLoop(std::unique_ptr<ServedModel> model,
                       ModelMetrics &metrics, Deliver deliver)
    : model_(std::move(model)), metrics_(metrics),
      deliver_(std::move(deliver)) {
  noteProgress(false);
  thread_ = std::thread([this] { run(); });
}

EngineLoop::~EngineLoop() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  hasCommands_.notify_one();
  thread_.join();
}

EngineLoop::JobId EngineLoop::submit(GenerationJob job) {
  JobId id = nextId_.fetch_add(1);
  {
    std::lock_guard lock(mutex_);
    commands_.push_back({id, std::make_unique<GenerationJob>(std::move(job))});
  }
  hasCommands_.notify_one();
  return id;
}

void EngineLoop::cancel(JobId id) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back({id, nullptr});
  }
  hasCommands_.notify_one();
}

void EngineLoop::noteProgress(bool isBusy) {
  progressAt_ = Clock::now().time_since_epoch().count();
  isBusy_ = isBusy;
}

EngineLoop::Progress EngineLoop::progress() const {
  Progress progress;
  progress.isBusy = isBusy_;
  progress.steps = steps_;
  Clock::time_point latest{Clock::duration(progressAt_.load())};
  progress.secondsSinceProgress = secondsBetween(latest, Clock::now());
  return progress;
}

EngineMetrics EngineLoop::engineMetrics() const {
  std::lock_guard lock(snapshotMutex_);
  return snapshot_;
}

void EngineLoop::run() {
  std::vector<Command> commands;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (model_->isIdle())
        hasCommands_.wait(lock,
                          [&] { return isStopping_ || !commands_.empty(); });
      if (isStopping_)
        break;
      commands.swap(commands_);
    }
    noteProgress(true);
    for (Command &command : commands) {
      if (command.job)
        start(command.id, std::move(*command.job));
      else
        drop(command.id, "abort");
    }
    commands.clear();
    flush();
    if (!model_->isIdle()) {
      if (Status status = model_->step(); !status) {
        // Nothing that was reserved is held; whatever is in the batch would
        // fail again.
        std::vector<JobId> all;
        for (const auto &[id, job] : running_)
          all.push_back(id);
        for (JobId id : all)
          fail(id, status);
      }
      ++steps_;
    }
    // Before anybody hears of the step.
    {
      EngineMetrics now = model_->metrics();
      std::lock_guard lock(snapshotMutex_);
      snapshot_ = std::move(now);
    }
    flush();
    noteProgress(!model_->isIdle());
  }
  std::vector<JobId> all;
  for (const auto &[id, job] : running_)
    all.push_back(id);
  for (JobId id : all)
    drop(id, "abort");
}

void EngineLoop::start(JobId id, GenerationJob job) {
  auto made = std::make_unique<Running>();
  Running &running = *made;
  running.job = std::move(job);
  std::size_t prompts = running.job.prompts.size();
  running.promptTokens.resize(prompts);
  running.hasFirstToken.resize(prompts);
  running.choices.resize(prompts * running.job.request.copies);
  running.isEnded.resize(running.choices.size());
  running.numOpen = running.choices.size();
  running_[id] = std::move(made);
  for (std::size_t prompt = 0; prompt < prompts; ++prompt)
    if (Status status = submitPrompt(id, running, prompt); !status)
      return fail(id, status);
  post(running.job.sink, [](GenerationSink &sink) { sink.onAdmitted(); });
}

Status EngineLoop::submitPrompt(JobId id, Running &running,
                                std::size_t prompt) {
  const GenerationJob &job = running.job;
  std::size_t first = prompt * job.request.copies;
  IncrementalDetokenizer detokenizer(model_->tokenizer());
  if (job.continuesPrompt)
    detokenizer.follow(job.prompts[prompt]);
  for (std::int32_t copy = 0; copy < job.request.copies; ++copy) {
    INGOT_ASSIGN_OR_RETURN(
        ChoiceOutput output,
        ChoiceOutput::create(detokenizer, job.stop,
                             job.request.sampling.logprobs >= 0));
    running.choices[first + copy].reset(new Choice{std::move(output)});
  }
  TokenRequest request = job.request;
  request.prompt = job.prompts[prompt];
  if (job.wantsPromptTokens) {
    running.promptTokens[prompt].push_back(
        {request.prompt.front(), std::nullopt, {}, 0});
    request.onPromptToken = [&running, prompt](std::int32_t,
                                               const ingot::Choice &token) {
      running.promptTokens[prompt].push_back(
          {token.token, token.logprob, token.top, 0});
    };
  }
  request.onToken = [this, id, first](std::int32_t copy,
                                      const ingot::Choice &token) {
    return onToken(id, first + std::size_t(copy), token);
  };
  INGOT_ASSIGN_OR_RETURN(
      RequestId requestId,
      model_->submit(std::move(request),
                     [this, id, first](const RequestOutcome &outcome) {
                       onFinish(id, first + std::size_t(outcome.copy), outcome);
                     }));
  running.requests.push_back(requestId);
  return Status::ok();
}

bool EngineLoop::onToken(JobId id, std::size_t index,
                         const ingot::Choice &token) {
  auto found = running_.find(id);
  if (found == running_.end())
    return false;
  Running &running = *found->second;
  Choice &choice = *running.choices[index];
  auto now = Clock::now();
  std::size_t prompt = index / running.job.request.copies;
  if (!running.hasFirstToken[prompt]) {
    running.hasFirstToken[prompt] = true;
    metrics_.firstToken.observe(secondsBetween(running.job.arrived, now));
  }
  if (choice.latestToken != Clock::time_point{})
    metrics_.interToken.observe(secondsBetween(choice.latestToken, now));
  choice.latestToken = now;

  OutputPiece piece;
  postPromptTokens(running, prompt);
  if (Status status = choice.output.push(token, piece); !status) {
    running.failure = status;
    return false;
  }
  if (!piece.isEmpty())
    post(running.job.sink,
         [index, piece = std::move(piece)](GenerationSink &sink) {
           sink.onPiece(index, piece);
         });
  return !choice.output.stopped();
}

void EngineLoop::onFinish(JobId id, std::size_t index,
                          const RequestOutcome &outcome) {
  auto found = running_.find(id);
  if (found == running_.end())
    return;
  Running &running = *found->second;
  if (running.isEnded[index])
    return;
  if (!running.failure)
    return fail(id, Status(running.failure));
  if (outcome.reason == FinishReason::Failed)
    return fail(id, outcome.status);
  running.isEnded[index] = true;
  std::size_t prompt = index / running.job.request.copies;
  postPromptTokens(running, prompt);
  Choice &choice = *running.choices[index];
  OutputPiece piece;
  choice.output.finish(piece);
  // As OpenAI's: whoever adds log-probabilities up counts on a token where
  // one was asked for.
  if (outcome.ending && running.job.continuesPrompt)
    choice.output.appendEnding(*outcome.ending, piece);
  if (!piece.isEmpty())
    post(running.job.sink,
         [index, piece = std::move(piece)](GenerationSink &sink) {
           sink.onPiece(index, piece);
         });
  ChoiceEnd end;
  end.reason = choice.output.stopped() ? FinishReason::Stop : outcome.reason;
  end.promptTokens = outcome.promptTokens;
  end.cachedTokens = outcome.cachedTokens;
  end.outputTokens = std::int32_t(outcome.tokens.size());
  post(running.job.sink,
       [index, end](GenerationSink &sink) { sink.onChoiceEnd(index, end); });

  metrics_.finished(finishReasonName(end.reason)).add();
  metrics_.endToEnd.observe(secondsBetween(running.job.arrived, Clock::now()));
  metrics_.outputLength.observe(end.outputTokens);
  if (index % running.job.request.copies == 0) {
    metrics_.promptLength.observe(end.promptTokens);
    metrics_.queueTime.observe(outcome.queueSeconds);
  }
  if (--running.numOpen == 0)
    running_.erase(found);
}

void EngineLoop::drop(JobId id, const char *reason) {
  auto found = running_.find(id);
  if (found == running_.end())
    return;
  // Out of the table first: the ends that cancelling brings are nobody's.
  std::unique_ptr<Running> running = std::move(found->second);
  running_.erase(found);
  for (RequestId request : running->requests)
    (void)model_->cancel(request);
  metrics_.finished(reason).add(running->numOpen);
}

void EngineLoop::fail(JobId id, const Status &status) {
  auto found = running_.find(id);
  if (found == running_.end())
    return;
  post(found->second->job.sink,
       [status](GenerationSink &sink) { sink.onFailure(status); });
  drop(id, "error");
}

// Before the pieces and ends of its choices.
void EngineLoop::postPromptTokens(Running &running, std::size_t prompt) {
  auto &tokens = running.promptTokens[prompt];
  if (tokens.empty())
    return;
  post(running.job.sink,
       [prompt, tokens = std::move(tokens)](GenerationSink &sink) {
         sink.onPromptTokens(prompt, tokens);
       });
  tokens.clear();
}

void EngineLoop::flush() {
  for (auto &[id, running] : running_)
    for (std::size_t prompt = 0; prompt < running->promptTokens.size();
         ++prompt)
      postPromptTokens(*running, prompt);
  if (events_.empty())
    return;
  deliver_([events = std::move(events_)] {
    for (const auto &event : events)
      event();
  });
  events_.clear();
}

} // namespace ingot::serve
