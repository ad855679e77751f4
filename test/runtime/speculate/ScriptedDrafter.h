// A drafter that proposes what a test says, and keeps what it is told.
#pragma once

#include "runtime/speculate/Drafter.h"

#include <functional>
#include <string>

namespace ingot::test {

class ScriptedDrafter final : public Drafter {
public:
  using Script = std::function<Draft(const DraftRequest &)>;
  explicit ScriptedDrafter(Script script) : script_(std::move(script)) {}

  const char *name() const override { return "script"; }
  Status propose(std::span<const DraftRequest> requests,
                 std::span<Draft> drafts) override {
    for (std::size_t i = 0; i < requests.size(); ++i)
      drafts[i] = script_(requests[i]);
    return fails ? Status::internal("planned failure") : Status::ok();
  }
  void settle(SequenceId id, std::int32_t accepted) override {
    log +=
        "settle " + std::to_string(id) + " " + std::to_string(accepted) + "; ";
  }
  void forget(SequenceId id) override {
    log += "forget " + std::to_string(id) + "; ";
  }

  bool fails = false;
  std::string log;

private:
  Script script_;
};

} // namespace ingot::test
