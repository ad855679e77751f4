// What each command of `ingot` takes, as plain values: ingot.cpp fills them
// from the command line, the commands never see a flag.
#pragma once

#include "runtime/engine/Engine.h"
#include "runtime/support/Status.h"
#include "tools/text/RenderText.h"
#include "tools/text/TokenizeLines.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot::cli {

// What "ngram" and "exit:N" ask of an engine; anything else is an error.
Status readSpeculation(const std::string &text, EngineOptions &options);

struct SpeculationFlags {
  std::string draft;     // path of a model that drafts
  std::string speculate; // "ngram", "exit:N", or empty
  std::optional<std::int32_t> draftTokens;
  // Refuses flags that would have no effect.
  Status apply(EngineOptions &options) const;
};

struct ModelFlags {
  std::string path;
  std::string device;
  std::string level;
  int threads = 0;
  std::int32_t context = 0;
  bool verify = false;
  EngineOptions engineOptions() const;
};

// A flag that is not given leaves the model's own default.
struct SamplingFlags {
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  std::optional<double> presencePenalty, frequencyPenalty;
  std::optional<std::int64_t> topK, minTokens;
  std::optional<std::uint64_t> seed;
  SamplingParams over(SamplingParams defaults) const;
  // Is a flag given that has an effect only above temperature 0?
  bool choosesAmongTokens() const { return topP || minP || topK || seed; }
};

struct RunFlags {
  ModelFlags model;
  SpeculationFlags speculation;
  SamplingFlags sampling;
  std::optional<std::string> prompt;
  bool chat = false;
  std::string system;
  std::int64_t maxTokens = -1;
  std::vector<std::string> stop;
  bool ignoreEos = false;
  double exitThreshold = 0;
  bool stats = false;
  bool profile = false;
};
Status run(const RunFlags &flags);

struct InspectFlags {
  std::string path;
  bool json = false;
  bool verify = false;
  bool ledger = false; // that alone
  // The predicted cost on a chip, alone: steps of so many sequences, each of
  // `context` tokens, and a prompt.
  std::string cost; // "sm_90a"
  std::vector<std::int32_t> rows = {1, 16, 64};
  std::int32_t context = 0; // 0: 1024, or the model's where that is less
  std::int32_t prompt = 0;  // 0: 512, or the context where that is less
};
Status inspect(const InspectFlags &flags);
// `inspect --cost`.
Status inspectCost(const Artifact &artifact, const InspectFlags &flags);

struct BenchFlags {
  ModelFlags model;
  std::vector<int> prompts = {128, 512};
  int generate = 128;
  std::vector<int> batches = {1, 4, 16};
  bool json = false;
};
Status bench(const BenchFlags &flags);

struct EvalFlags {
  ModelFlags model;
  std::string textFile;
  std::string against;
  int window = 512;
  std::int64_t maxTokens = 0; // of the text; 0: all
  bool json = false;
};
Status eval(const EvalFlags &flags);

struct EmbedFlags {
  ModelFlags model;
  std::vector<std::string> texts;
  std::string file; // a text on each line; "-": standard input
  bool json = false;
};
Status embed(const EmbedFlags &flags);

Status tokenize(const TokenizeFlags &flags);
Status render(const RenderFlags &flags);

struct ServeFlags {
  std::vector<std::string> models; // PATH or NAME=PATH
  SpeculationFlags speculation;
  std::string device;
  std::string level;
  int threads = 0;
  bool verify = false;
  std::int32_t context = 0;
  std::int32_t sequences = 16;
  std::int32_t stepTokens = 0;  // 0: the default of serving
  std::int32_t chunkTokens = 0; // 0: the default of serving
  double stallFactor = CoreOptions().stallFactor;
  std::int64_t kvMebibytes = 0; // 0: what is needed, at most half the memory
  std::string host = "127.0.0.1";
  int port = 8080;
  bool allowControlTokens = false;
  std::string apiKeyFile;
  int rateLimit = 0;
  int maxQueue = 256;
  int maxConnections = 1024;
  int maxBodyKibibytes = 8192;
  int drainSeconds = 30;
  int stallSeconds = 60;
  bool logJson = false;
};
Status serve(const ServeFlags &flags);

// Replaces this process by `ingot-compiler` beside this program, with the same
// arguments. Returns only on failure.
Status runCompiler(int argc, char **argv);

} // namespace ingot::cli
