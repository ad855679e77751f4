// Steps whose tokens the executor chooses by itself, where it can: every row of
// logits is one from which one request draws one token, greedily or by plain
// temperature sampling. The rest of a step is in EngineCore.cpp.
#include "runtime/engine/EngineCore.h"
#include "runtime/execute/TokenChooser.h"

namespace ingot {
namespace {

// Nothing of the request but its temperature, seed and position has a say in the
// token (Sampler::choose).
bool isPlain(const SamplerState &state) {
  const SamplingParams &params = state.params();
  return params.logprobs < 0 && !state.mask() &&
         params.repetitionPenalty == 1 && params.presencePenalty == 0 &&
         params.frequencyPenalty == 0 && params.logitBias.empty() &&
         (state.mayEnd() || state.endIds().empty());
}

// 0 where the most likely token is wanted; nothing where a filter chooses among some.
std::optional<double> inverseTemperature(const SamplingParams &params,
                                         std::int32_t vocab) {
  if (params.temperature < 1e-6 || params.topK == 1 || params.topP == 0 ||
      params.minP == 1)
    return 0;
  bool keepsAll = (params.topK <= 0 || params.topK >= vocab) &&
                  params.topP >= 1 && params.minP <= 0;
  return keepsAll ? std::optional(1.0 / params.temperature) : std::nullopt;
}

} // namespace

std::optional<std::vector<RowChoice>>
EngineCore::plainChoices(const StepPlan &plan) {
  std::vector<RowChoice> choices;
  std::size_t s = 0;
  for (std::int32_t row : plan.logitRows) {
    while (row >= plan.sequences[s].firstRow + plan.sequences[s].numRows)
      ++s;
    const StepSequence &rows = plan.sequences[s];
    const Request &request = *find(rows.id);
    if (request.isScore() || request.onPromptToken || request.copies != 1 ||
        !isPlain(*request.sampler))
      return {};
    auto inverse =
        inverseTemperature(request.sampler->params(), executor_.limits().vocab);
    if (!inverse)
      return {};
    choices.push_back(
        {request.sampler->seed(),
         std::int64_t(rows.firstPosition) + row - rows.firstRow + 1, *inverse});
  }
  return choices;
}

Status EngineCore::runWhole(const StepPlan &plan) {
  if (TokenChooser *chooser = executor_.chooser();
      chooser && !plan.logitRows.empty())
    if (auto choices = plainChoices(plan)) {
      stepChose_ = true;
      return chooser->runAndChoose(plan, cache_, *choices);
    }
  return executor_.run(plan, cache_);
}

std::int32_t EngineCore::stepToken(std::size_t logit) const {
  return stepChose_ ? executor_.chooser()->tokens()[logit] : -1;
}

} // namespace ingot
