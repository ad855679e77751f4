// 1. Read and import. 2. Probe with one set of sizes, raise, read the layers.
// 3. Again with other sizes: what is read must not depend on them. 4. The files
// beside the model: tokenizer, ids, context length.
#include "compiler/frontend/onnx/OnnxDecoder.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/TokenizerFiles.h"
#include "compiler/frontend/onnx/OnnxImporter.h"
#include "compiler/frontend/onnx/OnnxLayers.h"
#include "compiler/frontend/onnx/OnnxProbe.h"
#include "passes/raise/Raise.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t maxConfigBytes = 16 << 20;

// Sizes that are no size of a model: a dimension tells what it is.
constexpr ProbeSizes kProbes[] = {{1, 61, 11}, {1, 37, 5}};

// The folder that holds config and tokenizer.
std::string modelFolder(const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty())
    folder = ".";
  if (!fs::exists(folder / "tokenizer.json") && folder.filename() == "onnx" &&
      fs::exists(folder / ".." / "tokenizer.json"))
    return (folder / "..").string();
  return folder.string();
}

Result<Json> readJson(const ModelFolder &folder, const std::string &name) {
  if (!folder.has(name))
    return Json::object();
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxConfigBytes));
  INGOT_ASSIGN_OR_RETURN(auto json,
                         parseStrictJson(text, folder.path() + "/" + name));
  if (!json.is_object())
    return Status::invalid(folder.path() + "/" + name + ": expected an object");
  return json;
}

Status addIds(const Json &config, const char *key, std::int64_t vocabSize,
              std::vector<std::int64_t> &ids) {
  auto found = config.find(key);
  if (found == config.end() || found->is_null())
    return Status::ok();
  Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json &one : list) {
    if (!one.is_number_integer() || one.get<std::int64_t>() < 0 ||
        one.get<std::int64_t>() >= vocabSize)
      return Status::invalid(std::string(key) + ": expected ids below " +
                             std::to_string(vocabSize) + ", found " +
                             jsonForMessage(one));
    ids.push_back(one.get<std::int64_t>());
  }
  return Status::ok();
}

// What the graph does not say.
Status readBeside(const std::string &path, ModelSpec &spec) {
  INGOT_ASSIGN_OR_RETURN(auto folder, ModelFolder::open(modelFolder(path)));
  INGOT_ASSIGN_OR_RETURN(auto tokenizer, readTokenizerFiles(folder));
  spec.tokenizer = tokenizer.location;
  spec.chatTemplates = std::move(tokenizer.chatTemplates);
  INGOT_ASSIGN_OR_RETURN(Json config, readJson(folder, "config.json"));
  INGOT_ASSIGN_OR_RETURN(Json generation,
                         readJson(folder, "generation_config.json"));
  spec.family = "onnx";
  spec.architecture = "onnx";
  if (auto type = config.find("model_type");
      type != config.end() && type->is_string())
    spec.architecture = type->get<std::string>();
  for (const Json *json : {&config, &generation})
    INGOT_RETURN_IF_ERROR(
        addIds(*json, "eos_token_id", spec.vocabSize, spec.eosIds)
            .withContext(folder.path()));
  if (tokenizer.eosId)
    spec.eosIds.push_back(*tokenizer.eosId);
  std::sort(spec.eosIds.begin(), spec.eosIds.end());
  spec.eosIds.erase(std::unique(spec.eosIds.begin(), spec.eosIds.end()),
                    spec.eosIds.end());
  std::vector<std::int64_t> bos;
  INGOT_RETURN_IF_ERROR(addIds(config, "bos_token_id", spec.vocabSize, bos)
                            .withContext(folder.path()));
  if (bos.size() == 1)
    spec.bosId = bos[0];
  for (const char *key : {"max_position_embeddings", "n_positions"})
    if (auto length = config.find(key);
        length != config.end() && length->is_number_integer()) {
      const std::int64_t given = length->get<std::int64_t>();
      if (given < 1)
        return Status::invalid(folder.path() + "/config.json: " + key + " " +
                               std::to_string(given));
      // Tables for fewer positions are the limit.
      spec.contextLength =
          spec.contextLength ? std::min(spec.contextLength, given) : given;
    }
  if (spec.contextLength == 0)
    return Status::invalid(
        path + ": how long a sequence may be is said neither by tables of the "
               "graph nor by max_position_embeddings of a config.json beside "
               "it");
  return Status::ok();
}

} // namespace

bool looksLikeOnnx(std::span<const std::uint8_t> bytes) {
  // Field 1, a varint of 3 to 13.
  return bytes.size() >= 2 && bytes[0] == 0x08 && bytes[1] >= 3 &&
         bytes[1] <= 13;
}

Result<ModelSpec> importOnnx(const std::string &path,
                             const ImportOptions &options) {
  const auto &explain = options.explainFusion;
  INGOT_ASSIGN_OR_RETURN(OnnxFile file, OnnxFile::open(path));
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  INGOT_ASSIGN_OR_RETURN(auto module, importOnnxGraph(context, file));
  auto fail = [&](const Status &status) {
    return status.withContext(path + ": is no decoder that is known");
  };
  auto roles = inputRoles(*module);
  if (!roles)
    return fail(roles.status());
  std::optional<ModelSpec> result;
  for (const ProbeSizes &sizes : kProbes) {
    auto probed = probeGraph(*module, *roles, sizes);
    if (!probed)
      return fail(probed.status());
    raise::raiseAll(**probed, result ? nullptr : explain);
    ModelSpec spec;
    if (Status status = readLayers(**probed, file, *roles, sizes,
                                   result ? nullptr : explain,
                                   result ? &*result : nullptr, spec);
        !status)
      return fail(status);
    if (result && (spec.layers != result->layers ||
                   spec.parameters != result->parameters))
      return fail(Status::unsupported(
          "what it computes depends on how many positions it is given"));
    result = std::move(spec);
  }
  for (const OnnxSource &source : file.sources())
    result->sources.push_back({source.path, source.name, source.bytes.size()});
  INGOT_RETURN_IF_ERROR(readBeside(path, *result));
  result->notes.push_back("ONNX: " + std::to_string(result->layers.size()) +
                          " layers were recognised");
  return std::move(*result);
}

} // namespace ingot
