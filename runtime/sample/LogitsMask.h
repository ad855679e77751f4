// What a request allows its next token to be: a grammar, a list of banned ids,
// biases that depend on what was said. The sampler asks it at every position;
// it follows the output token by token, and goes back where a draft is
// rejected, so that speculation, preemption and copies of a request see what
// plain decoding sees.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
#include <span>

namespace ingot {

// A mask stands at one place of one output. Its answers depend on nothing but
// the tokens it has been advanced by.
class LogitsMask {
public:
  virtual ~LogitsMask() = default;

  // Edits a row of logits, one a token id: -infinity bans a token, and adding
  // to a logit favours it. Called after penalties and biases of the request,
  // before temperature and filters. A banned token is never made possible
  // again, and no logit is made NaN.
  virtual void apply(std::span<float> logits) const = 0;

  // Can `token` be next? As apply() would have it, for one token.
  virtual bool isAllowed(std::int32_t token) const = 0;

  // `token` is next. Where it is not allowed, an error, and nothing changes.
  virtual Status advance(std::int32_t token) = 0;

  // Undoes the latest `count` advances, of which there are at least so many.
  virtual void rollback(std::int32_t count) = 0;

  // A mask at the same place that goes its own way from here. It need not be
  // able to go back before this place.
  virtual std::unique_ptr<LogitsMask> fork() const = 0;
};

} // namespace ingot
