// An engine core over the tiny model that keeps every outcome and checks what
// must hold after every step.
#pragma once

#include "runtime/engine/EngineCore.h"
#include "test/runtime/execute/cpu/TinyRunner.h"

#include <map>
#include <random>
#include <utility>

namespace ingot::test {

struct CoreHarness {
  TinyRunner runner;
  EngineCore core;
  std::map<RequestId, RequestOutcome> outcomes; // of copy 0
  std::map<std::pair<RequestId, std::int32_t>, RequestOutcome> copies;

  explicit CoreHarness(ContractOptions contract = {}, KvCacheOptions cache = {},
                       CoreOptions options = {}, std::uint32_t window = 0)
      : runner(contract, cache, window),
        core(*runner.executor, *runner.cache, [&] {
          if (options.context == 0)
            options.context = runner.contract.context;
          options.checkInvariants = true;
          return options;
        }()) {}

  Result<RequestId> submit(TokenRequest request) {
    return core.submit(std::move(request), [this](const RequestOutcome &done) {
      EXPECT_TRUE(copies.emplace(std::pair(done.id, done.copy), done).second)
          << "finished twice";
      if (done.copy == 0)
        outcomes[done.id] = done;
    });
  }
  RequestOutcome runOne(TokenRequest request) {
    auto id = submit(std::move(request));
    EXPECT_TRUE(id.isOk()) << id.status().message();
    Status status = core.runUntilIdle();
    EXPECT_TRUE(status.isOk()) << status.message();
    return outcomes[*id];
  }
  std::int32_t availableBlocks() const {
    return runner.cache->allocator(0).numAvailable();
  }
};

// A budget of state that holds `blocks` blocks of the tiny model.
inline std::uint64_t bytesOfBlocks(std::uint64_t blocks) {
  static const std::uint64_t kBlockBytes =
      TinyRunner({}, {}).contract.states[0].blockBytes;
  return blocks * kBlockBytes;
}

inline TokenRequest request(int length, int maxTokens, unsigned salt = 0) {
  TokenRequest made;
  std::mt19937 random(salt + 1);
  for (int i = 0; i < length; ++i)
    made.prompt.push_back(std::int32_t(random() % 40));
  made.maxTokens = maxTokens;
  made.sampling.seed = salt;
  return made;
}

} // namespace ingot::test
