#include "runtime/serve/EmbeddingLoop.h"

#include <algorithm>

namespace ingot::serve {
namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

} // namespace

EmbeddingLoop::EmbeddingLoop(std::unique_ptr<ServedEncoder> model,
                             ModelMetrics &metrics, Deliver deliver)
    : model_(std::move(model)), metrics_(metrics),
      deliver_(std::move(deliver)) {
  noteProgress(false);
  thread_ = std::thread([this] { run(); });
}

EmbeddingLoop::~EmbeddingLoop() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  hasCommands_.notify_one();
  thread_.join();
}

EmbeddingLoop::JobId EmbeddingLoop::submit(EmbeddingJob job) {
  JobId id = nextId_.fetch_add(1);
  {
    std::lock_guard lock(mutex_);
    commands_.push_back({id, std::make_unique<EmbeddingJob>(std::move(job))});
  }
  hasCommands_.notify_one();
  return id;
}

void EmbeddingLoop::cancel(JobId id) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back({id, nullptr});
  }
  hasCommands_.notify_one();
}

void EmbeddingLoop::noteProgress(bool isBusy) {
  progressAt_ = Clock::now().time_since_epoch().count();
  isBusy_ = isBusy;
}

EngineLoop::Progress EmbeddingLoop::progress() const {
  EngineLoop::Progress progress;
  progress.isBusy = isBusy_;
  progress.steps = engineMetrics().steps;
  progress.secondsSinceProgress =
      secondsSince(Clock::time_point(Clock::duration(progressAt_.load())));
  return progress;
}

EngineMetrics EmbeddingLoop::engineMetrics() const {
  std::lock_guard lock(snapshotMutex_);
  return snapshot_;
}

void EmbeddingLoop::publish() {
  totals_.running = std::count_if(running_.begin(), running_.end(),
                                  [](const auto &job) { return job.hasBegun; });
  totals_.waiting = std::int64_t(running_.size()) - totals_.running;
  std::lock_guard lock(snapshotMutex_);
  snapshot_ = totals_;
}

void EmbeddingLoop::run() {
  std::vector<Command> commands;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (running_.empty())
        hasCommands_.wait(lock,
                          [&] { return isStopping_ || !commands_.empty(); });
      if (isStopping_)
        return;
      commands.swap(commands_);
    }
    noteProgress(true);
    for (Command &command : commands)
      obey(std::move(command));
    commands.clear();
    if (!running_.empty())
      step();
    publish();
    noteProgress(!running_.empty());
  }
}

void EmbeddingLoop::obey(Command command) {
  if (command.job) {
    ++totals_.requests;
    running_.push_back({command.id, std::move(*command.job), false, 0, {}, {}});
    return;
  }
  auto found =
      std::find_if(running_.begin(), running_.end(),
                   [&](const auto &job) { return job.id == command.id; });
  if (found == running_.end())
    return;
  metrics_.finished("abort").add();
  running_.erase(found);
}

// The job of each text that the next step may take: one of each job in turn,
// the oldest first, until there are as many as a step holds.
std::vector<EmbeddingLoop::Running *> EmbeddingLoop::chooseTexts() {
  std::vector<Running *> chosen;
  auto most = std::size_t(std::max(model_->card().sequences, 1));
  for (std::size_t round = 0;; ++round) {
    std::size_t before = chosen.size();
    for (Running &running : running_)
      if (running.taken + round < running.job.texts.size() &&
          chosen.size() < most)
        chosen.push_back(&running);
    if (chosen.size() == before)
      return chosen;
  }
}

void EmbeddingLoop::step() {
  std::vector<Running *> chosen = chooseTexts();
  std::vector<std::vector<std::int32_t>> texts;
  for (Running *running : chosen) {
    auto earlier = std::size_t(
        std::count(chosen.begin(),
                   chosen.begin() + std::ptrdiff_t(texts.size()), running));
    texts.push_back(running->job.texts[running->taken + earlier]);
  }
  std::vector<Result<Embedding>> embeddings;
  auto taken = model_->step(texts, embeddings);
  ++totals_.steps;
  if (!taken) {
    // Whatever is waiting would most likely fail again.
    while (!running_.empty())
      finish(running_.begin(), taken.status());
    return;
  }
  for (std::size_t i = 0; i < *taken; ++i) {
    Running &running = *chosen[i];
    if (!running.hasBegun)
      metrics_.queueTime.observe(secondsSince(running.job.arrived));
    running.hasBegun = true;
    ++running.taken;
    if (embeddings[i])
      running.embeddings.push_back(std::move(*embeddings[i]));
    else
      running.failure = embeddings[i].status();
    totals_.promptTokens += texts[i].size();
    metrics_.promptLength.observe(double(texts[i].size()));
  }
  for (auto each = running_.begin(); each != running_.end();) {
    auto here = each++;
    if (!here->failure.isOk())
      finish(here, Status(here->failure));
    else if (here->taken == here->job.texts.size())
      finish(here, std::move(here->embeddings));
  }
}

void EmbeddingLoop::finish(std::list<Running>::iterator done,
                           Result<std::vector<Embedding>> result) {
  metrics_.finished(result ? "stop" : "error").add();
  metrics_.endToEnd.observe(secondsSince(done->job.arrived));
  auto onDone = std::move(done->job.onDone);
  running_.erase(done);
  publish(); // before anybody hears of it
  deliver_([onDone = std::move(onDone), result = std::move(result)]() mutable {
    onDone(std::move(result));
  });
}

} // namespace ingot::serve
