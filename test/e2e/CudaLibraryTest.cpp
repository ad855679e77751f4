// Products of prompts by cuBLASLt (--allow-library-gemm), on the stand-in driver with
// a stand-in library that checks what it is given: whole models' logits are those
// without it within a bound, smaller steps are the same to the last bit, and who lacks
// the library is told so.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"

#include "runtime/execute/cuda/CublasLt.h"
#include "runtime/execute/cuda/Device.h"
#include "runtime/plan/LibraryUse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

using namespace ingot;
using namespace ingot::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr const char *kTarget =
    "--target cuda:sm_90,cpu --levels x86-64-v3 --table ";

class LibraryScope {
public:
  explicit LibraryScope(const char *settings = "",
                        const char *path = INGOT_STAND_IN_CUBLASLT) {
    ::setenv("INGOT_CUBLASLT", path, 1);
    ::setenv("INGOT_STANDIN_CUBLASLT", settings, 1);
  }
  ~LibraryScope() {
    ::unsetenv("INGOT_CUBLASLT");
    ::unsetenv("INGOT_STANDIN_CUBLASLT");
  }
};

// Uses of kernels whose names begin with this, in steps so far.
std::uint64_t usesOf(const Engine &engine, const std::string &prefix) {
  std::uint64_t sum = 0;
  for (const VariantUse &use :
       const_cast<Engine &>(engine).executor().variantUses())
    if (use.kernel.rfind(prefix, 0) == 0)
      sum += use.uses;
  return sum;
}

struct Case {
  std::string model, quantize;
};
// Of logits with and without the library, in the mean over positions: a tenth of what
// float16 may cost. Sums that differ in their last bits become other halves now and
// then, each of which is as good.
constexpr double kMaxKl = 1e-6;
std::ostream &operator<<(std::ostream &out, const Case &c) {
  return out << c.model << " " << c.quantize;
}

class CudaLibraryModelTest : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
  }
};

TEST_P(CudaLibraryModelTest, promptsAreThoseWithoutItWithinABound) {
  const Case &c = GetParam();
  StandInScope scope;
  LibraryScope library;
  std::string flags = kTarget + c.quantize;
  std::string with = compiledModel(c.model, c.quantize, "f16",
                                   flags + " --allow-library-gemm");
  std::string without = compiledModel(c.model, c.quantize, "f16", flags);
  ASSERT_FALSE(with.empty() || without.empty());
  auto engine = openEngine(with, deviceOptions(192));
  auto plain = openEngine(without, deviceOptions(192));
  ASSERT_TRUE(engine && plain);
  EXPECT_THAT(engine->placement(),
              HasSubstr("cuBLASLt 13.1 in steps of 65 rows and more (lossy"));
  EXPECT_EQ(plain->placement().find("cuBLASLt"), std::string::npos);

  // Steps of 128 rows and of 60: the second is none for the library.
  Tokens tokens = randomTokens(188, 7);
  Logits found = scoreTokens(*engine, {tokens})[0];
  Logits truth = scoreTokens(*plain, {tokens})[0];
  ASSERT_EQ(found.size(), truth.size());
  std::uint64_t products = usesOf(*engine, "library_linear_");
  LibraryUse use = libraryUseOf(*engine->artifact().target("cuda"));
  EXPECT_EQ(products, use.numLaunches) << "one step of more than 64 rows";
  EXPECT_GT(products, 0u);
  EXPECT_EQ(usesOf(*plain, "library_"), 0u);
  LogitsError error = compareLogits(truth, found);
  std::printf(
      "%s %s: KL %.3g in the mean, %.3g at most; logits differ by %.3g\n",
      c.model.c_str(), c.quantize.c_str(), error.meanKl, error.worstKl,
      error.largest);
  EXPECT_LT(error.meanKl, kMaxKl);
  EXPECT_TRUE(std::isfinite(error.worstKl));
  EXPECT_GT(error.largest, 0) << "the library sums in its own order";
  EXPECT_EQ(error.wrongFirsts, 0);

  // Smaller steps know nothing of it.
  for (std::size_t length : {1, 33, 64}) {
    Tokens small = randomTokens(length, unsigned(length));
    EXPECT_EQ(bitDifference(scoreTokens(*engine, {small})[0],
                            scoreTokens(*plain, {small})[0]),
              "")
        << length << " tokens";
  }
  EXPECT_EQ(usesOf(*engine, "library_linear_"), products);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaLibraryModelTest,
                         testing::Values(Case{"draft", "f16"},
                                         Case{"tiny-mistral", "bf16"},
                                         Case{"tiny-qwen2", "f16"}),
                         [](const testing::TestParamInfo<Case> &info) {
                           std::string name = info.param.model;
                           for (char &c : name)
                             c = c == '-' ? '_' : c;
                           return name + "_" + info.param.quantize;
                         });

class CudaLibraryTest : public testing::Test {
protected:
  void SetUp() override {
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
    artifact_ =
        compiledModel("draft", "f16", "f16",
                      std::string(kTarget) + "f16 --allow-library-gemm");
    ASSERT_FALSE(artifact_.empty());
  }
  std::string refused(StatusCode code, const std::string &device = "cuda",
                      bool isOneLine = true) {
    EngineOptions options = deviceOptions(192);
    options.device = device;
    auto engine = Engine::open(artifact_, options);
    EXPECT_FALSE(engine.isOk());
    if (engine.isOk())
      return "opened";
    EXPECT_EQ(engine.status().code(), code) << engine.status().message();
    if (isOneLine)
      EXPECT_EQ(engine.status().message().find('\n'), std::string::npos);
    return engine.status().message();
  }
  std::string artifact_;
};

// No launch of either kernel is at fault, in an order of threads that is drawn.
TEST_F(CudaLibraryTest, nothingIsAtFault) {
  StandInScope scope("check=1,seed=3,memory=256");
  LibraryScope library;
  auto engine = openEngine(artifact_, deviceOptions(96));
  ASSERT_TRUE(engine);
  Logits found = scoreTokens(*engine, {randomTokens(70, 2)})[0];
  ASSERT_EQ(found.size(), 70u);
  EXPECT_GT(usesOf(*engine, "library_linear_f16"), 0u);
  for (const auto &row : found)
    EXPECT_TRUE(std::isfinite(row[0]));
}

TEST_F(CudaLibraryTest, whoLacksTheLibraryIsTold) {
  StandInScope scope;
  {
    LibraryScope library("", "/nowhere/libcublasLt.so");
    EXPECT_THAT(refused(StatusCode::Unsupported),
                AllOf(HasSubstr("--allow-library-gemm: needs cuBLASLt of "
                                "CUDA 12.0 or newer, found none"),
                      HasSubstr("/nowhere/libcublasLt.so")));
    // Where nobody has asked for the device, the cpu runs the model and says why.
    auto engine = Engine::open(artifact_, {});
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_THAT((*engine)->whyNotDevice(), HasSubstr("needs cuBLASLt"));
    EXPECT_EQ((*engine)->cudaExecutor(), nullptr);
  }
  {
    LibraryScope library("", "libcublasLt.so.13");
    EXPECT_THAT(refused(StatusCode::InvalidInput),
                HasSubstr("INGOT_CUBLASLT is \"libcublasLt.so.13\", expected "
                          "an absolute path"));
  }
  {
    LibraryScope library("version=110803");
    EXPECT_THAT(refused(StatusCode::Unsupported), HasSubstr("found 11.8 ("));
  }
  {
    LibraryScope library("", INGOT_STAND_IN_DRIVER);
    EXPECT_THAT(refused(StatusCode::Unsupported),
                HasSubstr("is none: it has no cublasLtGetVersion"));
  }
}

// A library that has no algorithm fails the step that needs one, and says of what.
TEST_F(CudaLibraryTest, withoutAnAlgorithmTheStepFails) {
  StandInScope scope;
  LibraryScope library("none=1");
  auto engine = openEngine(artifact_, deviceOptions(96));
  ASSERT_TRUE(engine);
  ScoreRequest request;
  request.tokens = randomTokens(70, 2);
  request.onLogits = [](std::int32_t, std::span<const float>) {};
  auto id = engine->core().submit(std::move(request), {});
  ASSERT_TRUE(id.isOk()) << id.status().message();
  Status status = engine->step();
  EXPECT_FALSE(status.isOk());
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("launch \"layer.0."), HasSubstr("70 rows"),
                    HasSubstr("cublasLtMatmulAlgoGetHeuristic: "
                              "CUBLAS_STATUS_NOT_SUPPORTED (15)")));
}

TEST_F(CudaLibraryTest, inspectAndRunSayIt) {
  auto ingot = [](const std::string &arguments) {
    std::string text;
    FILE *pipe =
        ::popen((INGOT_BIN_DIR "/ingot " + arguments + " 2>&1").c_str(), "r");
    char piece[4096];
    while (std::size_t count = std::fread(piece, 1, sizeof piece, pipe))
      text.append(piece, count);
    EXPECT_EQ(::pclose(pipe), 0) << text;
    return text;
  };
  EXPECT_THAT(ingot("inspect '" + artifact_ + "'"),
              AllOf(HasSubstr("cuBLASLt makes the products of"),
                    HasSubstr("in steps of 65 rows and more"),
                    HasSubstr("lossy: the bits of a row depend on those "
                              "beside it"),
                    HasSubstr("library_linear_f16"),
                    HasSubstr("allow-library-gemm"),
                    HasSubstr("products by library")));
  std::string plain =
      compiledModel("draft", "f16", "f16", std::string(kTarget) + "f16");
  EXPECT_EQ(ingot("inspect '" + plain + "'").find("cuBLASLt"),
            std::string::npos);
  StandInScope scope;
  LibraryScope library;
  const std::string run = " -p Once --max-tokens 1 --context 64 '";
  EXPECT_THAT(ingot("run" + run + artifact_ + "'"),
              HasSubstr("cuBLASLt 13.1 in steps of 65 rows and more (lossy"));
  EXPECT_EQ(ingot("run" + run + plain + "'").find("lossy"), std::string::npos);
}

// It is part of what must be free.
TEST_F(CudaLibraryTest, itsMemoryIsInTheContract) {
  LibraryScope library;
  {
    StandInScope scope;
    auto engine = openEngine(artifact_, deviceOptions(96));
    ASSERT_TRUE(engine);
    EXPECT_GT(engine->contract().libraryBytes, kLibraryWorkspaceBytes);
    EXPECT_THAT(engine->contract().describe(),
                HasSubstr("products by library"));
  }
  StandInScope small("memory=24");
  EXPECT_THAT(refused(StatusCode::OutOfMemory, "cuda", false),
              AllOf(HasSubstr("bytes on the device"),
                    HasSubstr("products by library")));
}

//===----------------------------------------------------------------------===//
// What the stand-in library refuses, as cuBLASLt does
//===----------------------------------------------------------------------===//

class StandInCublasLtTest : public testing::Test {
protected:
  void SetUp() override {
    auto driver = cuda::Driver::open();
    ASSERT_TRUE(driver.isOk()) << driver.status().message();
    auto device = cuda::Device::open(*driver, 0);
    ASSERT_TRUE(device.isOk()) << device.status().message();
    device_ = *device;
    auto library = cuda::CublasLt::open();
    ASSERT_TRUE(library.isOk()) << library.status().message();
    lt_ = *library;
    auto memory = cuda::DeviceMemory::allocate(*device_, 1 << 20, "test");
    ASSERT_TRUE(memory.isOk()) << memory.status().message();
    memory_ = std::move(*memory);
    ASSERT_TRUE(lt_->create(&handle_).isOk());
  }
  void TearDown() override {
    if (handle_)
      EXPECT_TRUE(lt_->destroy(handle_).isOk());
  }

  // A product of 48 x 64 weights and 10 rows, as the back end would ask for it, with
  // one thing changed.
  struct Request {
    int compute = cuda::kLtComputeFloat32, scale = cuda::kLtFloat32;
    int weightsType = cuda::kLtFloat16, sumsType = cuda::kLtFloat32;
    std::int32_t transposed = cuda::kLtTransposed;
    std::uint64_t k = 64, kOfRows = 64, n = 48, nOfSums = 48;
    std::int64_t leadingWeights = 64, leadingRows = 96, leadingSums = 64;
    std::uint64_t allowed = 32 << 20;
    std::uint32_t alignment = 64;
    std::uint64_t weightsAt = 0, rowsAt = 16384, sumsAt = 65536;
    std::uint64_t workspaceAt = 131072, workspaceBytes = 65536;
    bool otherAlgorithm = false;
  };
  // The first failure, or nothing.
  std::string ask(const Request &r) {
    cuda::LtMatmul matmul = nullptr;
    cuda::LtLayout weights = nullptr, rows = nullptr, sums = nullptr;
    cuda::LtPreference preference = nullptr;
    cuda::LtHeuristic found = {};
    int count = 0;
    Status status = [&]() -> Status {
      INGOT_RETURN_IF_ERROR(lt_->matmulCreate(&matmul, r.compute, r.scale));
      INGOT_RETURN_IF_ERROR(
          lt_->matmulSet(matmul, cuda::kLtMatmulTransposeA, &r.transposed, 4));
      INGOT_RETURN_IF_ERROR(lt_->layoutCreate(&weights, r.weightsType, r.k, r.n,
                                              r.leadingWeights));
      INGOT_RETURN_IF_ERROR(lt_->layoutCreate(&rows, cuda::kLtFloat16,
                                              r.kOfRows, 10, r.leadingRows));
      INGOT_RETURN_IF_ERROR(
          lt_->layoutCreate(&sums, r.sumsType, r.nOfSums, 10, r.leadingSums));
      INGOT_RETURN_IF_ERROR(lt_->preferenceCreate(&preference));
      INGOT_RETURN_IF_ERROR(lt_->preferenceSet(
          preference, cuda::kLtPreferWorkspaceBytes, &r.allowed, 8));
      for (int attribute = cuda::kLtPreferAlignmentA;
           attribute <= cuda::kLtPreferAlignmentD; ++attribute)
        INGOT_RETURN_IF_ERROR(
            lt_->preferenceSet(preference, attribute, &r.alignment, 4));
      INGOT_RETURN_IF_ERROR(lt_->heuristic(handle_, matmul, weights, rows, sums,
                                           sums, preference, 1, &found,
                                           &count));
      if (r.otherAlgorithm)
        ++found.algorithm.data[0];
      const float one = 1, zero = 0;
      auto at = [&](std::uint64_t offset) {
        return reinterpret_cast<void *>(memory_.address() + offset);
      };
      INGOT_RETURN_IF_ERROR(lt_->matmul(
          handle_, matmul, &one, at(r.weightsAt), weights, at(r.rowsAt), rows,
          &zero, at(r.sumsAt), sums, at(r.sumsAt), sums, &found.algorithm,
          at(r.workspaceAt), std::size_t(r.workspaceBytes), device_->stream()));
      return device_->synchronize();
    }();
    for (cuda::LtLayout layout : {weights, rows, sums})
      if (layout)
        EXPECT_TRUE(lt_->layoutDestroy(layout).isOk());
    if (preference)
      EXPECT_TRUE(lt_->preferenceDestroy(preference).isOk());
    if (matmul)
      EXPECT_TRUE(lt_->matmulDestroy(matmul).isOk());
    return status.message();
  }
  std::string with(const std::function<void(Request &)> &change) {
    Request request;
    change(request);
    return ask(request);
  }

  StandInScope scope_;
  LibraryScope library_;
  std::shared_ptr<cuda::Device> device_;
  std::shared_ptr<const cuda::CublasLt> lt_;
  cuda::DeviceMemory memory_;
  cuda::LtHandle handle_ = nullptr;
};

TEST_F(StandInCublasLtTest, refusesWhatCublasLtRefuses) {
  ASSERT_EQ(ask({}), "");
  const char *unsupported = "cublasLtMatmulAlgoGetHeuristic: "
                            "CUBLAS_STATUS_NOT_SUPPORTED (15)";
  const char *invalid = "cublasLtMatmulAlgoGetHeuristic: "
                        "CUBLAS_STATUS_INVALID_VALUE (7)";
  const char *refused = "cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE (7)";
  EXPECT_EQ(with([](auto &r) { r.weightsType = 14; }), unsupported)
      << "bfloat16 times float16";
  EXPECT_EQ(with([](auto &r) { r.sumsType = 3; }), unsupported);
  EXPECT_EQ(with([](auto &r) { r.compute = 64; }), unsupported);
  EXPECT_EQ(with([](auto &r) { r.scale = 2; }), unsupported);
  EXPECT_EQ(with([](auto &r) { r.allowed = 16; }), unsupported);
  EXPECT_EQ(with([](auto &r) { r.transposed = 0; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.kOfRows = 48; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.nOfSums = 32; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.leadingWeights = 63; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.leadingRows = 32; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.leadingSums = 40; }), invalid);
  EXPECT_EQ(with([](auto &r) { r.weightsAt = 2; }), refused);
  EXPECT_EQ(with([](auto &r) { r.rowsAt += 32; }), refused)
      << "less aligned than was promised";
  EXPECT_EQ(with([](auto &r) { r.sumsAt = (1 << 20) - 128; }), refused)
      << "leaves the allocation";
  EXPECT_EQ(with([](auto &r) { r.weightsAt = 1 << 24; }), refused);
  EXPECT_EQ(with([](auto &r) { r.workspaceAt += 128; }), refused);
  EXPECT_EQ(with([](auto &r) { r.workspaceBytes = 1024; }), refused);
  EXPECT_EQ(with([](auto &r) { r.otherAlgorithm = true; }), refused);
}

} // namespace
