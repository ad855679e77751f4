// Lies about a plan, each of which must be refused with its own sentence.
#pragma once

#include "test/runtime/plan/TinyArtifact.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ingot::test {

struct Lie {
  const char *message; // a part of the sentence
  std::function<void(TinyArtifact &)> tell;
};

inline Status openBytes(const TempFolder &folder,
                        const std::vector<std::uint8_t> &bytes) {
  auto artifact = Artifact::open(folder.write("x.ingot", bytes));
  return artifact ? Status::ok() : artifact.status();
}

// A launch of the first segment of the first target.
inline fbs::LaunchT &launch(TinyArtifact &tiny, const std::string &name) {
  for (auto &launch : tiny.plan.targets[0]->segments[0]->launches)
    if (launch->name == name)
      return *launch;
  std::abort();
}

// Each lie is told about an artifact of its own.
inline void expectRefused(TinyArtifact (*make)(), std::span<const Lie> lies) {
  TempFolder folder;
  for (const Lie &lie : lies) {
    TinyArtifact tiny = make();
    lie.tell(tiny);
    Status refused = openBytes(folder, tiny.bytes());
    EXPECT_FALSE(refused.isOk()) << "accepted: " << lie.message;
    EXPECT_THAT(refused.message(), ::testing::HasSubstr(lie.message));
  }
}

} // namespace ingot::test
