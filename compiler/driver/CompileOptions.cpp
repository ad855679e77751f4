#include "compiler/driver/CompileOptions.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/pipeline/PipelineText.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace ingot {
namespace {

using Json = nlohmann::json;

Status wrongType(const std::string &key, const char *expected,
                 const Json &found) {
  return Status::invalid("\"" + key + "\": expected " + expected + ", found " +
                         jsonForMessage(found));
}

Status readString(const std::string &key, const Json &value,
                  std::optional<std::string> &option) {
  if (!value.is_string())
    return wrongType(key, "a string", value);
  if (!option)
    option = value.get<std::string>();
  return Status::ok();
}

Status readInteger(const std::string &key, const Json &value,
                   std::optional<std::int64_t> &option) {
  if (!value.is_number_integer())
    return wrongType(key, "an integer", value);
  if (!option)
    option = value.get<std::int64_t>();
  return Status::ok();
}

Status readNumber(const std::string &key, const Json &value,
                  std::optional<double> &option) {
  if (!value.is_number())
    return wrongType(key, "a number", value);
  if (!option)
    option = value.get<double>();
  return Status::ok();
}

Status readStrings(const std::string &key, const Json &value,
                   std::optional<std::vector<std::string>> &option) {
  if (!value.is_array())
    return wrongType(key, "an array of strings", value);
  std::vector<std::string> strings;
  for (const Json &element : value) {
    if (!element.is_string())
      return wrongType(key, "an array of strings", value);
    strings.push_back(element.get<std::string>());
  }
  if (!option)
    option = std::move(strings);
  return Status::ok();
}

Status readIntegers(const std::string &key, const Json &value,
                    std::optional<std::vector<std::int64_t>> &option) {
  if (!value.is_array())
    return wrongType(key, "an array of integers", value);
  std::vector<std::int64_t> integers;
  for (const Json &element : value) {
    if (!element.is_number_integer())
      return wrongType(key, "an array of integers", value);
    integers.push_back(element.get<std::int64_t>());
  }
  if (!option)
    option = std::move(integers);
  return Status::ok();
}

Status readPipelines(const Json &value, CompileOptions &options) {
  if (!value.is_object())
    return wrongType("pipelines", "an object", value);
  for (const auto &[phase, text] : value.items()) {
    if (!phaseByName(phase))
      return Status::invalid("\"pipelines\": no phase is named \"" + phase +
                             "\"");
    if (!text.is_string())
      return wrongType("pipelines." + phase, "a string", text);
    options.pipelines.emplace(phase, text.get<std::string>());
  }
  return Status::ok();
}

Status readKey(const std::string &key, const Json &value,
               CompileOptions &options) {
  if (key == "quantize")
    return readString(key, value, options.quantize);
  if (key == "calibrate")
    return readString(key, value, options.calibrate);
  if (key == "calibration_tokens")
    return readInteger(key, value, options.calibrationTokens);
  if (key == "prune_layers")
    return readInteger(key, value, options.pruneLayers);
  if (key == "prune_heads")
    return readInteger(key, value, options.pruneHeads);
  if (key == "prune_ffn")
    return readNumber(key, value, options.pruneFfn);
  if (key == "heal" || key == "allow_library_gemm") {
    if (!value.is_boolean())
      return wrongType(key, "true or false", value);
    std::optional<bool> &option =
        key == "heal" ? options.heal : options.allowLibraryGemm;
    if (!option)
      option = value.get<bool>();
    return Status::ok();
  }
  if (key == "evaluate")
    return readString(key, value, options.evaluate);
  if (key == "evaluation_tokens")
    return readInteger(key, value, options.evaluationTokens);
  if (key == "max_kl")
    return readNumber(key, value, options.maxKl);
  if (key == "max_ppl_increase")
    return readNumber(key, value, options.maxPplIncrease);
  if (key == "table")
    return readString(key, value, options.table);
  if (key == "kv")
    return readString(key, value, options.kv);
  if (key == "quantize_kv")
    return readString(key, value, options.quantizeKv);
  if (key == "name")
    return readString(key, value, options.name);
  if (key == "target")
    return readString(key, value, options.target);
  if (key == "pooling")
    return readString(key, value, options.pooling);
  if (key == "levels")
    return readStrings(key, value, options.levels);
  if (key == "skip")
    return readStrings(key, value, options.skip);
  if (key == "lora")
    return readStrings(key, value, options.lora);
  if (key == "exits")
    return readIntegers(key, value, options.exits);
  if (key == "exit_maps")
    return readString(key, value, options.exitMaps);
  if (key == "pipelines")
    return readPipelines(value, options);
  if (key == "context")
    return readInteger(key, value, options.context);
  return Status::invalid(
      "unknown key \"" + key +
      "\" (quantize, calibrate, calibration_tokens, "
      "prune_layers, prune_heads, prune_ffn, heal, evaluate, "
      "evaluation_tokens, max_kl, max_ppl_increase, table, "
      "kv, quantize_kv, context, name, target, allow_library_gemm, levels, "
      "skip, lora, exits, exit_maps, pooling, pipelines)");
}

// A name is printed: one line of text.
Status checkName(const std::string &name) {
  if (name.empty())
    return Status::invalid("name \"\": is empty");
  if (findInvalidUtf8(name) != std::string::npos)
    return Status::invalid("name: is not valid UTF-8");
  for (unsigned char c : name)
    if (c < 0x20 || c == 0x7f)
      return Status::invalid("name: holds a control character");
  return Status::ok();
}

} // namespace

Result<EmbeddingSpec> parsePooling(const std::string &text) {
  EmbeddingSpec spec;
  std::string name = text;
  if (std::size_t colon = name.find(':'); colon != std::string::npos) {
    spec.normalized = name.substr(colon) != ":raw";
    if (!spec.normalized)
      name.resize(colon);
  }
  for (Pooling pooling : {Pooling::Mean, Pooling::Cls, Pooling::Last})
    if (name == poolingName(pooling)) {
      spec.pooling = pooling;
      return spec;
    }
  return Status::invalid("pooling \"" + text +
                         "\": expected mean, cls or last, with or without "
                         ":raw");
}

Result<LoraRequest> parseLora(const std::string &text) {
  LoraRequest request;
  request.folder = text;
  std::size_t colon = text.rfind(':');
  // A colon may stand in a path: only a number behind it is a scale.
  if (colon != std::string::npos && colon + 1 < text.size()) {
    const char *begin = text.data() + colon + 1;
    const char *end = text.data() + text.size();
    double scale = 0.0;
    auto [stop, error] = std::from_chars(begin, end, scale);
    if (error == std::errc() && stop == end && std::isfinite(scale)) {
      request.folder = text.substr(0, colon);
      request.scale = scale;
    }
  }
  if (request.folder.empty())
    return Status::invalid("lora \"" + text +
                           "\": expected FOLDER or FOLDER:scale");
  return request;
}

std::optional<Phase> phaseByName(const std::string &name) {
  for (Phase phase : kPhases)
    if (name == phaseName(phase))
      return phase;
  return std::nullopt;
}

Status applyRecipe(const std::string &json, const std::string &name,
                   CompileOptions &options) {
  INGOT_ASSIGN_OR_RETURN(Json recipe, parseStrictJson(json, name));
  if (!recipe.is_object())
    return Status::invalid(name + ": a recipe is a JSON object");
  for (const auto &[key, value] : recipe.items())
    if (Status status = readKey(key, value, options); !status)
      return status.withContext(name);
  return Status::ok();
}

std::string recipeText(const CompileOptions &options) {
  nlohmann::ordered_json recipe = nlohmann::ordered_json::object();
  auto add = [&](const char *key, const auto &option) {
    if (option)
      recipe[key] = *option;
  };
  add("quantize", options.quantize);
  add("calibrate", options.calibrate);
  add("calibration_tokens", options.calibrationTokens);
  add("prune_layers", options.pruneLayers);
  add("prune_heads", options.pruneHeads);
  add("prune_ffn", options.pruneFfn);
  add("heal", options.heal);
  add("evaluate", options.evaluate);
  add("evaluation_tokens", options.evaluationTokens);
  add("max_kl", options.maxKl);
  add("max_ppl_increase", options.maxPplIncrease);
  add("table", options.table);
  add("kv", options.kv);
  add("quantize_kv", options.quantizeKv);
  add("context", options.context);
  add("name", options.name);
  add("target", options.target);
  add("allow_library_gemm", options.allowLibraryGemm);
  add("pooling", options.pooling);
  add("levels", options.levels);
  add("skip", options.skip);
  add("lora", options.lora);
  add("exits", options.exits);
  add("exit_maps", options.exitMaps);
  if (!options.pipelines.empty())
    recipe["pipelines"] = options.pipelines;
  return recipe.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool quantizesKv(const CompileOptions &options) {
  return options.quantizeKv.value_or(
             options.kv.value_or("f16") == "int8" ? "int8" : "none") != "none";
}

bool prunes(const CompileOptions &options) {
  return options.pruneLayers || options.pruneHeads || options.pruneFfn;
}

Result<PhaseOptions> phaseOptions(const CompileOptions &options) {
  PhaseOptions phases;
  INGOT_RETURN_IF_ERROR(
      applyQuantizeShorthand(options.quantize.value_or("none"), phases));
  if (options.table)
    phases.table = *options.table;
  if (options.skip)
    phases.skip = *options.skip;
  if (options.levels)
    phases.levels = *options.levels;
  if (options.exits)
    phases.exits = *options.exits;
  if (options.exits && options.exits->empty())
    return Status::invalid("exits: expected at least one");
  if (options.exitMaps && !options.exits)
    return Status::invalid("exit maps \"" + *options.exitMaps +
                           "\": there are no exits that they could be for");
  if (options.target)
    INGOT_RETURN_IF_ERROR(applyTargetShorthand(*options.target, phases));
  phases.allowLibraryGemm = options.allowLibraryGemm.value_or(false);
  if (phases.allowLibraryGemm &&
      std::find(phases.targets.begin(), phases.targets.end(), "cuda") ==
          phases.targets.end())
    return Status::invalid("allow-library-gemm: is for the target cuda, which "
                           "is not among the targets");
  if (options.kv && *options.kv != "f16" && *options.kv != "f32" &&
      *options.kv != "int8")
    return Status::invalid("kv \"" + *options.kv +
                           "\": expected f16, f32 or int8");
  if (options.quantizeKv && *options.quantizeKv != "none" &&
      *options.quantizeKv != "int8")
    return Status::invalid("quantize kv \"" + *options.quantizeKv +
                           "\": expected int8 or none");
  if (options.kv == "int8" && options.quantizeKv == "none")
    return Status::invalid("kv \"int8\" and quantize kv \"none\" contradict");
  phases.quantizesKv = quantizesKv(options);
  if (auto own = options.pipelines.find("compress");
      phases.quantizesKv && own != options.pipelines.end() &&
      own->second.find("quantize-kv") == std::string::npos)
    return Status::invalid("an int8 cache is made by quantize-kv, which the "
                           "pipeline of the compress phase lacks");
  if (options.pooling)
    INGOT_RETURN_IF_ERROR(parsePooling(*options.pooling).status());
  if (options.context && *options.context <= 0)
    return Status::invalid("context " + std::to_string(*options.context) +
                           ": expected a positive number");
  // They become part of a pipeline's text, where these characters have meaning.
  auto check = [](const char *what, const std::string &word) {
    return word.empty() || word.find_first_of(" ,{}()\"'") != std::string::npos
               ? Status::invalid(
                     std::string(what) + " \"" + word +
                     "\": is empty or holds a space, comma, bracket or "
                     "quote")
               : Status::ok();
  };
  static const char *const tables[] = {"auto", "none", "f32", "f16",
                                       "bf16", "int8", "int4"};
  if (std::find(std::begin(tables), std::end(tables), phases.table) ==
      std::end(tables))
    return Status::invalid(
        "table \"" + phases.table +
        "\": expected auto, none, f32, f16, bf16, int8 or int4");
  for (const std::string &word : phases.overrides) {
    INGOT_RETURN_IF_ERROR(check("quantization", word));
    INGOT_RETURN_IF_ERROR(checkClosed("quantization", word));
  }
  if (options.calibrationTokens && *options.calibrationTokens <= 0)
    return Status::invalid("calibration tokens " +
                           std::to_string(*options.calibrationTokens) +
                           ": expected a positive number");
  if (options.calibrationTokens && !options.calibrate)
    return Status::invalid(
        "calibration tokens " + std::to_string(*options.calibrationTokens) +
        ": there is no calibration text to take them of");
  for (auto [what, amount] : {std::pair("layers", options.pruneLayers),
                              std::pair("key heads", options.pruneHeads)})
    if (amount && *amount < 1)
      return Status::invalid(std::string(what) +
                             " to prune: expected at least "
                             "1, found " +
                             std::to_string(*amount));
  if (options.pruneFfn && !(*options.pruneFfn > 0 && *options.pruneFfn < 1))
    return Status::invalid("share of the feed-forward to prune: expected more "
                           "than 0 and less than 1, found " +
                           std::to_string(*options.pruneFfn));
  if (options.heal && !prunes(options))
    return Status::invalid("healing is for what pruning leaves, and nothing is "
                           "pruned");
  if (options.evaluationTokens && *options.evaluationTokens <= 0)
    return Status::invalid("evaluation tokens " +
                           std::to_string(*options.evaluationTokens) +
                           ": expected a positive number");
  if (options.evaluationTokens && !options.evaluate)
    return Status::invalid(
        "evaluation tokens " + std::to_string(*options.evaluationTokens) +
        ": there is no evaluation text to take them of");
  for (auto [what, limit] :
       {std::pair("max KL", options.maxKl),
        std::pair("max perplexity increase", options.maxPplIncrease)}) {
    if (!limit)
      continue;
    if (!(*limit >= 0) || !std::isfinite(*limit))
      return Status::invalid(std::string(what) + " " + std::to_string(*limit) +
                             ": expected a number that is not negative");
    if (!options.evaluate)
      return Status::invalid(std::string(what) +
                             ": there is no evaluation text to keep it on");
  }
  if (options.name)
    INGOT_RETURN_IF_ERROR(checkName(*options.name));
  if (options.lora)
    for (const std::string &text : *options.lora)
      INGOT_RETURN_IF_ERROR(parseLora(text).status());
  if (options.levels && options.levels->empty())
    return Status::invalid("levels: expected at least one");
  for (auto [what, words] :
       {std::pair("level", &phases.levels), std::pair("skip", &phases.skip)})
    if (std::find(words->begin(), words->end(), "") != words->end())
      return Status::invalid(std::string(what) + " \"\": is empty");
  for (const std::string &word : phases.skip) {
    INGOT_RETURN_IF_ERROR(check("skip", word));
    INGOT_RETURN_IF_ERROR(checkClosed("skip", word));
  }
  for (const std::string &word : phases.levels)
    INGOT_RETURN_IF_ERROR(check("level", word));
  for (const std::string &word : phases.levels)
    INGOT_RETURN_IF_ERROR(checkClosed("level", word));
  for (const std::string &word : phases.chips) {
    INGOT_RETURN_IF_ERROR(check("chip", word));
    INGOT_RETURN_IF_ERROR(checkClosed("chip", word));
  }
  for (const auto &[phase, text] : options.pipelines)
    INGOT_RETURN_IF_ERROR(checkClosed("pipeline of " + phase, text));
  return phases;
}

std::string phaseText(Phase phase, const PhaseOptions &phaseOptions,
                      const CompileOptions &options) {
  auto own = options.pipelines.find(phaseName(phase));
  return own != options.pipelines.end() ? own->second
                                        : phasePipeline(phase, phaseOptions);
}

std::string wholePipelineText(const PhaseOptions &phaseOptions,
                              const CompileOptions &options) {
  std::string text;
  for (Phase phase : kPhases)
    if (std::string one = phaseText(phase, phaseOptions, options); !one.empty())
      text += (text.empty() ? "" : ",") + one;
  return "builtin.module(" + text + ")";
}

} // namespace ingot
