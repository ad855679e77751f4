#include "runtime/engine/Encoder.h"

#include "runtime/execute/cpu/HostCpus.h"
#include "runtime/memory/AvailableMemory.h"
#include "runtime/plan/CpuFeatures.h"

#include <algorithm>
#include <sys/mman.h>

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
  const fbs::Target *target = artifact_.target("cpu");
  if (!target)
    return Status::unsupported("has no code for the cpu; rebuild it with the "
                               "cpu among its targets");
  INGOT_ASSIGN_OR_RETURN(
      std::uint32_t level,
      chooseLevel(*target, options.level, hostCpuFeatures()));
  {
    INGOT_ASSIGN_OR_RETURN(CodeMapping code,
                           CodeMapping::map(artifact_, *target, level));
    code_.emplace(std::move(code));
  }
  auto tables = artifact_.segment(container::SegmentKind::Tokenizer);
  if (!tables.empty()) {
    INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::open(tables));
    if (tokenizer.vocabSize() > std::int32_t(model().vocab()))
      return Status::invalid(
          "tokenizer has " + std::to_string(tokenizer.vocabSize()) +
          " ids, the model's vocabulary " + std::to_string(model().vocab()));
    tokenizer_.emplace(std::move(tokenizer));
  }
  INGOT_RETURN_IF_ERROR(takeMemory(*target, options));
  auto weights = artifact_.segment(container::SegmentKind::Weights);
  (void)::madvise(const_cast<std::uint8_t *>(weights.data()), weights.size(),
                  MADV_WILLNEED);
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
  if (auto available = availableMemoryBytes();
      available && contract_.privateBytes() > *available)
    return Status::outOfMemory(
        "needs " + std::to_string(contract_.privateBytes()) +
        " bytes beside its weights, this process may still take " +
        std::to_string(*available) + "; ask for a smaller context or step\n" +
        contract_.describe());

  PoolOptions poolOptions;
  poolOptions.numWorkers = threads;
  poolOptions.scratchBytesPerWorker = contract_.scratchBytesPerWorker;
  if (cpus.shouldPin(threads))
    poolOptions.pinTo.assign(cpus.allowed.begin() + 1, cpus.allowed.end());
  INGOT_ASSIGN_OR_RETURN(pool_, WorkerPool::create(poolOptions));
  std::vector<GroupGeometry> groups;
  std::vector<std::int32_t> blocks;
  for (std::size_t g = 0; g < contract_.states.size(); ++g) {
    groups.push_back(GroupGeometry::of(*plan.states()->Get(g)));
    blocks.push_back(contract_.states[g].blocks);
  }
  INGOT_ASSIGN_OR_RETURN(
      KvCache cache, KvCache::create(std::move(groups), blocks, options.cache));
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
