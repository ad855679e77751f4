#include "runtime/engine/Engine.h"

#include "runtime/engine/Opening.h"
#include "runtime/engine/TextOutput.h"
#include "runtime/memory/AvailableMemory.h"
#include "runtime/plan/VerifyPlan.h"
#include "runtime/speculate/CommonVocabulary.h"
#include "runtime/speculate/DraftModel.h"
#include "runtime/speculate/ExitDrafter.h"
#include "runtime/speculate/NgramDrafter.h"

#include <algorithm>
#include <chrono>

namespace ingot {
namespace {

// The stop set is a union: what the model's configuration says and what its
// tokenizer says.
std::vector<std::int32_t> stopSet(const fbs::ModelInfo &model,
                                  const Tokenizer *tokenizer) {
  std::vector<std::int32_t> ids = listOf(model.eos());
  if (tokenizer)
    for (std::int32_t id : tokenizer->endIds())
      if (std::find(ids.begin(), ids.end(), id) == ids.end())
        ids.push_back(id);
  return ids;
}

} // namespace

namespace {

// None, unless all of them fill the layers behind: a row that leaves where
// nothing does would leave holes.
std::vector<ExitCurve> exitCurves(const fbs::Target &target) {
  std::vector<ExitCurve> curves;
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      if (!exit->fill() || exit->fill()->launches()->size() == 0)
        return {};
      ExitCurve curve;
      curve.layers = std::int32_t(exit->layers());
      if (exit->confidence())
        curve.curve.assign(exit->confidence()->begin(),
                           exit->confidence()->end());
      curves.push_back(std::move(curve));
    }
  return curves;
}

// What one more row adds to a step of one row, measured (docs/speculation.md).
constexpr double kRowCost = 0.15;
// Guesses of all sequences in a step, at most.
constexpr std::int32_t kMaxStepDrafts = 64;

std::int32_t stepDrafts(const EngineOptions &options) {
  if (options.speculation == Speculation::None)
    return 0;
  return std::int32_t(std::min<std::int64_t>(
      std::int64_t(options.sequences) * options.draftTokens, kMaxStepDrafts));
}

} // namespace

SamplingParams defaultSampling(const fbs::ModelInfo &model) {
  SamplingParams params;
  params.temperature = model.default_temperature();
  params.topP = model.default_top_p();
  params.topK = model.default_top_k();
  params.minP = model.default_min_p();
  params.repetitionPenalty = model.default_repetition_penalty();
  return params;
}

Result<std::unique_ptr<Engine>> Engine::open(const std::string &path,
                                             const EngineOptions &options) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  INGOT_ASSIGN_OR_RETURN(Artifact artifact,
                         Artifact::open(path, {options.verifyChecksums}));
  std::unique_ptr<Engine> engine(new Engine(std::move(artifact)));
  auto opened = Clock::now();
  if (Status status = engine->start(options); !status)
    return status.withContext(path);
  std::chrono::duration<double> openTime = opened - begin;
  std::chrono::duration<double> memoryTime = Clock::now() - opened;
  engine->openTimes_ = {openTime.count(), memoryTime.count()};
  return engine;
}

Status Engine::start(const EngineOptions &options) {
  if (model().embedding())
    return Status::unsupported(
        "is an encoder: it gives vectors (`ingot embed`, "
        "/v1/embeddings) and generates no text");
  INGOT_RETURN_IF_ERROR(startDevice(options));
  CoreOptions coreOptions;
  coreOptions.context = contract_.context;
  coreOptions.chunkTokens = options.chunkTokens;
  coreOptions.stallFactor = options.stallFactor;
  coreOptions.mixedPromptTokens = options.mixedPromptTokens;
  coreOptions.maxWaiting = options.maxWaiting;
  coreOptions.policy = options.policy;
  coreOptions.checkInvariants = options.checkInvariants;
  coreOptions.eosIds = stopSet(model(), tokenizer());
  coreOptions.rotary = RotaryChoice::of(*target_);
  coreOptions.exits = exitCurves(*target_);
  INGOT_ASSIGN_OR_RETURN(auto speculator, makeSpeculator(options));
  core_ = std::make_unique<EngineCore>(*executor_, *cache_, coreOptions,
                                       std::move(speculator));
  return Status::ok();
}

Status Engine::startText() {
  INGOT_RETURN_IF_ERROR(openTokenizer(artifact_, tokenizer_));
  auto templates = artifact_.segment(container::SegmentKind::Template);
  if (!templates.empty()) {
    INGOT_ASSIGN_OR_RETURN(ChatTemplateSet set, readTemplates(templates));
    templates_.emplace(std::move(set));
  }
  return Status::ok();
}

Status Engine::makeContract(const EngineOptions &options, int workers,
                            std::optional<std::uint64_t> freeBytes) {
  ContractOptions wanted;
  wanted.context = options.context;
  wanted.sequences = options.sequences;
  wanted.stepTokens = options.stepTokens;
  // The row of each next token and those of the guesses after it.
  wanted.logitRows =
      std::max(options.logitRows, options.sequences) + stepDrafts(options);
  wanted.workers = workers;
  wanted.kvBytes = options.kvBytes;
  if (wanted.kvBytes == 0 && options.kvPart != 0 && freeBytes)
    wanted.kvBytes = *freeBytes / options.kvPart;
  INGOT_ASSIGN_OR_RETURN(contract_,
                         computeContract(artifact_.plan(), *target_, wanted));
  return Status::ok();
}

Status Engine::makeCache(const EngineOptions &options,
                         const StateMemoryMaker &memory) {
  INGOT_ASSIGN_OR_RETURN(KvCache cache, makeKvCache(artifact_.plan(), contract_,
                                                    options.cache, memory));
  cache_.emplace(std::move(cache));
  return Status::ok();
}

Status Engine::startCpu(const EngineOptions &options) {
  INGOT_ASSIGN_OR_RETURN(target_, cpuTarget(artifact_));
  {
    INGOT_ASSIGN_OR_RETURN(CodeMapping code,
                           mapCpuCode(artifact_, *target_, options.level));
    code_.emplace(std::move(code));
  }
  level_ = code_->levelName();
  INGOT_RETURN_IF_ERROR(startText());

  HostCpus cpus = detectHostCpus();
  int threads = options.threads > 0 ? options.threads : cpus.threads();
  auto available = availableMemoryBytes();
  INGOT_RETURN_IF_ERROR(makeContract(options, threads, available));
  INGOT_RETURN_IF_ERROR(checkAvailable(contract_, available,
                                       "a smaller context or fewer sequences"));
  INGOT_ASSIGN_OR_RETURN(pool_, makeWorkerPool(cpus, threads, contract_));
  INGOT_RETURN_IF_ERROR(makeCache(options, makeHostState));
  INGOT_ASSIGN_OR_RETURN(
      std::unique_ptr<CpuExecutor> executor,
      CpuExecutor::create(artifact_.plan(), *target_, artifact_.weights(),
                          code_->functions(), contract_, *cache_, *pool_));
  cpuExecutor_ = executor.get();
  executor_ = std::move(executor);
  readWeightsAhead(artifact_);
  return Status::ok();
}

// The exit behind so many layers.
Result<std::int32_t> Engine::findExit(std::int32_t layers) const {
  std::string known;
  if (const auto *exits = target_->exits())
    for (std::uint32_t e = 0; e < exits->size(); ++e) {
      if (std::int64_t(exits->Get(e)->layers()) == layers)
        return std::int32_t(e);
      known +=
          (known.empty() ? "" : ", ") + std::to_string(exits->Get(e)->layers());
    }
  return Status::invalid("no exit after " + std::to_string(layers) +
                         " layers: the artifact has " +
                         (known.empty() ? "none; compile it with --exits"
                                        : "exits after " + known));
}

// Null where nobody drafts.
Result<std::unique_ptr<Speculator>>
Engine::makeSpeculator(const EngineOptions &options) {
  std::unique_ptr<Speculator> none;
  if (options.draft.empty() == (options.speculation == Speculation::Draft))
    return Status::invalid(options.draft.empty()
                               ? "speculation by a draft model needs its path"
                               : "a draft model is given, and speculation is "
                                 "not by a draft model");
  if (options.speculation == Speculation::None)
    return none;
  if (options.draftTokens < 1 || options.draftTokens > kMaxStepDrafts)
    return Status::invalid("draft tokens is " +
                           std::to_string(options.draftTokens) +
                           ", expected 1 to " + std::to_string(kMaxStepDrafts));
  SpeculatorOptions speculation;
  const StepLimits &limits = executor_->limits();
  speculation.vocab = limits.vocab;
  speculation.maxLength = options.draftTokens;
  speculation.maxStepTokens = std::max(
      0, std::min(limits.maxLogitRows, limits.maxTokens) - options.sequences);
  speculation.rowCost = kRowCost;
  if (options.speculation == Speculation::Ngram)
    return std::make_unique<Speculator>(std::make_unique<NgramDrafter>(),
                                        speculation);
  if (options.speculation == Speculation::Exit) {
    INGOT_ASSIGN_OR_RETURN(std::int32_t exit, findExit(options.exitLayers));
    speculation.draftCost = executor_->weightBytesToExit(exit) /
                            std::max(executor_->weightBytesPerStep(), 1.0);
    return std::make_unique<Speculator>(
        std::make_unique<ExitDrafter>(*executor_, *cache_, exit,
                                      RotaryChoice::of(*target_)),
        speculation);
  }

  EngineOptions draftOptions;
  draftOptions.device = options.device;
  draftOptions.level = options.level;
  draftOptions.threads = options.threads;
  draftOptions.sequences = options.sequences;
  draftOptions.stepTokens = options.stepTokens;
  draftOptions.verifyChecksums = options.verifyChecksums;
  draftOptions.cache = options.cache;
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(options.draft));
  draftOptions.context = std::min(
      contract_.context, std::int32_t(artifact.plan().model()->context()));
  INGOT_ASSIGN_OR_RETURN(draft_, open(options.draft, draftOptions));
  auto tokenizers = [&]() -> Result<std::int32_t> {
    if (!tokenizer_ || !draft_->tokenizer_)
      return Status::unsupported(
          std::string(tokenizer_ ? "it has"
                                 : "the model that it drafts for has") +
          " no tokenizer, so their tokens cannot be compared");
    return commonVocabulary(*tokenizer_, *draft_->tokenizer_);
  };
  auto common = tokenizers();
  if (!common)
    return common.status().withContext("draft " + options.draft);
  DraftModelOptions drafting;
  drafting.targetVocab = limits.vocab;
  drafting.commonVocab = *common;
  drafting.context = draft_->contract_.context;
  drafting.rotary = draft_->core_->options().rotary;
  // A step of either reads its weights once.
  speculation.draftCost = draft_->executor_->weightBytesPerStep() /
                          std::max(executor_->weightBytesPerStep(), 1.0);
  return std::make_unique<Speculator>(
      std::make_unique<DraftModel>(*draft_->executor_, *draft_->cache_,
                                   drafting),
      speculation);
}

Result<std::vector<std::int32_t>>
Engine::promptIds(const GenerateRequest &request) const {
  int given = int(request.prompt.has_value()) +
              int(request.promptIds.has_value()) +
              int(request.chat.has_value());
  if (given != 1)
    return Status::invalid("exactly one of prompt, prompt ids and chat is "
                           "expected, " +
                           std::to_string(given) + " were given");
  if (request.promptIds)
    return *request.promptIds;
  if (!tokenizer_)
    return Status::unsupported("the artifact has no tokenizer: give token ids");
  if (request.prompt)
    return tokenizer_->encode(*request.prompt);
  if (!templates_)
    return Status::unsupported(
        "the artifact has no chat template: give a prompt");
  INGOT_ASSIGN_OR_RETURN(Rendered rendered,
                         renderChat(*templates_, *tokenizer_, *request.chat));
  return encodeChat(*tokenizer_, rendered, request.chat->userText);
}

Result<RequestId>
Engine::submit(GenerateRequest request,
               std::function<void(const GenerateResult &)> onFinish) {
  TokenRequest inner;
  INGOT_ASSIGN_OR_RETURN(inner.prompt, promptIds(request));
  inner.sampling = request.sampling;
  inner.maxTokens = request.maxTokens;
  inner.stopIds = request.stopIds;
  inner.ignoreEos = request.ignoreEos;
  inner.exitThreshold = request.exitThreshold;
  inner.mask = std::move(request.mask);

  inner.priority = request.priority;
  inner.client = std::move(request.client);
  inner.cacheSalt = std::move(request.cacheSalt);
  inner.reusePrefix = request.reusePrefix;
  inner.copies = request.copies;
  inner.onPromptToken = std::move(request.onPromptToken);

  // What the receivers of tokens and of the end share; one output a copy.
  struct Stream {
    struct Copy {
      std::optional<TextOutput> output; // none: no tokenizer
      bool isOver = false;              // the receiver wants no more
      Status failure;
    };
    std::vector<Copy> copies;
    std::function<bool(std::int32_t, std::string_view)> onText;
    std::function<void(std::int32_t, const Choice &)> onToken;
  };
  auto stream = std::make_shared<Stream>();
  stream->onText = std::move(request.onText);
  stream->onToken = std::move(request.onToken);
  // A count out of range is refused by the core.
  stream->copies.resize(std::size_t(std::clamp(request.copies, 1, kMaxCopies)));
  if (!tokenizer_ && !request.stop.empty())
    return Status::unsupported(
        "stop strings need a tokenizer, and the artifact has none");
  if (tokenizer_) {
    IncrementalDetokenizer detokenizer(*tokenizer_);
    // A prompt's text goes on, the answer of a chat is a text of its own.
    if (!request.chat)
      detokenizer.follow(inner.prompt);
    for (Stream::Copy &copy : stream->copies) {
      INGOT_ASSIGN_OR_RETURN(TextOutput output,
                             TextOutput::create(detokenizer, request.stop));
      copy.output.emplace(std::move(output));
    }
  }
  inner.onToken = [stream](std::int32_t index, const Choice &choice) {
    Stream::Copy &copy = stream->copies[std::size_t(index)];
    if (stream->onToken)
      stream->onToken(index, choice);
    if (!copy.output)
      return true;
    auto piece = copy.output->push(choice.token);
    if (!piece) {
      copy.failure = piece.status();
      return false;
    }
    if (!piece->empty() && stream->onText)
      copy.isOver = !stream->onText(index, *piece);
    return !copy.isOver && !copy.output->stopped();
  };
  return core_->submit(
      std::move(inner),
      [stream, onFinish = std::move(onFinish)](const RequestOutcome &outcome) {
        Stream::Copy &copy = stream->copies[std::size_t(outcome.copy)];
        GenerateResult result;
        result.outcome = outcome;
        if (!copy.failure.isOk()) {
          result.outcome.reason = FinishReason::Failed;
          result.outcome.status = copy.failure;
        }
        if (copy.output) {
          bool isHeard = stream->onText && !copy.isOver &&
                         outcome.reason != FinishReason::Cancelled;
          std::string rest = copy.output->flush();
          if (!rest.empty() && isHeard)
            (void)stream->onText(outcome.copy, rest);
          result.text = copy.output->text();
        }
        if (onFinish)
          onFinish(result);
      });
}

Result<GenerateResult> Engine::generate(GenerateRequest request) {
  if (request.copies != 1)
    return Status::invalid("generate() answers with one copy, " +
                           std::to_string(request.copies) +
                           " were asked for: submit the request");
  GenerateResult result;
  RequestScope scope(*core_, 1);
  auto id = submit(std::move(request),
                   [&](const GenerateResult &done) { result = done; });
  if (!id)
    return id.status();
  scope.add(*id);
  INGOT_RETURN_IF_ERROR(runUntilIdle());
  if (result.outcome.reason == FinishReason::Failed)
    return result.outcome.status;
  return result;
}

} // namespace ingot
