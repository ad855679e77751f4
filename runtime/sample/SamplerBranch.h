// Ahead on trial: a branch advances a sampler's state by tokens that may not
// stand and takes all of them back when it ends. Who drafts is handed one, so
// that no mistake of a draft can reach the request that it drafts for.
#pragma once

#include "runtime/sample/Sampler.h"

#include <cstdint>
#include <vector>

namespace ingot {

class SamplerBranch {
public:
  // `state` outlives the branch and is not advanced by others meanwhile.
  explicit SamplerBranch(SamplerState &state) : state_(&state) {}
  SamplerBranch(const SamplerBranch &) = delete;
  SamplerBranch &operator=(const SamplerBranch &) = delete;
  ~SamplerBranch() { takeBack(); }

  const SamplerState &state() const { return *state_; }

  // Fails, and changes nothing, where the request's mask does not allow it.
  Status advance(std::int32_t token) {
    INGOT_RETURN_IF_ERROR(state_->advance(token));
    tokens_.push_back(token);
    return Status::ok();
  }
  // Back to where the branch began.
  void takeBack() {
    state_->rollback(tokens_);
    tokens_.clear();
  }

private:
  SamplerState *state_;
  std::vector<std::int32_t> tokens_;
};

} // namespace ingot
