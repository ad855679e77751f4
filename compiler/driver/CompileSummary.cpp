#include "compiler/driver/CompileSummary.h"

#include "dialects/plan/Plan.h"
#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>

using namespace mlir;

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Rows of the step that the contract's examples are computed for.
constexpr uint64_t kStepTokens = 512;
constexpr uint64_t kStepLogitRows = 64;

// A size of memory and what fits into it beside weights, code and arenas.
struct Fit {
  uint64_t memoryBytes = 0;
  uint64_t tokens = 0;    // of keys and values, all sequences together
  uint64_t sequences = 0; // at the longest context
};

struct Facts {
  std::string name, family, pipeline;
  uint64_t layers = 0, parameters = 0, context = 0, sourceBytes = 0;
  uint64_t launches = 0, kernels = 0;
  uint64_t tokenArenaBytes = 0, logitRowArenaBytes = 0, kvBytesPerToken = 0;
  std::string kvElements;
  std::vector<Fit> fits;
};

Facts collect(CompiledModel &compiled) {
  Facts facts;
  ModuleOp module = *compiled.module;
  auto info = module->getAttrOfType<DictionaryAttr>(
      plan::PlanDialect::getModelAttrName());
  auto number = [&](StringRef key) {
    return uint64_t(info.getAs<IntegerAttr>(key).getInt());
  };
  facts.name = info.getAs<StringAttr>("name").str();
  facts.family = info.getAs<StringAttr>("family").str();
  facts.layers = info.getAs<ArrayAttr>("layers").size();
  facts.parameters = number("parameters");
  facts.context = number("context");
  facts.sourceBytes = number("source_bytes");
  facts.pipeline = module
                       ->getAttrOfType<DictionaryAttr>(
                           plan::PlanDialect::getProvenanceAttrName())
                       .getAs<StringAttr>("pipeline")
                       .str();
  for (auto target : module.getOps<plan::TargetOp>()) {
    target.walk([&](plan::LaunchOpInterface) { ++facts.launches; });
    target.walk([&](plan::KernelOp) { ++facts.kernels; });
    // A server runs one of them.
    facts.tokenArenaBytes =
        std::max(facts.tokenArenaBytes, uint64_t(*target.getTokenArenaBytes()));
    facts.logitRowArenaBytes = std::max(
        facts.logitRowArenaBytes, uint64_t(*target.getLogitRowArenaBytes()));
  }
  for (auto state : module.getOps<plan::StateOp>())
    facts.kvBytesPerToken +=
        state.getLayers() * (state.getLayerBlockBytes() / 32);
  facts.kvElements = kvElementsOf(module);
  uint64_t fixed = compiled.artifact.weightsBytes +
                   compiled.artifact.codeBytes +
                   facts.tokenArenaBytes * kStepTokens +
                   facts.logitRowArenaBytes * kStepLogitRows;
  for (uint64_t gibibytes = 1; gibibytes <= 64; gibibytes *= 4) {
    uint64_t memory = gibibytes << 30;
    if (memory <= fixed || facts.kvBytesPerToken == 0)
      continue;
    // Whole blocks of 32 positions.
    uint64_t tokens = (memory - fixed) / (facts.kvBytesPerToken * 32) * 32;
    facts.fits.push_back(
        {memory, tokens, facts.context ? tokens / facts.context : 0});
  }
  return facts;
}

std::string format(const char *pattern, ...)
    __attribute__((format(printf, 1, 2)));
std::string format(const char *pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

std::string bytesText(uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return unit ? format("%.1f %s", value, units[unit])
              : std::to_string(bytes) + " B";
}

} // namespace

std::string conversionsText(const std::vector<package::Conversion> &conversions,
                            bool measured) {
  if (conversions.empty())
    return "  every weight matrix is moved as it is stored\n";
  std::string text;
  for (const package::Conversion &one : conversions) {
    text += "  " + one.stored + " to " + one.encoding + ", " +
            std::to_string(one.tensors) + " tensors, " +
            (one.keptCodes ? "codes kept, scales rounded" : "rounded");
    if (measured)
      text += format(": error %.3f %% in the mean, %.3f %% of the largest "
                     "weight of a group at most",
                     100.0 * one.error.mean(), 100.0 * one.error.largest);
    text += "\n";
  }
  return text;
}

std::string kvElementsOf(ModuleOp module) {
  std::string elements;
  for (auto state : module.getOps<plan::StateOp>()) {
    std::string name = plan::stringifyStateDType(state.getDtype()).str();
    if (elements.find(name) == std::string::npos)
      elements += (elements.empty() ? "" : ", ") + name;
  }
  return elements;
}

std::string embeddingText(ModuleOp module) {
  auto info = module->getAttrOfType<DictionaryAttr>(
      plan::PlanDialect::getModelAttrName());
  auto embedding = info.getAs<DictionaryAttr>("embedding");
  if (!embedding)
    return {};
  return "vectors of " +
         std::to_string(info.getAs<IntegerAttr>("hidden").getInt()) +
         " numbers, " + embedding.getAs<StringAttr>("pooling").str() +
         " pooling, " +
         (embedding.getAs<BoolAttr>("normalized").getValue() ? "of length 1"
                                                             : "of any length");
}

std::string kvText(const std::string &elements) {
  if (elements.find("i8") == std::string::npos)
    return elements;
  return elements + " (keys and values rounded to codes: by 0.4 % of the "
                    "largest number of a head at most)";
}

std::string summaryTable(CompiledModel &compiled,
                         const std::string &outputPath) {
  Facts facts = collect(compiled);
  const package::WrittenArtifact &artifact = compiled.artifact;
  std::string text;
  auto row = [&](const std::string &key, const std::string &value) {
    text += "  " + key +
            std::string(key.size() < 22 ? 22 - key.size() : 1, ' ') + value +
            "\n";
  };
  text += printable(outputPath) + "\n";
  row("model", printable(facts.name + " (" + facts.family + ")"));
  if (std::string gives = embeddingText(*compiled.module); !gives.empty())
    row("gives", gives);
  row("layers", std::to_string(facts.layers));
  row("parameters", format("%.1f M", double(facts.parameters) / 1e6));
  row("source", bytesText(facts.sourceBytes));
  row("artifact",
      bytesText(artifact.fileBytes) +
          format(" (%.1f %% of the source)",
                 facts.sourceBytes ? 100.0 * double(artifact.fileBytes) /
                                         double(facts.sourceBytes)
                                   : 0.0));
  row("launches, kernels",
      std::to_string(facts.launches) + ", " + std::to_string(facts.kernels));
  text += "conversions\n" + conversionsText(artifact.conversions, true);
  text += "memory contract\n";
  row("weights", bytesText(artifact.weightsBytes));
  row("code", bytesText(artifact.codeBytes));
  row("arena per token", bytesText(facts.tokenArenaBytes));
  row("arena per logits row", bytesText(facts.logitRowArenaBytes));
  row("KV cache per token",
      bytesText(facts.kvBytesPerToken) + ", " + kvText(facts.kvElements));
  for (const Fit &fit : facts.fits)
    row("in " + bytesText(fit.memoryBytes),
        std::to_string(fit.tokens) + " tokens, " +
            std::to_string(fit.sequences) + " sequences of " +
            std::to_string(facts.context));
  text +=
      format("  (beside arenas for steps of %d tokens and %d logits rows)\n",
             int(kStepTokens), int(kStepLogitRows));
  text += "time\n";
  for (const auto &[step, seconds] : compiled.seconds)
    row(step, format("%.2f s", seconds));
  return text;
}

static Json
conversionsJson(const std::vector<package::Conversion> &conversions) {
  Json list = Json::array();
  for (const package::Conversion &one : conversions)
    list.push_back({{"stored", one.stored},
                    {"encoding", one.encoding},
                    {"codes", one.keptCodes ? "kept" : "rounded"},
                    {"tensors", one.tensors},
                    {"max_relative_error", one.error.largest},
                    {"mean_relative_error", one.error.mean()}});
  return list;
}

std::string summaryJson(CompiledModel &compiled,
                        const std::string &outputPath) {
  Facts facts = collect(compiled);
  const package::WrittenArtifact &artifact = compiled.artifact;
  Json fits = Json::array();
  for (const Fit &fit : facts.fits)
    fits.push_back({{"memory_bytes", fit.memoryBytes},
                    {"tokens", fit.tokens},
                    {"sequences_at_context", fit.sequences}});
  Json seconds = Json::object();
  for (const auto &[step, time] : compiled.seconds)
    seconds[step] = time;
  const std::string gives = embeddingText(*compiled.module);
  Json summary = {{"output", outputPath},
                  {"name", facts.name},
                  {"family", facts.family},
                  {"gives", gives.empty() ? "logits" : gives},
                  {"layers", facts.layers},
                  {"parameters", facts.parameters},
                  {"context", facts.context},
                  {"source_bytes", facts.sourceBytes},
                  {"artifact_bytes", artifact.fileBytes},
                  {"launches", facts.launches},
                  {"kernels", facts.kernels},
                  {"pipeline", facts.pipeline},
                  {"memory",
                   {{"weights_bytes", artifact.weightsBytes},
                    {"code_bytes", artifact.codeBytes},
                    {"arena_bytes_per_token", facts.tokenArenaBytes},
                    {"arena_bytes_per_logits_row", facts.logitRowArenaBytes},
                    {"kv_elements", facts.kvElements},
                    {"kv_bytes_per_token", facts.kvBytesPerToken},
                    {"step_tokens", kStepTokens},
                    {"step_logits_rows", kStepLogitRows},
                    {"fits", fits}}},
                  {"conversions", conversionsJson(artifact.conversions)},
                  {"notes", compiled.notes},
                  {"warnings", artifact.warnings},
                  {"seconds", seconds}};
  return summary.dump(2, ' ', /*ensure_ascii=*/true,
                      Json::error_handler_t::replace) +
         "\n";
}

} // namespace ingot
