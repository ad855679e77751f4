#include "runtime/serve/ModelMetrics.h"

namespace ingot::serve {
namespace {

const std::vector<double> kFirstTokenBounds = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
    0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const std::vector<double> kInterTokenBounds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15,
    0.2,    0.3,   0.4,    0.5,   0.75, 1,     2.5,  5,     10};
const std::vector<double> kRequestBounds = {0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5,
                                            2,    2.5, 5,   10,  15,  20,  30,
                                            40,   50,  60,  120, 240, 480, 960};
const std::vector<double> kTokenBounds = {
    1,   2,    5,    10,   20,    50,    100,   200,
    500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

} // namespace

ModelMetrics::ModelMetrics(MetricRegistry &registry, const std::string &model)
    : firstToken(
          registry.histogram("ingot_time_to_first_token_seconds",
                             "From a request's arrival to its first token.",
                             kFirstTokenBounds, {{"model", model}})),
      interToken(
          registry.histogram("ingot_inter_token_latency_seconds",
                             "Between one token of a choice and the next.",
                             kInterTokenBounds, {{"model", model}})),
      endToEnd(registry.histogram("ingot_e2e_request_latency_seconds",
                                  "From a request's arrival to its end.",
                                  kRequestBounds, {{"model", model}})),
      queueTime(registry.histogram(
          "ingot_request_queue_time_seconds",
          "From a request's arrival to its first scheduled row.",
          kRequestBounds, {{"model", model}})),
      promptLength(registry.histogram("ingot_request_prompt_tokens",
                                      "Prompt tokens of a request.",
                                      kTokenBounds, {{"model", model}})),
      outputLength(registry.histogram("ingot_request_generation_tokens",
                                      "Generated tokens of a choice.",
                                      kTokenBounds, {{"model", model}})),
      registry_(registry), labels_({{"model", model}}) {
  for (const char *reason : {"stop", "length", "abort", "error"})
    (void)finished(reason);
  copy(EngineMetrics());
}

Counter &ModelMetrics::finished(const std::string &reason) {
  Labels labels = labels_;
  labels.emplace_back("finished_reason", reason);
  return registry_.counter("ingot_request_finished_total",
                           "Choices that ended, by how.", labels);
}

void ModelMetrics::copy(const EngineMetrics &engine) {
  auto count = [&](const char *name, const char *help, std::uint64_t value) {
    registry_.counter(name, help, labels_).set(value);
  };
  auto gauge = [&](const char *name, const char *help, double value) {
    registry_.gauge(name, help, labels_).set(value);
  };
  gauge("ingot_num_requests_running", "Sequences in the batch.",
        double(engine.running));
  gauge("ingot_num_requests_waiting", "Sequences that wait for a place.",
        double(engine.waiting));
  gauge("ingot_kv_cache_blocks", "Cache blocks there are.",
        double(engine.kvBlocks));
  gauge("ingot_kv_cache_blocks_used", "Cache blocks held by sequences.",
        double(engine.kvBlocksUsed));
  gauge("ingot_kv_cache_blocks_reusable",
        "Cache blocks kept for prefixes of later requests.",
        double(engine.kvBlocksReusable));
  gauge("ingot_kv_cache_usage_ratio", "Share of cache blocks held, 0 to 1.",
        engine.kvBlocks > 0
            ? double(engine.kvBlocksUsed) / double(engine.kvBlocks)
            : 0);
  count("ingot_engine_steps_total", "Steps of the engine.", engine.steps);
  count("ingot_prompt_tokens_total", "Prompt tokens of done prompts.",
        engine.promptTokens);
  count("ingot_generation_tokens_total", "Tokens that are part of an output.",
        engine.generatedTokens);
  count("ingot_prefix_cache_queries_total",
        "Prompt tokens looked up in the prefix cache.",
        engine.prefixQueryTokens);
  count("ingot_prefix_cache_hits_total",
        "Prompt tokens found in the prefix cache.", engine.prefixHitTokens);
  count("ingot_num_preemptions_total", "Sequences put back to wait.",
        engine.preemptions);
  count("ingot_spec_decode_num_draft_tokens_total", "Tokens drafted.",
        engine.draftedTokens);
  count("ingot_spec_decode_num_accepted_tokens_total",
        "Drafted tokens that stood.", engine.acceptedTokens);
  for (std::size_t depth = 0; depth < engine.exitDepths.size(); ++depth) {
    Labels labels = labels_;
    labels.emplace_back("depth", std::to_string(depth));
    registry_
        .counter("ingot_exit_depth_tokens_total",
                 "Tokens by the exit at which they left the model.", labels)
        .set(engine.exitDepths[depth]);
  }
}

} // namespace ingot::serve
