// 1. Read and import. 2. Probe with one set of sizes, raise, read the layers.
// 3. Again with other sizes: what is read must not depend on them. 4. The files
// beside the model: tokenizer, ids, context length. 5. Again at the end of that
// context, where masks or tables are computed from positions.
#include "compiler/frontend/onnx/OnnxDecoder.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/TokenizerFiles.h"
#include "compiler/frontend/onnx/OnnxImporter.h"
#include "compiler/frontend/onnx/OnnxLayers.h"
#include "compiler/frontend/onnx/OnnxProbe.h"
#include "passes/raise/Raise.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <filesystem>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t maxConfigBytes = 16 << 20;

// Sizes that are no size of a model: a dimension tells what it is.
constexpr ProbeSizes kProbes[] = {{1, 61, 11}, {1, 37, 5}};

// Whether two probes read one model. A window that is wider than what a probe sees
// shows in the wider probe only, from where `known` learns it.
bool isSameModel(ModelSpec &known, std::int64_t knownTotal, ModelSpec found,
                 std::int64_t foundTotal) {
  if (found.layers.size() != known.layers.size())
    return false;
  for (std::size_t i = 0; i < known.layers.size(); ++i) {
    std::int64_t &window = known.layers[i].slidingWindow,
                 &other = found.layers[i].slidingWindow;
    auto isHidden = [](std::int64_t size, std::int64_t total) {
      return size == 0 || size >= total;
    };
    // The wider probe knows windows that the other one cannot tell from none.
    if (foundTotal > knownTotal && isHidden(window, knownTotal) &&
        other >= knownTotal)
      window = other;
    else if (foundTotal < knownTotal && isHidden(other, foundTotal) &&
             window >= foundTotal)
      other = window;
  }
  return found.layers == known.layers && found.parameters == known.parameters &&
         found.firstPosition == known.firstPosition;
}

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
  // onnxruntime-genai's, which is often the only one.
  INGOT_ASSIGN_OR_RETURN(Json genai, readJson(folder, "genai_config.json"));
  if (genai.contains("model") && genai["model"].is_object())
    genai = genai["model"];
  spec.family = "onnx";
  spec.architecture = "onnx";
  for (auto [json, key] : {std::pair(&genai, "type"), {&config, "model_type"}})
    if (auto type = json->find(key); type != json->end() && type->is_string())
      spec.architecture = type->get<std::string>();
  for (const Json *json : {&config, &generation, &genai})
    INGOT_RETURN_IF_ERROR(
        addIds(*json, "eos_token_id", spec.vocabSize, spec.eosIds)
            .withContext(folder.path()));
  if (tokenizer.eosId)
    spec.eosIds.push_back(*tokenizer.eosId);
  std::sort(spec.eosIds.begin(), spec.eosIds.end());
  spec.eosIds.erase(std::unique(spec.eosIds.begin(), spec.eosIds.end()),
                    spec.eosIds.end());
  std::vector<std::int64_t> bos;
  for (const Json *json : {&config, &genai})
    if (bos.empty())
      INGOT_RETURN_IF_ERROR(addIds(*json, "bos_token_id", spec.vocabSize, bos)
                                .withContext(folder.path()));
  if (bos.size() == 1)
    spec.bosId = bos[0];
  for (auto [json, name, key] :
       {std::tuple(&config, "config.json", "max_position_embeddings"),
        {&config, "config.json", "n_positions"},
        {&genai, "genai_config.json", "context_length"}})
    if (auto length = json->find(key);
        length != json->end() && length->is_number_integer()) {
      const std::int64_t given = length->get<std::int64_t>();
      if (given < 1)
        return Status::invalid(folder.path() + "/" + name + ": " + key + " " +
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
    return Status(status.code(),
                  path + ": is no decoder that is known: " + status.message() +
                      " (an artifact is made of a decoder, or of an encoder's "
                      "Hugging Face folder; any ONNX graph can be run with "
                      "onnx-run)");
  };
  auto roles = inputRoles(*module);
  if (!roles)
    return fail(roles.status());
  if (std::none_of(roles->begin(), roles->end(),
                   [](const ProbeInput &input) { return isPast(input.role); }))
    return fail(Status::unsupported(
        "it has no inputs of a past (past_key_values.N.key and .value)"));
  std::optional<ModelSpec> result;
  std::int64_t widest = 0;
  bool usesPositions = false;
  auto probe = [&](const ProbeSizes &sizes) -> Status {
    INGOT_ASSIGN_OR_RETURN(auto probed, probeGraph(*module, *roles, sizes));
    raise::raiseAll(*probed, result ? nullptr : explain);
    ModelSpec spec;
    INGOT_RETURN_IF_ERROR(
        readLayers(*probed, file, *roles, sizes, result ? nullptr : explain,
                   result ? &*result : nullptr, spec, usesPositions));
    if (!result)
      result = std::move(spec);
    else if (!isSameModel(*result, widest, std::move(spec), sizes.total()))
      return Status::unsupported(
          "what it computes depends on how many positions it is given");
    widest = std::max(widest, sizes.total());
    return Status::ok();
  };
  for (const ProbeSizes &sizes : kProbes)
    if (Status status = probe(sizes); !status)
      return fail(status);
  for (const OnnxSource &source : file.sources())
    result->sources.push_back({source.path, source.name, source.bytes.size()});
  INGOT_RETURN_IF_ERROR(readBeside(path, *result));
  // Windows, and tables that change with the length, show at the end.
  if (const ProbeSizes end{1, 2, result->contextLength - 2};
      usesPositions && end.total() > widest)
    if (Status status = probe(end); !status)
      return fail(status.withContext("with " + std::to_string(end.total()) +
                                     " positions"));
  result->notes.push_back("ONNX: " + std::to_string(result->layers.size()) +
                          " layers were recognised");
  return std::move(*result);
}

} // namespace ingot
