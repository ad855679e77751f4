#include "test/e2e/Goldens.h"

#include "runtime/support/MappedFile.h"
#include "test/e2e/Sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ingot::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFolder = INGOT_SOURCE_DIR "/test/e2e/goldens";

Result<json> readJson(const std::string &name) {
  fs::path path = kFolder / name;
  if (!fs::exists(path))
    return Status::notFound(path.string() + " has not been made");
  std::ifstream file(path);
  json parsed = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded())
    return Status::invalid(path.string() + ": is not JSON");
  return parsed;
}

// A missing key or a value of another type throws inside nlohmann.
template <typename T, typename Read>
Result<T> guarded(const std::string &name, Read read) {
  try {
    return read();
  } catch (const json::exception &error) {
    return Status::invalid(name + ": " + error.what());
  }
}

ModelGoldens goldensOf(const json &file) {
  ModelGoldens goldens;
  file.at("weightsSha256").get_to(goldens.weightsSha256);
  file.at("vocabulary").get_to(goldens.vocabulary);
  for (const json &row : file.at("logits")) {
    GoldenLogits one;
    row.at("prompt").get_to(one.prompt);
    row.at("ids").get_to(one.ids);
    row.at("logits").get_to(one.logits);
    row.at("logSumExp").get_to(one.logSumExp);
    row.at("projections").get_to(one.projections);
    row.at("maxError").get_to(one.maxError);
    goldens.logits.push_back(std::move(one));
  }
  for (const json &row : file.at("greedy")) {
    GoldenGreedy one;
    row.at("prompt").get_to(one.prompt);
    row.at("tokens").get_to(one.tokens);
    row.at("gaps").get_to(one.gaps);
    goldens.greedy.push_back(std::move(one));
  }
  return goldens;
}

// Everything that the comparison indexes with.
Status check(const ModelGoldens &goldens, const std::string &name) {
  auto bad = [&](const std::string &what) {
    return Status::invalid(name + ": " + what);
  };
  auto isPrompt = [&](std::int32_t prompt) {
    return prompt >= 0 && std::size_t(prompt) < goldens.prompts.size() &&
           !goldens.prompts[std::size_t(prompt)].empty();
  };
  if (goldens.logits.size() != goldens.prompts.size())
    return bad("logits of " + std::to_string(goldens.logits.size()) +
               " prompts, expected " + std::to_string(goldens.prompts.size()));
  if (goldens.greedy.empty())
    return bad("no greedy continuation");
  for (const GoldenLogits &one : goldens.logits) {
    if (!isPrompt(one.prompt))
      return bad("logits of prompt " + std::to_string(one.prompt) +
                 ", which is not there");
    if (one.ids.size() != 64 || one.logits.size() != 64 ||
        one.projections.size() != 8)
      return bad("prompt " + std::to_string(one.prompt) +
                 ": expected 64 ids, 64 logits and 8 projections");
    for (std::int32_t id : one.ids)
      if (id < 0 || id >= goldens.vocabulary)
        return bad("prompt " + std::to_string(one.prompt) + ": id " +
                   std::to_string(id) + " is outside the vocabulary");
  }
  for (const GoldenGreedy &one : goldens.greedy)
    if (!isPrompt(one.prompt) || one.tokens.size() < 32 ||
        one.gaps.size() != one.tokens.size())
      return bad("greedy continuation of prompt " + std::to_string(one.prompt) +
                 ": expected a prompt, 32 tokens or more, and as many gaps");
  return Status::ok();
}

} // namespace

Result<ModelGoldens> readGoldens(const std::string &model) {
  std::string name = model + ".json";
  INGOT_ASSIGN_OR_RETURN(json file, readJson(name));
  INGOT_ASSIGN_OR_RETURN(auto promptFile, guarded<std::string>(name, [&] {
                           return file.at("promptFile").get<std::string>();
                         }));
  INGOT_ASSIGN_OR_RETURN(json prompts, readJson(promptFile));
  INGOT_ASSIGN_OR_RETURN(auto goldens, guarded<ModelGoldens>(name, [&] {
                           ModelGoldens read = goldensOf(file);
                           prompts.at("prompts").get_to(read.prompts);
                           return read;
                         }));
  INGOT_RETURN_IF_ERROR(check(goldens, name));
  return goldens;
}

Result<PerplexityGolden> readPerplexity(const std::string &model) {
  const std::string name = "perplexity.json";
  INGOT_ASSIGN_OR_RETURN(json file, readJson(name));
  INGOT_ASSIGN_OR_RETURN(
      auto found, guarded<PerplexityGolden>(name, [&] {
        PerplexityGolden golden;
        for (const json &row : file.at("models")) {
          if (row.at("model") != model)
            continue;
          row.at("weightsSha256").get_to(golden.weightsSha256);
          row.at("window").get_to(golden.window);
          row.at("windows").get_to(golden.windows);
          row.at("scored").get_to(golden.scored);
          row.at("perplexity").get_to(golden.perplexity);
          row.at("windowNll").get_to(golden.windowNll);
        }
        return golden;
      }));
  if (found.windows == 0)
    return Status::notFound(name + " has no row of " + model);
  if (found.window < 2 || found.windows < 0 ||
      found.windowNll.size() != std::size_t(found.windows) ||
      found.scored != std::int64_t(found.windows) * (found.window - 1))
    return Status::invalid(name + ": the numbers of windows of " + model +
                           " contradict each other");
  return found;
}

Result<std::string> weightsSha256(const std::string &path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto &entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".safetensors")
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  Sha256 digest;
  for (const fs::path &file : files) {
    INGOT_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(file.string()));
    digest.update(mapped.bytes());
  }
  return digest.finish();
}

int projectionSign(std::uint64_t projection, std::uint64_t id) {
  std::uint64_t x = (projection << 32 | id) + 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  return x >> 63 ? -1 : 1;
}

} // namespace ingot::test
