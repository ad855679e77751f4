// Runs the C program on an artifact whose kernels only return, and lets each
// allocation of a call fail in turn: the call says so, and nothing of it stays
// behind in the engine.
#include "runtime/engine/Engine.h"
#include "runtime/engine/ingot.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

extern "C" const char *ingotCApiTest(const char *path, const char *missing);

namespace {

// Allocations of this thread that still succeed; below 0: all.
thread_local long allocationsLeft = -1;

} // namespace

// Never inlined, or g++ sees malloc and free where it expects new and delete.
[[gnu::noinline]] void *operator new(std::size_t size) {
  if (allocationsLeft == 0)
    throw std::bad_alloc();
  if (allocationsLeft > 0)
    --allocationsLeft;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using namespace ingot;

class CApiTest : public ::testing::Test {
protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the test's code is x86-64";
#endif
    path_ = folder_.write("a.ingot", test::TinyArtifact::make().bytes());
  }
  test::TempFolder folder_;
  std::string path_;
};

// A request of three ids and four tokens.
struct CRequest : ingot_request {
  explicit CRequest(const ingot_engine *engine) {
    ingot_request_init(engine, this);
    prompt_ids = ids;
    num_prompt_ids = 3;
    temperature = 0;
    max_tokens = 4;
  }
  std::int32_t ids[3] = {3, 4, 5};
};

TEST_F(CApiTest, programInC) {
  const char *failed =
      ingotCApiTest(path_.c_str(), folder_.path("missing.ingot").c_str());
  EXPECT_EQ(failed, nullptr) << failed;
}

TEST_F(CApiTest, failedAllocationsLeaveNoRequestBehind) {
  ingot_options options;
  ingot_options_init(&options);
  options.threads = 1;
  options.sequences = 2;
  ingot_engine *engine = nullptr;
  ASSERT_EQ(ingot_open(path_.c_str(), &options, &engine), INGOT_OK);
  CRequest first(engine), second(engine);
  const ingot_request *batch[] = {&first, &second};
  std::vector<float> logits(3 * 40);
  int failures = 0;
  // A receiver that is called after its request has failed is found out by
  // AddressSanitizer, or by the count of the next call's tokens.
  auto checkIdle = [&] {
    ingot_result *result = nullptr;
    ASSERT_EQ(ingot_generate(engine, &first, &result), INGOT_OK);
    EXPECT_EQ(ingot_result_num_tokens(result), 4u);
    ingot_result_free(result);
  };
  for (long allowed = 0;; ++allowed) {
    ingot_result *results[2] = {};
    ingot_status statuses[2] = {};
    allocationsLeft = allowed;
    ingot_status status =
        ingot_generate_batch(engine, batch, 2, results, statuses);
    allocationsLeft = -1;
    if (status == INGOT_OK) {
      ingot_result_free(results[0]);
      ingot_result_free(results[1]);
      break;
    }
    ++failures;
    ASSERT_EQ(status, INGOT_OUT_OF_MEMORY) << ingot_error_message();
    EXPECT_EQ(results[0], nullptr);
    EXPECT_EQ(results[1], nullptr);
    EXPECT_EQ(statuses[0], INGOT_OUT_OF_MEMORY);
    EXPECT_EQ(statuses[1], INGOT_OUT_OF_MEMORY);
    checkIdle();
  }
  EXPECT_GT(failures, 10);
  for (long allowed = 0;; ++allowed) {
    allocationsLeft = allowed;
    ingot_status status =
        ingot_score(engine, first.ids, 3, logits.data(), logits.size());
    allocationsLeft = -1;
    if (status == INGOT_OK)
      break;
    ASSERT_EQ(status, INGOT_OUT_OF_MEMORY) << ingot_error_message();
    checkIdle();
  }
  ingot_close(engine);
}

// The same in C++, where state can be looked at.
TEST_F(CApiTest, failedAllocationsLeaveTheEngineWhole) {
  EngineOptions options;
  options.threads = 1;
  auto engine = Engine::open(path_, options);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  for (long allowed = 0;; ++allowed) {
    GenerateRequest request;
    request.promptIds = {3, 4, 5};
    request.sampling.temperature = 0;
    request.maxTokens = 40; // more than one block
    bool isDone = false;
    try {
      allocationsLeft = allowed;
      isDone = (*engine)->generate(std::move(request)).isOk();
      allocationsLeft = -1;
    } catch (const std::bad_alloc &) {
      allocationsLeft = -1;
    }
    ASSERT_TRUE((*engine)->core().isIdle()) << allowed;
    Status whole = (*engine)->cache().checkInvariants();
    ASSERT_TRUE(whole.isOk()) << allowed << ": " << whole.message();
    if (isDone)
      break;
  }
}

} // namespace
