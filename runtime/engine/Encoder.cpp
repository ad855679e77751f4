#include "runtime/engine/Encoder.h"

#include "runtime/engine/Opening.h"
#include "runtime/memory/AvailableMemory.h"

#include <algorithm>

namespace ingot {
namespace {

constexpr std::int32_t kStepTokens = 1024;

} // namespace

std::string embeddingText(const fbs::EmbeddingInfo &embedding) {
  return std::string(fbs::EnumNamePoolKind(embedding.pooling())) +
         " pooling, " +
         (embedding.normalized() ? "of length 1" : "of any length");
}

Result<std::unique_ptr<Encoder>> Encoder::open(const std::string &path,
                                               const EncoderOptions &options) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact,
                         Artifact::open(path, {options.verifyChecksums}));
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(artifact)));
  if (Status status = encoder->start(options); !status)
    return status.withContext(path);
  return encoder;
}

Status Encoder::start(const EncoderOptions &options) {
  if (!model().embedding())
    return Status::unsupported("generates text and gives no vectors; `ingot "
                               "embed` and /v1/embeddings are for encoders");
  INGOT_ASSIGN_OR_RETURN(const fbs::Target *target, cpuTarget(artifact_));
  {
    INGOT_ASSIGN_OR_RETURN(CodeMapping code,
                           mapCpuCode(artifact_, *target, options.level));
    code_.emplace(std::move(code));
  }
  INGOT_RETURN_IF_ERROR(openTokenizer(artifact_, tokenizer_));
  INGOT_RETURN_IF_ERROR(takeMemory(*target, options));
  readWeightsAhead(artifact_);
  core_ = std::make_unique<EncoderCore>(*executor_, *cache_, contract_.context);
  return Status::ok();
}

// Keys and values are needed for the rows of one step, not for so many texts of
// the longest kind.
Status Encoder::takeMemory(const fbs::Target &target,
                           const EncoderOptions &options) {
  const fbs::Plan &plan = artifact_.plan();
  HostCpus cpus = detectHostCpus();
  int threads = options.threads > 0 ? options.threads : cpus.threads();
  ContractOptions wanted;
  wanted.context = options.context;
  wanted.sequences = options.sequences;
  wanted.workers = threads;
  wanted.stepTokens = options.stepTokens;
  if (wanted.stepTokens == 0) {
    std::int32_t context =
        options.context > 0
            ? options.context
            : std::int32_t(std::min<std::uint32_t>(model().context(), 4096));
    wanted.stepTokens = std::max(kStepTokens, context);
  }
  INGOT_ASSIGN_OR_RETURN(contract_, computeContract(plan, target, wanted));
  for (MemoryContract::State &state : contract_.states)
    state.blocks =
        std::min(state.blocks, contract_.stepTokens / state.blockTokens +
                                   contract_.sequences);
  INGOT_RETURN_IF_ERROR(checkAvailable(contract_, availableMemoryBytes(),
                                       "a smaller context or step"));
  INGOT_ASSIGN_OR_RETURN(pool_, makeWorkerPool(cpus, threads, contract_));
  INGOT_ASSIGN_OR_RETURN(
      KvCache cache,
      makeKvCache(plan, contract_, options.cache, makeHostState));
  cache_.emplace(std::move(cache));
  INGOT_ASSIGN_OR_RETURN(executor_,
                         CpuExecutor::create(plan, target, artifact_.weights(),
                                             code_->functions(), contract_,
                                             *cache_, *pool_));
  return Status::ok();
}

Result<std::vector<std::int32_t>>
Encoder::encode(const std::string &text) const {
  if (!tokenizer_)
    return Status::unsupported("the artifact has no tokenizer: give token ids");
  return tokenizer_->encode(text);
}

Result<std::vector<Embedding>>
Encoder::embed(std::span<const std::string> texts) {
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string &text : texts) {
    INGOT_ASSIGN_OR_RETURN(ids.emplace_back(), encode(text));
  }
  return core_->embed(ids);
}

} // namespace ingot
