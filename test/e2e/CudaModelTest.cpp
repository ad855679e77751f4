// Whole models through the CUDA back end on the stand-in driver of test/simt: the
// executor, its graphs and the kernels' own texts, with the emulator as the device.
// Logits are compared with the lm module's plain float32 run on the weights that the
// encoding holds; a token's bits alone with its bits in company; graphs with launches.
#include "compiler/codegen/cuda/Nvrtc.h"
#include "compiler/driver/CompileModel.h"
#include "compiler/reference/LmExecutor.h"
#include "runtime/engine/Engine.h"
#include "test/e2e/CompiledModel.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

using namespace ingot;
using namespace ingot::test;
using testing::HasSubstr;

namespace {

using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<std::vector<float>>;

constexpr const char *kTarget = "--target cuda:sm_90,cpu --levels x86-64-v3";

struct Case {
  std::string model;
  std::string quantize;
  std::string kv;
  std::string table;
  double maxKl; // in the mean over positions
};

std::ostream &operator<<(std::ostream &out, const Case &c) {
  return out << c.model << " " << c.quantize << " kv " << c.kv;
}

// The stand-in driver takes its settings when it is loaded. INGOT_TEST_DRIVER names
// another driver, "system" the machine's own: tools/gpu-check runs the cases of models
// on a device so.
class StandInScope {
public:
  explicit StandInScope(const char *settings = "") {
    if (const char *driver = std::getenv("INGOT_TEST_DRIVER")) {
      if (std::string(driver) == "system")
        ::unsetenv("INGOT_CUDA_DRIVER");
      else
        ::setenv("INGOT_CUDA_DRIVER", driver, 1);
      return;
    }
    ::setenv("INGOT_CUDA_DRIVER", INGOT_STAND_IN_DRIVER, 1);
    ::setenv("INGOT_STANDIN", settings, 1);
  }
  ~StandInScope() {
    if (std::getenv("INGOT_TEST_DRIVER"))
      return;
    ::unsetenv("INGOT_CUDA_DRIVER");
    ::unsetenv("INGOT_STANDIN");
  }
};

std::unique_ptr<Engine> open(const std::string &path, EngineOptions options) {
  options.device = options.device.empty() ? "cuda" : options.device;
  auto engine = Engine::open(path, options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  return engine ? std::move(engine).value() : nullptr;
}

EngineOptions options(std::int32_t context, std::int32_t sequences = 1) {
  EngineOptions made;
  made.context = context;
  made.sequences = sequences;
  made.stepTokens = made.logitRows = 128;
  return made;
}

Tokens randomTokens(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(std::int32_t(random() % 1000));
  return tokens;
}

// The logits behind each token of each input, which share their steps.
std::vector<Logits> score(Engine &engine, const std::vector<Tokens> &inputs) {
  std::vector<Logits> results(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ScoreRequest request;
    request.tokens = inputs[i];
    request.onLogits = [&results, i](std::int32_t,
                                     std::span<const float> logits) {
      results[i].emplace_back(logits.begin(), logits.end());
    };
    auto id = engine.core().submit(std::move(request), {});
    EXPECT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine.runUntilIdle();
  EXPECT_TRUE(status.isOk()) << status.message();
  return results;
}

// Without NVRTC there is no code for CUDA; the sentence says where it was looked for.
std::string whyNoNvrtc() {
  auto nvrtc = codegen::Nvrtc::open();
  return nvrtc ? std::string() : nvrtc.status().message();
}

// The file's bytes.
std::vector<std::uint8_t> read(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string path(const std::string &model) {
  return std::string(INGOT_SOURCE_DIR "/test/models/") + model;
}

// The module's own logits in float32, with the weights that the encoding holds and
// activations as they are.
Logits reference(const Case &c, const Tokens &tokens) {
  mlir::MLIRContext context;
  prepareContext(context);
  CompileRequest request;
  request.modelPath = path(c.model);
  request.until = Phase::Compress;
  request.options.quantize = c.quantize;
  request.options.table = c.table;
  request.options.kv = c.kv;
  auto phases = phaseOptions(request.options);
  EXPECT_TRUE(phases.isOk()) << phases.status().message();
  // The phase as it is, but for the quantisation of activations.
  std::string text = phasePipeline(Phase::Compress, *phases);
  std::size_t at = text.find(",insert-quantize");
  EXPECT_NE(at, std::string::npos);
  text.erase(at);
  request.options.pipelines["compress"] = text;
  auto compiled = compileModel(context, request);
  EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
  if (!compiled)
    return {};
  auto executor = LmExecutor::create(*compiled->module);
  EXPECT_TRUE(executor.isOk()) << executor.status().message();
  if (!executor)
    return {};
  std::vector<std::int64_t> rows(tokens.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = std::int64_t(i);
  auto flat = executor->run(tokens, rows);
  EXPECT_TRUE(flat.isOk()) << flat.status().message();
  if (!flat)
    return {};
  Logits logits;
  std::size_t vocab = flat->size() / tokens.size();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    logits.emplace_back(flat->begin() + std::ptrdiff_t(i * vocab),
                        flat->begin() + std::ptrdiff_t((i + 1) * vocab));
  return logits;
}

std::vector<double> logProbabilities(const std::vector<float> &logits) {
  double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - most);
  std::vector<double> result;
  for (float logit : logits)
    result.push_back(double(logit) - most - std::log(sum));
  return result;
}

double divergence(const std::vector<float> &truth,
                  const std::vector<float> &found) {
  std::vector<double> p = logProbabilities(truth), q = logProbabilities(found);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

std::size_t firstOf(const std::vector<float> &logits) {
  return std::size_t(std::max_element(logits.begin(), logits.end()) -
                     logits.begin());
}

std::string bitDifference(const Logits &a, const Logits &b) {
  if (a.size() != b.size())
    return "lengths " + std::to_string(a.size()) + " and " +
           std::to_string(b.size());
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t t = 0; t < a[p].size(); ++t)
      if (std::memcmp(&a[p][t], &b[p][t], 4) != 0)
        return "position " + std::to_string(p) + ", token " +
               std::to_string(t) + ": " + std::to_string(a[p][t]) + " and " +
               std::to_string(b[p][t]);
  return {};
}

class CudaModelTest : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
  }
  std::string compiled() {
    const Case &c = GetParam();
    return compiledModel(c.model, c.quantize, c.kv,
                         std::string(kTarget) + " --table " + c.table);
  }
};

// Teacher-forced on 512 positions: the divergence from the reference stays under the
// bound of the encoding, and the first choice is another only where the reference's
// lead is below twice the measured error.
TEST_P(CudaModelTest, logitsAreTheReference) {
  StandInScope scope;
  const Case &c = GetParam();
  std::string artifact = compiled();
  ASSERT_FALSE(artifact.empty());
  auto engine = open(artifact, options(512));
  ASSERT_TRUE(engine);
  Tokens tokens = randomTokens(512, 3);
  Logits found = score(*engine, {tokens})[0];
  Logits truth = reference(c, tokens);
  ASSERT_EQ(found.size(), truth.size());
  double worst = 0, sum = 0, error = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    double kl = divergence(truth[i], found[i]);
    ASSERT_TRUE(std::isfinite(kl)) << "position " << i;
    worst = std::max(worst, kl);
    sum += kl;
    for (std::size_t t = 0; t < truth[i].size(); ++t)
      error = std::max(error, double(std::fabs(truth[i][t] - found[i][t])));
  }
  int flips = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    std::size_t mine = firstOf(found[i]), theirs = firstOf(truth[i]);
    if (mine == theirs)
      continue;
    ++flips;
    EXPECT_LT(truth[i][theirs] - truth[i][mine], 2 * error) << "position " << i;
  }
  EXPECT_LT(sum / double(truth.size()), c.maxKl);
  std::printf(
      "%s %s kv %s: KL %.3g in the mean, %.3g at most; logits differ by "
      "%.3g; %d other first choices\n",
      c.model.c_str(), c.quantize.c_str(), c.kv.c_str(),
      sum / double(truth.size()), worst, error, flips);
}

// Alone, in a batch, in chunks of any size: the same bits. Decoding steps are graphs.
TEST_P(CudaModelTest, aTokensBitsAreItsOwn) {
  StandInScope scope;
  std::string artifact = compiled();
  ASSERT_FALSE(artifact.empty());
  std::vector<Tokens> inputs;
  for (std::size_t length : {1, 8, 9, 17, 33, 65, 70})
    inputs.push_back(randomTokens(length, unsigned(length)));
  std::vector<Logits> alone;
  {
    auto engine = open(artifact, options(320));
    ASSERT_TRUE(engine);
    for (const Tokens &input : inputs)
      alone.push_back(score(*engine, {input})[0]);
  }
  {
    auto engine = open(artifact, options(320, 8));
    ASSERT_TRUE(engine);
    std::vector<Logits> together = score(*engine, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(bitDifference(alone[i], together[i]), "")
          << "together, length " << inputs[i].size();
  }
  for (std::int32_t chunk : {1, 7}) {
    EngineOptions chunks = options(320, 2);
    chunks.chunkTokens = chunk;
    auto engine = open(artifact, chunks);
    ASSERT_TRUE(engine);
    EXPECT_EQ(bitDifference(alone[4], score(*engine, {inputs[4]})[0]), "")
        << "chunks of " << chunk;
    EXPECT_GT(engine->cudaExecutor()->numGraphSteps(), 0u);
    EXPECT_GT(engine->cudaExecutor()->numGraphs(), 0u);
    // The same without graphs.
    chunks.cuda.useGraphs = false;
    auto plain = open(artifact, chunks);
    ASSERT_TRUE(plain);
    EXPECT_EQ(bitDifference(alone[4], score(*plain, {inputs[4]})[0]), "")
        << "chunks of " << chunk << " without graphs";
    EXPECT_EQ(plain->cudaExecutor()->numGraphSteps(), 0u);
  }
}

// What is generated by the most likely token is what the reference would choose,
// unless its lead is below twice the measured error.
TEST_P(CudaModelTest, greedyTextIsTheReferences) {
  StandInScope scope;
  std::string artifact = compiled();
  ASSERT_FALSE(artifact.empty());
  auto engine = open(artifact, options(128));
  ASSERT_TRUE(engine);
  GenerateRequest request;
  request.promptIds = randomTokens(16, 5);
  request.sampling.temperature = 0;
  request.maxTokens = 48;
  request.ignoreEos = true;
  Tokens all = *request.promptIds;
  auto result = engine->generate(std::move(request));
  ASSERT_TRUE(result.isOk()) << result.status().message();
  Tokens chosen = result->outcome.tokens;
  ASSERT_EQ(chosen.size(), 48u);
  EXPECT_GT(engine->cudaExecutor()->numGraphSteps(), 40u);
  all.insert(all.end(), chosen.begin(), chosen.end() - 1);
  Logits truth = reference(GetParam(), all);
  Logits found = score(*engine, {all})[0];
  double error = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    for (std::size_t t = 0; t < truth[i].size(); ++t)
      error = std::max(error, double(std::fabs(truth[i][t] - found[i][t])));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    // The bits of decoding are those of scoring.
    EXPECT_EQ(std::size_t(chosen[i]), firstOf(found[15 + i]));
    const std::vector<float> &row = truth[15 + i];
    EXPECT_GE(row[std::size_t(chosen[i])] + 2 * error, row[firstOf(row)])
        << "token " << i;
  }
}

// The bounds are those of the encodings: 1e-5 for float16, 1e-4 for integers, of weights
// or of the cache.
INSTANTIATE_TEST_SUITE_P(
    Models, CudaModelTest,
    testing::Values(Case{"draft", "f16", "f16", "f16", 1e-5},
                    Case{"draft", "int8-g32", "f16", "int8", 1e-4},
                    Case{"draft", "int4-g32", "f16", "int8", 1e-4},
                    Case{"draft", "int4-g32", "int8", "int8", 1e-4},
                    Case{"tiny-llama", "f16", "f16", "f16", 1e-5},
                    Case{"tiny-llama", "int8-g32", "f16", "int8", 1e-4},
                    Case{"tiny-llama", "int4-g32", "f16", "int8", 1e-4},
                    Case{"tiny-llama", "f16", "int8", "f16", 1e-4},
                    Case{"tiny-qwen3", "f16", "int8", "f16", 1e-4},
                    Case{"tiny-mistral", "none", "f16", "none", 1e-5},
                    Case{"tiny-qwen2", "f16", "f16", "f16", 1e-5},
                    Case{"tiny-qwen3", "f16", "f16", "f16", 1e-5}),
    [](const testing::TestParamInfo<Case> &info) {
      std::string name = info.param.model + "_" + info.param.quantize;
      if (info.param.kv != "f16")
        name += "_kv_" + info.param.kv;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

//===----------------------------------------------------------------------===//
// One model, for what is not of the model
//===----------------------------------------------------------------------===//

class CudaBackEndTest : public testing::Test {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
  }
};

std::string anArtifact() {
  return compiledModel("tiny-llama", "f16", "f16",
                       std::string(kTarget) + " --table f16");
}

std::string refused(const std::string &path, EngineOptions wanted,
                    StatusCode code) {
  auto engine = Engine::open(path, wanted);
  EXPECT_FALSE(engine.isOk());
  if (engine.isOk())
    return "opened";
  EXPECT_EQ(engine.status().code(), code) << engine.status().message();
  return engine.status().message();
}

// Under the emulator's checks: no race, nothing out of bounds, nothing read that
// nobody wrote, in a prompt, a batch of decoding sequences and their padding rows.
TEST_F(CudaBackEndTest, nothingIsAtFault) {
  StandInScope scope("check=1,seed=11,memory=64");
  auto engine = open(anArtifact(), options(96, 3));
  ASSERT_TRUE(engine);
  for (const Logits &logits :
       score(*engine, {randomTokens(20, 1), randomTokens(3, 2)}))
    for (const auto &row : logits)
      EXPECT_TRUE(std::isfinite(row[0]));
  std::size_t done = 0;
  for (unsigned i = 0; i < 3; ++i) {
    GenerateRequest request;
    request.promptIds = randomTokens(5 + i, i);
    request.sampling.temperature = 0;
    request.maxTokens = 6;
    request.ignoreEos = true;
    auto id = engine->submit(std::move(request), [&](const GenerateResult &r) {
      EXPECT_TRUE(r.outcome.status.isOk()) << r.outcome.status.message();
      EXPECT_EQ(r.outcome.tokens.size(), 6u);
      ++done;
    });
    ASSERT_TRUE(id.isOk()) << id.status().message();
  }
  Status status = engine->runUntilIdle();
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(done, 3u);
}

TEST_F(CudaBackEndTest, whoRunsTheModel) {
  EngineOptions any;
  {
    StandInScope scope;
    auto engine = Engine::open(anArtifact(), any);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_EQ((*engine)->placement(),
              "CUDA on the CPU (device 0), level sm_90");
    EXPECT_EQ((*engine)->whyNotDevice(), "");
    EXPECT_TRUE((*engine)->contract().isOnDevice);
    EXPECT_THAT((*engine)->contract().describe(),
                HasSubstr("copied to the device"));
    EngineOptions cpu;
    cpu.device = "cpu";
    auto onCpu = Engine::open(anArtifact(), cpu);
    ASSERT_TRUE(onCpu.isOk()) << onCpu.status().message();
    EXPECT_THAT((*onCpu)->placement(), HasSubstr("level x86-64-v3"));
    cpu.device = "gpu";
    EXPECT_THAT(refused(anArtifact(), cpu, StatusCode::InvalidInput),
                HasSubstr("expected cpu, cuda or cuda:N"));
    EngineOptions second;
    second.device = "cuda:1";
    EXPECT_THAT(refused(anArtifact(), second, StatusCode::NotFound),
                HasSubstr("CUDA device 1: the driver finds 1"));
    second.device = "cuda";
    second.threads = 2;
    EXPECT_THAT(refused(anArtifact(), second, StatusCode::InvalidInput),
                HasSubstr("threads are of the cpu"));
  }
  // A later chip takes the text, an older one nothing.
  {
    StandInScope scope("sm=120");
    auto engine = Engine::open(anArtifact(), any);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_EQ((*engine)->level(), "compute_80");
  }
  EngineOptions cuda;
  cuda.device = "cuda";
  {
    StandInScope scope("sm=75");
    EXPECT_THAT(refused(anArtifact(), cuda, StatusCode::Unsupported),
                HasSubstr("has code for sm_90, compute_80, found CUDA on the "
                          "CPU of sm_75"));
    auto engine = Engine::open(anArtifact(), any);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_THAT((*engine)->whyNotDevice(), HasSubstr("of sm_75"));
    EXPECT_EQ((*engine)->cudaExecutor(), nullptr);
  }
  {
    StandInScope scope("driver=12010");
    EXPECT_THAT(refused(anArtifact(), cuda, StatusCode::Unsupported),
                HasSubstr("or newer, found one for CUDA 12.1"));
  }
  {
    StandInScope scope("memory=1");
    std::string message = refused(anArtifact(), cuda, StatusCode::OutOfMemory);
    EXPECT_THAT(message, HasSubstr("bytes on the device, CUDA on the CPU has "
                                   "1048576 of 1048576 free"));
    // A device is there: that it is too small is for the caller to know.
    EXPECT_THAT(refused(anArtifact(), any, StatusCode::OutOfMemory),
                HasSubstr("bytes on the device"));
  }
  ::setenv("INGOT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_THAT(refused(anArtifact(), cuda, StatusCode::Unsupported),
              HasSubstr("needs a CUDA driver for CUDA"));
  auto engine = Engine::open(anArtifact(), any);
  ::unsetenv("INGOT_CUDA_DRIVER");
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  EXPECT_THAT((*engine)->whyNotDevice(), HasSubstr("found none"));
}

TEST_F(CudaBackEndTest, anArtifactForTheCpuAlone) {
  StandInScope scope;
  std::string artifact =
      compiledModel("tiny-llama", "f16", "f16", "--levels x86-64-v3");
  EngineOptions cuda;
  cuda.device = "cuda";
  EXPECT_THAT(refused(artifact, cuda, StatusCode::Unsupported),
              HasSubstr("has no code for CUDA"));
  auto engine = Engine::open(artifact, {});
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  EXPECT_EQ((*engine)->whyNotDevice(), "");
}

// An image of another text than the plan says is refused, not run.
TEST_F(CudaBackEndTest, anotherTextIsRefused) {
  std::string artifact = anArtifact();
  std::vector<std::uint8_t> bytes = read(artifact);
  const std::string mark = "ingot_source_";
  std::size_t changed = 0;
  for (auto at = bytes.begin();;) {
    at = std::search(at, bytes.end(), mark.begin(), mark.end());
    if (at == bytes.end())
      break;
    at += std::ptrdiff_t(mark.size());
    std::fill(at, at + 16, std::uint8_t('1'));
    ++changed;
  }
  ASSERT_GT(changed, 0u);
  fixChecksums(bytes);
  TempFolder folder;
  std::string path = folder.write("other.ingot", bytes);
  StandInScope scope;
  EngineOptions cuda;
  cuda.device = "cuda";
  EXPECT_THAT(refused(path, cuda, StatusCode::InvalidInput),
              HasSubstr("that the plan names"));
}

// Stopped after the last phase and gone on from its text, the compiler gives the same
// bytes; and the cpu beside a CUDA target computes what it computes alone.
TEST_F(CudaBackEndTest, thePlanIsItsText) {
  TempFolder folder;
  mlir::MLIRContext context;
  prepareContext(context);
  CompileRequest request;
  request.modelPath = path("tiny-llama");
  request.outputPath = folder.path("a.ingot");
  request.stagesFolder = folder.path("stages");
  request.options.quantize = "int4-g32";
  request.options.target = "cuda:sm_90,cpu";
  request.options.levels = {{"x86-64-v3"}};
  auto first = compileModel(context, request);
  ASSERT_TRUE(first.isOk()) << first.status().message();
  CompileRequest again;
  again.modelPath = folder.path("stages") + "/4-lower.mlir";
  again.outputPath = folder.path("b.ingot");
  auto second = compileModel(context, again);
  ASSERT_TRUE(second.isOk()) << second.status().message();
  EXPECT_EQ(read(request.outputPath), read(again.outputPath));

  request.outputPath = folder.path("cpu.ingot");
  request.stagesFolder.clear();
  request.options.target = "cpu";
  auto alone = compileModel(context, request);
  ASSERT_TRUE(alone.isOk()) << alone.status().message();
  EXPECT_LT(alone->artifact.weightsBytes, first->artifact.weightsBytes);
  EngineOptions cpu = options(64);
  cpu.device = "cpu";
  std::vector<Logits> logits;
  for (const char *name : {"a.ingot", "cpu.ingot"}) {
    auto engine = open(folder.path(name), cpu);
    ASSERT_TRUE(engine);
    logits.push_back(score(*engine, {randomTokens(20, 1)})[0]);
  }
  EXPECT_EQ(bitDifference(logits[0], logits[1]), "");
}

TEST_F(CudaBackEndTest, aProfileHasTheTimesOfLaunches) {
  StandInScope scope;
  auto engine = open(anArtifact(), options(64));
  ASSERT_TRUE(engine);
  engine->executor().setProfiling(true);
  score(*engine, {randomTokens(9, 1)});
  std::vector<LaunchProfile> profile = engine->executor().profile();
  ASSERT_FALSE(profile.empty());
  for (const LaunchProfile &entry : profile) {
    EXPECT_EQ(entry.calls, 1u) << entry.name;
    EXPECT_GT(entry.seconds, 0) << entry.name;
    EXPECT_GT(entry.bytes, 0) << entry.name;
  }
  EXPECT_EQ(engine->cudaExecutor()->numGraphSteps(), 0u);
  EXPECT_GT(engine->executor().weightBytesPerStep(), 0);
}

} // namespace
