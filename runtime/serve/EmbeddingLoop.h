// The thread of one encoder. Each step takes texts of all jobs that wait, one of
// each job in turn, so that a long list does not hold up a single text; a job is
// answered, on a thread of the receiver's, when its last text is done.
#pragma once

#include "runtime/serve/EngineLoop.h"
#include "runtime/serve/ModelMetrics.h"
#include "runtime/serve/ServedEncoder.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ingot::serve {

struct EmbeddingJob {
  using Clock = std::chrono::steady_clock;

  // Each has passed the encoder's bounds: not empty, not above the context, ids
  // within the vocabulary.
  std::vector<std::vector<std::int32_t>> texts;
  Clock::time_point arrived = Clock::now();
  // Called once, unless the job is cancelled: a vector for each text, in order.
  std::function<void(Result<std::vector<Embedding>>)> onDone;
};

class EmbeddingLoop {
public:
  using JobId = std::uint64_t;
  using Deliver = EngineLoop::Deliver;

  EmbeddingLoop(std::unique_ptr<ServedEncoder> model, ModelMetrics &metrics,
                Deliver deliver);
  ~EmbeddingLoop(); // drops what is left and waits for the step under way

  const ServedEncoder &model() const { return *model_; }

  // From any thread.
  JobId submit(EmbeddingJob job);
  void cancel(JobId id);

  EngineLoop::Progress progress() const;
  EngineMetrics engineMetrics() const; // as of the latest step

private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    JobId id = 0;
    EmbeddingJob job;
    bool hasBegun = false;
    std::size_t taken = 0; // texts that a step has had
    std::vector<Embedding> embeddings;
    Status failure; // of a text; ends the job, and no other
  };
  struct Command {
    JobId id = 0;
    std::unique_ptr<EmbeddingJob> job; // null: a cancellation
  };

  void run();
  void obey(Command command);
  void step();
  std::vector<Running *> chooseTexts();
  void finish(std::list<Running>::iterator done,
              Result<std::vector<Embedding>> result);
  void noteProgress(bool isBusy);
  void publish();

  std::unique_ptr<ServedEncoder> model_;
  ModelMetrics &metrics_;
  Deliver deliver_;

  std::mutex mutex_;
  std::condition_variable hasCommands_;
  std::vector<Command> commands_;
  bool isStopping_ = false;
  std::atomic<JobId> nextId_{1};

  // Of the encoder's thread alone.
  std::list<Running> running_; // in order of arrival
  EngineMetrics totals_;

  std::atomic<bool> isBusy_{false};
  std::atomic<std::int64_t> progressAt_{0}; // nanoseconds of the clock
  mutable std::mutex snapshotMutex_;
  EngineMetrics snapshot_;

  std::thread thread_; // last: it uses all of the above
};

} // namespace ingot::serve
