// Two small grammars over token ids, with which tests follow a mask through
// everything that a request can meet.
#pragma once

#include "runtime/sample/LogitsMask.h"

#include <limits>
#include <string>
#include <vector>

namespace ingot::test {

// Brackets that close in the order they opened, at most `deepest` open. Even
// ids below `2 * kinds` open, each odd one closes the kind of the id before
// it; `end` may come where nothing is open; all others are banned.
class BracketMask final : public LogitsMask {
public:
  BracketMask(std::int32_t kinds, std::int32_t deepest, std::int32_t end)
      : kinds_(kinds), deepest_(deepest), end_(end) {}

  bool isAllowed(std::int32_t token) const override {
    if (token == end_)
      return open_.empty();
    if (token < 0 || token >= 2 * kinds_)
      return false;
    if (token % 2 == 0)
      return std::int32_t(open_.size()) < deepest_;
    return !open_.empty() && open_.back() == token - 1;
  }
  void apply(std::span<float> logits) const override {
    for (std::size_t t = 0; t < logits.size(); ++t)
      if (!isAllowed(std::int32_t(t)))
        logits[t] = -std::numeric_limits<float>::infinity();
  }
  Status advance(std::int32_t token) override {
    if (!isAllowed(token))
      return Status::invalid("token " + std::to_string(token) +
                             " closes nothing that is open");
    said_.push_back(token);
    if (token != end_ && token % 2 == 0)
      open_.push_back(token);
    else if (token != end_)
      open_.pop_back();
    return Status::ok();
  }
  void rollback(std::int32_t count) override {
    for (; count > 0; --count) {
      std::int32_t token = said_.back();
      said_.pop_back();
      if (token != end_ && token % 2 == 0)
        open_.pop_back();
      else if (token != end_)
        open_.push_back(token - 1);
    }
  }
  std::unique_ptr<LogitsMask> fork() const override {
    return std::make_unique<BracketMask>(*this);
  }

private:
  std::int32_t kinds_, deepest_, end_;
  std::vector<std::int32_t> open_, said_;
};

// Favours, by `bias`, what differs from the latest token by a multiple of
// `modulus`, and bans the latest token itself.
class RhymeMask final : public LogitsMask {
public:
  RhymeMask(std::int32_t modulus, float bias)
      : modulus_(modulus), bias_(bias) {}

  bool isAllowed(std::int32_t token) const override {
    return said_.empty() || said_.back() != token;
  }
  void apply(std::span<float> logits) const override {
    if (said_.empty())
      return;
    for (std::size_t t = 0; t < logits.size(); ++t)
      if (std::int32_t(t) % modulus_ == said_.back() % modulus_)
        logits[t] += bias_;
    logits[std::size_t(said_.back())] = -std::numeric_limits<float>::infinity();
  }
  Status advance(std::int32_t token) override {
    if (!isAllowed(token))
      return Status::invalid("token " + std::to_string(token) + " again");
    said_.push_back(token);
    return Status::ok();
  }
  void rollback(std::int32_t count) override {
    said_.resize(said_.size() - std::size_t(count));
  }
  std::unique_ptr<LogitsMask> fork() const override {
    return std::make_unique<RhymeMask>(*this);
  }

private:
  std::int32_t modulus_;
  float bias_;
  std::vector<std::int32_t> said_;
};

} // namespace ingot::test
