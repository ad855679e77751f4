#include "runtime/engine/Opening.h"

#include "runtime/plan/CpuFeatures.h"

#include <sys/mman.h>

namespace ingot {

Status openTokenizer(const Artifact &artifact,
                     std::optional<Tokenizer> &tokenizer) {
  auto tables = artifact.segment(container::SegmentKind::Tokenizer);
  if (tables.empty())
    return Status::ok();
  INGOT_ASSIGN_OR_RETURN(Tokenizer opened, Tokenizer::open(tables));
  std::uint32_t vocab = artifact.plan().model()->vocab();
  if (opened.vocabSize() > std::int32_t(vocab))
    return Status::invalid(
        "tokenizer has " + std::to_string(opened.vocabSize()) +
        " ids, the model's vocabulary " + std::to_string(vocab));
  tokenizer.emplace(std::move(opened));
  return Status::ok();
}

Result<const fbs::Target *> cpuTarget(const Artifact &artifact) {
  if (const fbs::Target *target = artifact.target("cpu"))
    return target;
  return Status::unsupported("has no code for the cpu; rebuild it with the "
                             "cpu among its targets");
}

Result<CodeMapping> mapCpuCode(const Artifact &artifact,
                               const fbs::Target &target,
                               const std::string &level) {
  INGOT_ASSIGN_OR_RETURN(std::uint32_t chosen,
                         chooseLevel(target, level, hostCpuFeatures()));
  return CodeMapping::map(artifact, target, chosen);
}

Status checkAvailable(const MemoryContract &contract,
                      std::optional<std::uint64_t> availableBytes,
                      const char *advice) {
  if (!availableBytes || contract.privateBytes() <= *availableBytes)
    return Status::ok();
  return Status::outOfMemory(
      "needs " + std::to_string(contract.privateBytes()) +
      " bytes beside its weights, this process may still take " +
      std::to_string(*availableBytes) + "; ask for " + advice + "\n" +
      contract.describe());
}

Result<std::unique_ptr<WorkerPool>>
makeWorkerPool(const HostCpus &cpus, int threads,
               const MemoryContract &contract) {
  PoolOptions options;
  options.numWorkers = threads;
  options.scratchBytesPerWorker = contract.scratchBytesPerWorker;
  // The caller's thread is the caller's: it is not pinned, and the first
  // processor is left to it.
  if (cpus.shouldPin(threads))
    options.pinTo.assign(cpus.allowed.begin() + 1, cpus.allowed.end());
  return WorkerPool::create(options);
}

Result<KvCache> makeKvCache(const fbs::Plan &plan,
                            const MemoryContract &contract,
                            const KvCacheOptions &options,
                            const StateMemoryMaker &memory) {
  std::vector<GroupGeometry> groups;
  std::vector<std::int32_t> blocks;
  for (std::size_t g = 0; g < contract.states.size(); ++g) {
    groups.push_back(GroupGeometry::of(*plan.states()->Get(std::uint32_t(g))));
    blocks.push_back(contract.states[g].blocks);
  }
  return KvCache::create(std::move(groups), blocks, options, memory);
}

void readWeightsAhead(const Artifact &artifact) {
  auto weights = artifact.segment(container::SegmentKind::Weights);
  (void)::madvise(const_cast<std::uint8_t *>(weights.data()), weights.size(),
                  MADV_WILLNEED);
}

} // namespace ingot
