// What an engine and an encoder do alike when they open an artifact.
#pragma once

#include "runtime/execute/cpu/HostCpus.h"
#include "runtime/execute/cpu/WorkerPool.h"
#include "runtime/memory/KvCache.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/CodeMapping.h"
#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ingot {

// Left empty where the artifact has none; refuses one with more ids than the
// model's vocabulary.
Status openTokenizer(const Artifact &artifact,
                     std::optional<Tokenizer> &tokenizer);

// The code of `level`, or of the best that this machine runs where it is empty.
Result<CodeMapping> mapCpuCode(const Artifact &artifact,
                               const fbs::Target &target,
                               const std::string &level);
// Of the artifact; an error where it has none.
Result<const fbs::Target *> cpuTarget(const Artifact &artifact);

// Refused here with both numbers, rather than killed later without a word.
// `advice` is what to ask for less of.
Status checkAvailable(const MemoryContract &contract,
                      std::optional<std::uint64_t> availableBytes,
                      const char *advice);

Result<std::unique_ptr<WorkerPool>>
makeWorkerPool(const HostCpus &cpus, int threads,
               const MemoryContract &contract);

// A cache of the contract's blocks.
Result<KvCache> makeKvCache(const fbs::Plan &plan,
                            const MemoryContract &contract,
                            const KvCacheOptions &options,
                            const StateMemoryMaker &memory);

// Weights are read while the first prompt is being prepared. Advice only.
void readWeightsAhead(const Artifact &artifact);

} // namespace ingot
