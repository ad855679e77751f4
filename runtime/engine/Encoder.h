// An encoder, ready to run: opens an artifact that gives vectors, takes all
// memory, and embeds texts. One thread at a time may use it.
//
//   auto encoder = Encoder::open("model.ingot");
//   std::vector<std::string> texts = {"a text", "another"};
//   auto vectors = encoder->get()->embed(texts);
#pragma once

#include "runtime/engine/EncoderCore.h"
#include "runtime/execute/cpu/CpuExecutor.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/plan/Artifact.h"
#include "runtime/plan/CodeMapping.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

struct EncoderOptions {
  std::string level;           // of code; empty: the best that runs here
  int threads = 0;             // 0: from affinity and control group
  std::int32_t context = 0;    // longest text; 0: the model's, at most 4096
  std::int32_t sequences = 32; // texts of a step, at most
  std::int32_t stepTokens = 0; // of a step; 0: 1024, or the context if longer
  bool verifyChecksums = false;
  KvCacheOptions cache; // for tests
};

class Encoder {
public:
  // Refuses an artifact that generates.
  static Result<std::unique_ptr<Encoder>>
  open(const std::string &path, const EncoderOptions &options = {});

  // With the model's special tokens, [CLS] text [SEP] as its files say.
  Result<std::vector<std::int32_t>> encode(const std::string &text) const;
  Result<std::vector<Embedding>> embed(std::span<const std::string> texts);

  EncoderCore &core() { return *core_; }
  const EncoderCore &core() const { return *core_; }
  const Artifact &artifact() const { return artifact_; }
  const fbs::ModelInfo &model() const { return *artifact_.plan().model(); }
  const MemoryContract &contract() const { return contract_; }
  const std::string &level() const { return code_->levelName(); }
  // Null where the artifact has none.
  const Tokenizer *tokenizer() const {
    return tokenizer_ ? &*tokenizer_ : nullptr;
  }
  CpuExecutor &executor() { return *executor_; }
  KvCache &cache() { return *cache_; }

private:
  explicit Encoder(Artifact artifact) : artifact_(std::move(artifact)) {}
  Status start(const EncoderOptions &options);
  Status takeMemory(const fbs::Target &target, const EncoderOptions &options);

  Artifact artifact_;
  std::optional<CodeMapping> code_;
  std::optional<Tokenizer> tokenizer_;
  MemoryContract contract_;
  std::unique_ptr<WorkerPool> pool_;
  std::optional<KvCache> cache_;
  std::unique_ptr<CpuExecutor> executor_;
  std::unique_ptr<EncoderCore> core_;
};

// "mean pooling, of length 1"
std::string embeddingText(const fbs::EmbeddingInfo &embedding);

} // namespace ingot
