// The contract counts what will be taken, before it is taken.
#include "runtime/memory/MemoryContract.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

class MemoryContractTest : public ::testing::Test {
protected:
  Result<MemoryContract> compute(const ContractOptions &options) {
    bytes_ = TinyArtifact::make().planBytes();
    const fbs::Plan &plan = *fbs::GetPlan(bytes_.data());
    return computeContract(plan, *plan.targets()->Get(0), options);
  }
  std::vector<std::uint8_t> bytes_;
};

} // namespace

TEST_F(MemoryContractTest, countsArenasScratchAndState) {
  ContractOptions options;
  options.sequences = 3;
  options.stepTokens = 100;
  options.workers = 2;
  auto contract = compute(options);
  ASSERT_TRUE(contract.isOk()) << contract.status().message();
  const fbs::Target &target = *fbs::GetPlan(bytes_.data())->targets()->Get(0);
  EXPECT_EQ(contract->context, 256);
  EXPECT_EQ(contract->stepTokens, 128);
  EXPECT_EQ(contract->tokenArenaBytes, target.token_arena_bytes() * 128);
  EXPECT_EQ(contract->logitArenaBytes, target.logit_row_arena_bytes() * 64);
  EXPECT_EQ(contract->scratchBytesPerWorker, 128u);
  ASSERT_EQ(contract->states.size(), 1u);
  EXPECT_EQ(contract->states[0].blocks, 24);
  EXPECT_EQ(contract->tokensThatFit(), 24 * 32);
  EXPECT_EQ(contract->privateBytes(), contract->tokenArenaBytes +
                                          contract->logitArenaBytes + 256 +
                                          contract->stateBytes());
  EXPECT_EQ(contract->states[0].elements, "f32");
  EXPECT_THAT(contract->describe(), HasSubstr("3 x 256 tokens"));
  EXPECT_THAT(contract->describe(), HasSubstr("each, f32"));
}

// A budget shrinks the state, then the context, and refuses what holds nothing.
TEST_F(MemoryContractTest, budget) {
  ContractOptions options;
  auto whole = compute(options);
  ASSERT_TRUE(whole.isOk());
  options.kvBytes = whole->stateBytes() / 2;
  auto half = compute(options);
  ASSERT_TRUE(half.isOk());
  EXPECT_EQ(half->states[0].blocks, 4);
  EXPECT_EQ(half->context, 128);
  EXPECT_LE(half->stateBytes(), options.kvBytes);
  options.kvBytes = 100;
  auto none = compute(options);
  ASSERT_FALSE(none.isOk());
  EXPECT_EQ(none.status().code(), StatusCode::OutOfMemory);
  EXPECT_THAT(none.status().message(), HasSubstr("100"));
}

// Every option is refused outside its range, by name.
TEST_F(MemoryContractTest, ranges) {
  auto refuse = [&](auto change, const char *message) {
    ContractOptions options;
    change(options);
    auto contract = compute(options);
    ASSERT_FALSE(contract.isOk()) << message;
    EXPECT_THAT(contract.status().message(), HasSubstr(message));
  };
  refuse([](auto &o) { o.context = 257; }, "context is 257, expected 1 to 256");
  refuse([](auto &o) { o.context = -1; }, "context is -1");
  refuse([](auto &o) { o.sequences = 0; }, "sequences is 0");
  refuse([](auto &o) { o.stepTokens = 0; }, "step tokens is 0");
  refuse([](auto &o) { o.workers = 0; }, "workers is 0");
}
