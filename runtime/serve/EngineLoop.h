// The thread of one model. It takes jobs and cancellations from a queue, steps
// the engine while there is work, and hands back what came of each step in one
// delivery, which the receiver runs on a thread of its own: the engine waits
// for nobody.
#pragma once

#include "runtime/serve/ChoiceOutput.h"
#include "runtime/serve/ModelMetrics.h"
#include "runtime/serve/ServedModel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace ingot::serve {

// How a choice ended.
struct ChoiceEnd {
  FinishReason reason = FinishReason::Failed;
  std::int32_t promptTokens = 0;
  std::int32_t cachedTokens = 0;
  std::int32_t outputTokens = 0;
};

// Receives what comes of a job, in deliveries. Choice c of prompt p has the
// index p * n + c. After onFailure, or when every choice has ended, nothing
// more comes.
class GenerationSink {
public:
  virtual ~GenerationSink() = default;
  // The engine has taken every prompt of the job.
  virtual void onAdmitted() = 0;
  virtual void onPromptTokens(std::size_t prompt,
                              std::vector<ScoredToken> tokens) = 0;
  virtual void onPiece(std::size_t choice, OutputPiece piece) = 0;
  virtual void onChoiceEnd(std::size_t choice, const ChoiceEnd &end) = 0;
  virtual void onFailure(const Status &status) = 0;
};

struct GenerationJob {
  using Clock = std::chrono::steady_clock;

  std::vector<std::vector<std::int32_t>> prompts;
  TokenRequest request; // all but the prompt and the receivers
  std::vector<std::string> stop;
  bool wantsPromptTokens = false;
  bool continuesPrompt = false; // the text goes on from the prompt's
  Clock::time_point arrived = Clock::now();
  std::shared_ptr<GenerationSink> sink;
};

class EngineLoop {
public:
  using JobId = std::uint64_t;
  // Runs the work soon, in order, on the receivers' thread.
  using Deliver = std::function<void(std::function<void()>)>;

  EngineLoop(std::unique_ptr<ServedModel> model, ModelMetrics &metrics,
             Deliver deliver);
  ~EngineLoop(); // cancels what is left and waits for the step under way

  const ServedModel &model() const { return *model_; }

  // From any thread.
  JobId submit(GenerationJob job);
  void cancel(JobId id);

  struct Progress {
    bool isBusy = false;
    std::uint64_t steps = 0;
    double secondsSinceProgress = 0; // of a step, or of being idle
  };
  Progress progress() const;
  EngineMetrics engineMetrics() const; // as of the latest step

private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    ChoiceOutput output;
    Clock::time_point latestToken{};
  };
  struct Running {
    GenerationJob job;
    Status failure; // of an output; ends the job at the next occasion
    std::vector<RequestId> requests;
    std::vector<std::vector<ScoredToken>> promptTokens; // of this step
    std::vector<bool> hasFirstToken;                    // by prompt
    std::vector<std::unique_ptr<Choice>> choices;
    std::vector<bool> isEnded;
    std::size_t numOpen = 0; // choices that have not ended
  };
  struct Command {
    JobId id = 0;
    std::unique_ptr<GenerationJob> job; // null: a cancellation
  };

  void run();
  void start(JobId id, GenerationJob job);
  void drop(JobId id, const char *reason);
  void fail(JobId id, const Status &status);
  Status submitPrompt(JobId id, Running &running, std::size_t prompt);
  bool onToken(JobId id, std::size_t choice, const ingot::Choice &token);
  void onFinish(JobId id, std::size_t choice, const RequestOutcome &outcome);
  void postPromptTokens(Running &running, std::size_t prompt);
  void flush();
  void noteProgress(bool isBusy);

  template <typename Work>
  void post(const std::shared_ptr<GenerationSink> &sink, Work work) {
    events_.push_back([sink, work = std::move(work)] { work(*sink); });
  }

  std::unique_ptr<ServedModel> model_;
  ModelMetrics &metrics_;
  Deliver deliver_;

  std::mutex mutex_;
  std::condition_variable hasCommands_;
  std::vector<Command> commands_;
  bool isStopping_ = false;
  std::atomic<JobId> nextId_{1};

  // Of the engine's thread alone.
  std::unordered_map<JobId, std::unique_ptr<Running>> running_;
  std::vector<std::function<void()>> events_;

  std::atomic<bool> isBusy_{false};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::int64_t> progressAt_{0}; // nanoseconds of the clock
  mutable std::mutex snapshotMutex_;
  EngineMetrics snapshot_;

  std::thread thread_; // last: it uses all of the above
};

} // namespace ingot::serve
