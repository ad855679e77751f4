// A model, ready to run: opens an artifact, takes all memory, and answers
// requests in text or tokens. The C API in ingot.h says the same in C.
//
//   auto engine = Engine::open("model.ingot");
//   GenerateRequest request;
//   request.prompt = "Once upon a time";
//   auto result = engine->get()->generate(std::move(request));
//
// One thread at a time may use an engine. Several requests submitted before
// step() or runUntilIdle() share their steps.
#pragma once

#include "runtime/engine/ChatPrompt.h"
#include "runtime/engine/EngineCore.h"
#include "runtime/execute/cpu/CpuExecutor.h"
#include "runtime/execute/cuda/CudaExecutor.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/CodeMapping.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Who guesses ahead of the model. Changes speed alone: a guess stands where it
// is the model's own choice.
enum class Speculation {
  None,
  Ngram, // what followed the same words earlier
  Draft, // a smaller model with the same tokenizer
  Exit,  // the model's own first layers, by an early exit
};

struct EngineOptions {
  // "cpu", "cuda" or "cuda:N"; empty: the first CUDA device where the artifact has
  // code for it and the machine has one, else the cpu.
  std::string device;
  std::string level;             // of code; empty: the best that runs here
  int threads = 0;               // 0: from affinity and control group
  std::int32_t context = 0;      // 0: the model's, at most 4096
  std::int32_t sequences = 1;    // that run at once with the full context
  std::int32_t stepTokens = 512; // token rows of a step
  std::int32_t chunkTokens = 0; // prompt rows of one sequence in a step; 0: all
  std::int32_t logitRows = 0;   // rows of logits of a step; 0: `sequences`
  std::uint64_t kvBytes = 0;    // budget for state; 0: what the above need
  // Where no budget is given and this is not 0: one part in so many of the memory
  // that is free where the state will lie, beside the weights of a device.
  std::uint32_t kvPart = 0;
  // As in CoreOptions: what prompts may cost those that decode.
  double stallFactor = CoreOptions().stallFactor;
  std::int32_t mixedPromptTokens = 0;
  std::int32_t maxWaiting = 0; // sequences that may wait; 0: no limit
  SchedulePolicy policy;
  bool checkInvariants = false; // after each step (tests)
  bool verifyChecksums = false;
  Speculation speculation = Speculation::None;
  std::string draft;              // the artifact that drafts; for Draft alone
  std::int32_t exitLayers = 0;    // that run before the exit; for Exit alone
  std::int32_t draftTokens = 8;   // the most guesses of a sequence in a step
  KvCacheOptions cache;           // for tests
  cuda::CudaExecutorOptions cuda; // for tests
};

struct GenerateRequest {
  // Exactly one of the three.
  std::optional<std::string> prompt; // encoded with the model's special tokens
  std::optional<std::vector<std::int32_t>> promptIds;
  std::optional<ChatRequest> chat;

  SamplingParams sampling;
  std::int64_t maxTokens = -1; // -1: to the end of the context
  std::vector<std::string> stop;
  std::vector<std::int32_t> stopIds;
  bool ignoreEos = false;
  double exitThreshold = 0;               // as in TokenRequest
  std::shared_ptr<const LogitsMask> mask; // as in TokenRequest

  // As in TokenRequest, which says what they mean.
  std::int32_t priority = 0;
  std::string client;
  std::string cacheSalt;
  bool reusePrefix = true;
  std::int32_t copies = 1;

  // Called with each piece of a copy's text as it is final; false ends that
  // copy.
  std::function<bool(std::int32_t copy, std::string_view text)> onText;
  // Called with each token of a copy; `choice.logprob` where asked for.
  std::function<void(std::int32_t copy, const Choice &choice)> onToken;
  // As in TokenRequest.
  std::function<void(std::int32_t position, const Choice &choice)>
      onPromptToken;
};

struct GenerateResult {
  RequestOutcome outcome;
  std::string text;
};

struct OpenTimes {
  double openSeconds = 0;   // map and verify
  double memorySeconds = 0; // take memory, start workers, bind
};

class Engine {
public:
  static Result<std::unique_ptr<Engine>>
  open(const std::string &path, const EngineOptions &options = {});

  // Submits, and calls `onFinish` from a later step, once for each copy
  // (result.outcome.copy says which).
  Result<RequestId>
  submit(GenerateRequest request,
         std::function<void(const GenerateResult &)> onFinish);
  // Submits a request of one copy and runs until nothing is left to do.
  Result<GenerateResult> generate(GenerateRequest request);

  EngineCore &core() { return *core_; }
  EngineMetrics metrics() const { return core_->metrics(); }
  Status step() { return core_->step(); }
  Status runUntilIdle() { return core_->runUntilIdle(); }

  Result<std::vector<std::int32_t>>
  promptIds(const GenerateRequest &request) const;

  const Artifact &artifact() const { return artifact_; }
  const fbs::ModelInfo &model() const { return *artifact_.plan().model(); }
  const MemoryContract &contract() const { return contract_; }
  const std::string &level() const { return level_; }
  // What runs the model, for people: "level avx512-vnni, 2 threads", "NVIDIA
  // H200 (device 0), level sm_90".
  std::string placement() const;
  // Empty, but where the artifact has code for a device, none was asked for, and the
  // cpu runs the model: why.
  const std::string &whyNotDevice() const { return whyNotDevice_; }
  const OpenTimes &openTimes() const { return openTimes_; }
  // Null where the artifact has no tokenizer or no template.
  const Tokenizer *tokenizer() const {
    return tokenizer_ ? &*tokenizer_ : nullptr;
  }
  const ChatTemplateSet *templates() const {
    return templates_ ? &*templates_ : nullptr;
  }
  Executor &executor() { return *executor_; }
  // Null where another device runs the model.
  CpuExecutor *cpuExecutor() { return cpuExecutor_; }
  cuda::CudaExecutor *cudaExecutor() { return cudaExecutor_; }
  // Worker threads; 0 where another device runs the model.
  int numThreads() const { return pool_ ? pool_->numWorkers() : 0; }
  // Bytes a second that whoever runs the model reads from its memory, measured now.
  Result<double> measureBandwidth();
  const KvCache &cache() const { return *cache_; }
  KvCache &cache() { return *cache_; }
  // Null where no model drafts.
  Engine *draft() { return draft_.get(); }

private:
  explicit Engine(Artifact artifact) : artifact_(std::move(artifact)) {}
  Status start(const EngineOptions &options);
  // Chooses who runs the model, and makes everything of it.
  Status startDevice(const EngineOptions &options);
  Status startText();
  Status startCpu(const EngineOptions &options);
  // Finds the device and chooses the level of code for it.
  Status openDevice(const std::string &level, int number);
  Status startCuda(const EngineOptions &options);
  Status makeContract(const EngineOptions &options, int workers,
                      std::optional<std::uint64_t> freeBytes);
  Status makeCache(const EngineOptions &options,
                   const StateMemoryMaker &memory);
  Result<std::unique_ptr<Speculator>>
  makeSpeculator(const EngineOptions &options);
  Result<std::int32_t> findExit(std::int32_t layers) const;

  Artifact artifact_;
  const fbs::Target *target_ = nullptr; // the one that runs
  std::string level_;
  std::string
      whyNotDevice_; // why the device that there is code for is not used
  std::shared_ptr<cuda::Device> device_;
  std::uint32_t deviceLevel_ = 0;                  // of the code for it
  std::shared_ptr<const cuda::CublasLt> cublasLt_; // null: not needed
  std::optional<CodeMapping> code_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplateSet> templates_;
  MemoryContract contract_;
  std::unique_ptr<WorkerPool> pool_;
  std::optional<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  CpuExecutor *cpuExecutor_ = nullptr;
  cuda::CudaExecutor *cudaExecutor_ = nullptr;
  // Of it, only the executor and the cache are used.
  std::unique_ptr<Engine> draft_;
  std::unique_ptr<EngineCore> core_;
  OpenTimes openTimes_;
};

// The sampling that the model's own configuration asks for.
SamplingParams defaultSampling(const fbs::ModelInfo &model);

} // namespace ingot
