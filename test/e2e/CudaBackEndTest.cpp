// The CUDA back end where the model does not matter: which code a device gets and what
// is said where it gets none, artifacts of another text, the compiler's stages, profiles,
// and a run under all the emulator's checks.
#include "compiler/driver/CompileModel.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

using namespace ingot;
using namespace ingot::test;
using testing::HasSubstr;

namespace {

// The file's bytes.
std::vector<std::uint8_t> read(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class CudaBackEndTest : public testing::Test {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
  }
};

std::string anArtifact() {
  return compiledModel(
      "tiny-llama", "f16", "f16",
      std::string("--target cuda:sm_90,cpu --levels x86-64-v3") +
          " --table f16");
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
void expectNoFault(const std::string &artifact) {
  StandInScope scope("check=1,seed=11,memory=64");
  auto engine = openEngine(artifact, deviceOptions(96, 3));
  ASSERT_TRUE(engine);
  for (const Logits &logits : scoreTokens(
           *engine, {randomTokens(20, 1, 160), randomTokens(3, 2, 160)}))
    for (const auto &row : logits)
      EXPECT_TRUE(std::isfinite(row[0]));
  std::size_t done = 0;
  for (unsigned i = 0; i < 3; ++i) {
    GenerateRequest request;
    request.promptIds = randomTokens(5 + i, i, 160);
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
TEST_F(CudaBackEndTest, nothingIsAtFault) { expectNoFault(anArtifact()); }
TEST_F(CudaBackEndTest, nothingIsAtFaultWithExperts) {
  expectNoFault(
      compiledModel("families/qwen3-moe", "int8-g32", "f16",
                    "--target cuda:sm_90,cpu --levels x86-64-v3 --table int8"));
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
  request.modelPath = modelFolder("tiny-llama");
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
  EngineOptions cpu = deviceOptions(64);
  cpu.device = "cpu";
  std::vector<Logits> logits;
  for (const char *name : {"a.ingot", "cpu.ingot"}) {
    auto engine = openEngine(folder.path(name), cpu);
    ASSERT_TRUE(engine);
    logits.push_back(scoreTokens(*engine, {randomTokens(20, 1)})[0]);
  }
  EXPECT_EQ(bitDifference(logits[0], logits[1]), "");
}

TEST_F(CudaBackEndTest, aProfileHasTheTimesOfLaunches) {
  StandInScope scope;
  auto engine = openEngine(anArtifact(), deviceOptions(64));
  ASSERT_TRUE(engine);
  engine->executor().setProfiling(true);
  scoreTokens(*engine, {randomTokens(9, 1)});
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

// Contexts of more segments of keys have graphs of their own, whose rows have the bits
// that a prompt gives them.
TEST_F(CudaBackEndTest, longContextsHaveTheirOwnGraphs) {
  StandInScope scope;
  const Tokens tokens = randomTokens(ingot::abi::kSegmentTokens + 4, 8);
  std::vector<Logits> logits;
  for (std::int32_t chunk : {0, 1}) {
    EngineOptions chunks = deviceOptions(320);
    chunks.chunkTokens = chunk;
    auto engine = openEngine(anArtifact(), chunks);
    ASSERT_TRUE(engine);
    logits.push_back(scoreTokens(*engine, {tokens})[0]);
    if (chunk == 1)
      EXPECT_EQ(engine->cudaExecutor()->numGraphs(), 2u);
  }
  EXPECT_EQ(bitDifference(logits[0], logits[1]), "");
}

// Pieces of a prompt that fill a graph's bucket have fewer tiles than rows. What a step
// of more tiles left behind them does not run again.
TEST_F(CudaBackEndTest, piecesThatFillTheirBucket) {
  StandInScope scope;
  const Tokens prompt = randomTokens(40, 31);
  std::vector<Tokens> singles;
  for (unsigned seed = 0; seed < 8; ++seed)
    singles.push_back(randomTokens(1, seed));
  auto alone = openEngine(anArtifact(), deviceOptions(96));
  ASSERT_TRUE(alone);
  const Logits expected = scoreTokens(*alone, {prompt})[0];
  for (std::int32_t piece : {2, 4, 8}) {
    EngineOptions pieces = deviceOptions(96, 8);
    pieces.chunkTokens = piece;
    auto engine = openEngine(anArtifact(), pieces);
    ASSERT_TRUE(engine);
    scoreTokens(*engine, singles); // a tile for each of eight rows
    EXPECT_EQ(bitDifference(scoreTokens(*engine, {prompt})[0], expected), "")
        << "pieces of " << piece;
    EXPECT_GT(engine->cudaExecutor()->numGraphSteps(), 0u);
  }
}

// Three sequences are a graph of four rows, whose last writes nothing, neither behind
// the first sequence nor into the blocks of the others: they cross the end of a block.
TEST_F(CudaBackEndTest, paddingRowsWriteNothing) {
  StandInScope scope;
  std::vector<Tokens> inputs;
  for (unsigned seed : {21u, 22u, 23u})
    inputs.push_back(randomTokens(ingot::abi::kBlockTokens + 4, seed));
  EngineOptions chunks = deviceOptions(96, 3);
  chunks.chunkTokens = 1;
  auto engine = openEngine(anArtifact(), chunks);
  ASSERT_TRUE(engine);
  std::vector<Logits> together = scoreTokens(*engine, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(bitDifference(scoreTokens(*engine, {inputs[i]})[0], together[i]),
              "")
        << i;
}

// Where the device chooses no token (its kernel does not run here, and what was there
// before says so), the logits come after all, and the sampler chooses.
TEST_F(CudaBackEndTest, withoutATokenTheLogitsCome) {
  std::vector<Tokens> chosen;
  for (const char *settings : {"", "skip=ingot_sample"}) {
    StandInScope scope(settings);
    auto engine = openEngine(anArtifact(), deviceOptions(64));
    ASSERT_TRUE(engine);
    GenerateRequest request;
    request.promptIds = randomTokens(7, 5);
    request.sampling.temperature = 0;
    request.maxTokens = 8;
    request.ignoreEos = true;
    auto result = engine->generate(std::move(request));
    ASSERT_TRUE(result.isOk()) << result.status().message();
    chosen.push_back(result->outcome.tokens);
    EXPECT_GT(engine->cudaExecutor()->numChosenSteps(), 4u);
  }
  EXPECT_EQ(chosen[0], chosen[1]);
}

// A context is current for one thread: an engine may be opened by one, run by another
// and ended by a third, and leaves nothing on the device.
TEST_F(CudaBackEndTest, anyThreadMayRunAndEndIt) {
  StandInScope scope("memory=64");
  std::unique_ptr<Engine> engine;
  std::thread([&] {
    engine = openEngine(anArtifact(), deviceOptions(64));
  }).join();
  ASSERT_TRUE(engine);
  std::thread([&] {
    EXPECT_EQ(scoreTokens(*engine, {randomTokens(9, 1)})[0].size(), 9u);
  }).join();
  std::thread([&] { engine.reset(); }).join();
  auto driver = cuda::Driver::open();
  ASSERT_TRUE(driver.isOk()) << driver.status().message();
  auto device = cuda::Device::open(*driver, 0);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  auto memory = (*device)->memoryInfo();
  ASSERT_TRUE(memory.isOk()) << memory.status().message();
  EXPECT_EQ(memory->freeBytes, memory->totalBytes);
}

} // namespace
