#include "compiler/calibrate/WindowRunner.h"

#include <numeric>

namespace ingot {
namespace {

constexpr SequenceId kSequence = 1;

} // namespace

Result<WindowRunner> WindowRunner::open(const std::string &path,
                                        std::int32_t windowTokens,
                                        unsigned threads) {
  EngineOptions options;
  options.device = "cpu";
  options.threads = int(threads);
  options.context = windowTokens;
  options.stepTokens = windowTokens;
  options.logitRows = windowTokens;
  WindowRunner runner;
  INGOT_ASSIGN_OR_RETURN(runner.engine_, Engine::open(path, options));
  return runner;
}

Result<std::vector<std::vector<std::int32_t>>>
WindowRunner::windowsOf(const std::string &text, std::int32_t size,
                        std::int64_t maxTokens) const {
  if (!engine_->tokenizer())
    return Status::unsupported("the model has no tokenizer for the text");
  EncodeOptions plain;
  plain.addSpecialTokens = false;
  TextRange whole{0, text.size()};
  plain.plainRanges = {&whole, 1};
  INGOT_ASSIGN_OR_RETURN(std::vector<std::int32_t> ids,
                         engine_->tokenizer()->encode(text, plain));
  if (std::ssize(ids) > maxTokens)
    ids.resize(std::size_t(maxTokens));
  auto prefix = engine_->tokenizer()->prefixIds();
  std::int64_t fresh = size - std::ssize(prefix);
  if (fresh < 2)
    return Status::invalid("windows of " + std::to_string(size) +
                           " tokens hold no more than what the tokenizer puts "
                           "before a text");
  std::vector<std::vector<std::int32_t>> windows;
  for (std::int64_t at = 0; at + fresh <= std::ssize(ids); at += fresh) {
    auto &window = windows.emplace_back(prefix.begin(), prefix.end());
    window.insert(window.end(), ids.begin() + at, ids.begin() + at + fresh);
  }
  return windows;
}

Status WindowRunner::begin(std::span<const std::int32_t> tokens) {
  KvCache &cache = engine_->cache();
  cache.removeSequence(kSequence);
  INGOT_RETURN_IF_ERROR(cache.addSequence(kSequence));
  plan_ = {};
  auto size = std::int32_t(tokens.size());
  plan_.sequences = {{kSequence, 0, size, 0,
                      engine_->core().options().rotary.lengthFor(size, size)}};
  plan_.tokens.assign(tokens.begin(), tokens.end());
  plan_.endSegment = 0;
  return cache.reserve(kSequence, std::int32_t(tokens.size()));
}

Status WindowRunner::beginBehind(std::span<const std::int32_t> tokens,
                                 std::int32_t segments,
                                 std::span<const float> states) {
  INGOT_RETURN_IF_ERROR(begin(tokens));
  plan_.endSegment = segments;
  plan_.hiddenRows.resize(tokens.size());
  std::iota(plan_.hiddenRows.begin(), plan_.hiddenRows.end(), 0);
  return executor().setHidden(segments, states);
}

Status WindowRunner::runTo(std::int32_t end, std::int32_t exitHead,
                           bool wantsLogits) {
  plan_.firstSegment = plan_.endSegment;
  plan_.endSegment = end;
  plan_.exitHead = exitHead;
  plan_.logitRows.clear();
  if (wantsLogits && (end == -1 || exitHead != -1))
    for (std::int32_t r = 0; r < plan_.numRows(); ++r)
      plan_.logitRows.push_back(r);
  Status ran = executor().run(plan_, engine_->cache());
  plan_.hiddenRows.clear(); // a step that follows has the same rows
  return ran;
}

std::vector<float> WindowRunner::states() {
  std::vector<float> all;
  for (std::int32_t r = 0; r < plan_.numRows(); ++r) {
    auto row = executor().hidden(r);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::vector<FirstChoice> WindowRunner::choices() {
  std::vector<FirstChoice> all;
  for (std::int32_t r = 0; r < plan_.numRows(); ++r)
    all.push_back(firstChoice(executor().logits(r)));
  return all;
}

} // namespace ingot
