// 1. the config of the adapter, every key known; 2. its tensors, paired by
// module; 3. each pair to the parameters that the module's weight holds.
#include "compiler/frontend/LoraAdapter.h"

#include "compiler/frontend/SpecFields.h"
#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/ModelFolder.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "runtime/support/MappedFile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr const char *configName = "adapter_config.json";
constexpr const char *weightsName = "adapter_model.safetensors";
constexpr std::uint64_t maxConfigBytes = 16 << 20;

// Keys that say nothing of the merged weights.
const std::set<std::string> ignoredKeys = {
    "arrow_config",
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out", // B times A is [out, in] either way
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "kasa_config",
    "monteclora_config",
    "velora_config"};

// Values that change nothing; any other is refused by name.
const std::map<std::string, std::vector<Json>> expectedKeys = {
    {"peft_type", {"LORA"}},
    {"bias", {"none"}},
    {"use_dora", {false, nullptr}},
    {"use_qalora", {false, nullptr}},
    {"use_bdlora", {false, nullptr}},
    {"lora_bias", {false, nullptr}},
    {"modules_to_save", {nullptr, Json::array()}},
    {"layer_replication", {nullptr, Json::array()}},
    {"alora_invocation_tokens", {nullptr, Json::array()}},
    {"trainable_token_indices", {nullptr, Json::array(), Json::object()}},
    {"target_parameters", {nullptr, Json::array()}},
    // The others take something off the base weights when training begins.
    {"init_lora_weights", {true, false, "gaussian", "orthogonal", "eva"}}};

// The two tensors of a module.
struct Pair {
  const SafetensorsTensor *a = nullptr;
  const SafetensorsTensor *b = nullptr;
  bool isEmbedding = false;
};

class AdapterReader {
public:
  AdapterReader(const LoraRequest &request, bool fromHuggingFace,
                ModelSpec &spec)
      : request_(request), fromHuggingFace_(fromHuggingFace), spec_(spec) {}

  Status run(const DescriptorList &descriptors);

private:
  void checkConfig();
  void readPatterns(const char *key,
                    std::vector<std::pair<std::string, double>> &patterns);
  std::optional<double> number(const char *key);
  double patternOr(const std::vector<std::pair<std::string, double>> &patterns,
                   const std::string &module, double otherwise) const;
  void nameRoles(const Descriptor *descriptor);
  void pairTensors();
  void checkCopy(const SafetensorsTensor &tensor, const std::string &module);
  void add(const std::string &module, const Pair &pair);
  StoredPlane plane(const SafetensorsTensor &tensor) const;

  const LoraRequest &request_;
  bool fromHuggingFace_;
  ModelSpec &spec_;
  ImportProblems problems_;
  Json config_;
  SafetensorsFile file_;
  std::uint32_t fileIndex_ = 0;
  // Parameters by the Hugging Face name of their tensor, without ".weight".
  std::map<std::string, std::vector<std::string>> roles_;
  std::map<std::string, Pair> pairs_;
  double rank_ = 0.0, alpha_ = 0.0;
  bool rootOfRank_ = false;
  std::vector<std::pair<std::string, double>> ranks_, alphas_;
};

std::string shapeText(const std::vector<std::uint64_t> &shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<double> AdapterReader::number(const char *key) {
  auto found = config_.find(key);
  if (found == config_.end()) {
    problems_.add("missing adapter keys", quoteName(key));
    return std::nullopt;
  }
  if (!found->is_number() || !(found->get<double>() > 0.0) ||
      !std::isfinite(found->get<double>())) {
    problems_.add("wrong values", quoteName(key) + " is " +
                                      jsonForMessage(*found) +
                                      ", expected a number above 0");
    return std::nullopt;
  }
  return found->get<double>();
}

// Patterns are regular expressions to PEFT. Those in use are names of modules or
// their ends, with or without a ^; anything else is refused.
void AdapterReader::readPatterns(
    const char *key, std::vector<std::pair<std::string, double>> &patterns) {
  auto found = config_.find(key);
  if (found == config_.end() || found->is_null())
    return;
  if (!found->is_object()) {
    problems_.add("wrong values", quoteName(key) + " is not an object");
    return;
  }
  for (const auto &item : found->items()) {
    std::string text = item.key();
    std::string name = text.rfind('^', 0) == 0 ? text.substr(1) : text;
    bool plain = !name.empty() &&
                 std::all_of(name.begin(), name.end(), [](unsigned char c) {
                   return std::isalnum(c) || c == '_' || c == '.' || c == '-';
                 });
    if (!plain) {
      problems_.add("unsupported adapter values",
                    quoteName(key) + " has the pattern " + quoteName(text) +
                        ", expected names of modules");
      continue;
    }
    if (!item.value().is_number() || !(item.value().get<double>() > 0.0)) {
      problems_.add("wrong values", quoteName(key) + " " + quoteName(text) +
                                        " is " + jsonForMessage(item.value()));
      continue;
    }
    patterns.emplace_back(text, item.value().get<double>());
  }
}

double AdapterReader::patternOr(
    const std::vector<std::pair<std::string, double>> &patterns,
    const std::string &module, double otherwise) const {
  for (const auto &[pattern, value] : patterns) {
    if (pattern[0] == '^') {
      if (module == pattern.substr(1))
        return value;
      continue;
    }
    if (module == pattern ||
        (module.size() > pattern.size() &&
         module.compare(module.size() - pattern.size(), pattern.size(),
                        pattern) == 0 &&
         module[module.size() - pattern.size() - 1] == '.'))
      return value;
  }
  return otherwise;
}

void AdapterReader::checkConfig() {
  static const std::set<std::string> read = {"r", "lora_alpha", "use_rslora",
                                             "rank_pattern", "alpha_pattern"};
  for (const auto &item : config_.items()) {
    if (read.count(item.key()) || ignoredKeys.count(item.key()))
      continue;
    auto expected = expectedKeys.find(item.key());
    if (expected == expectedKeys.end()) {
      // What is off says nothing.
      if (!item.value().is_null() && item.value() != false)
        problems_.add("unknown adapter keys", quoteName(item.key()));
      continue;
    }
    if (std::find(expected->second.begin(), expected->second.end(),
                  item.value()) == expected->second.end())
      problems_.add("unsupported adapter values",
                    quoteName(item.key()) + " is " +
                        jsonForMessage(item.value()) + ", expected one of " +
                        jsonForMessage(Json(expected->second)));
  }
  if (!config_.contains("peft_type"))
    problems_.add("missing adapter keys", "\"peft_type\"");
  rank_ = number("r").value_or(1.0);
  alpha_ = number("lora_alpha").value_or(1.0);
  Json rslora = config_.value("use_rslora", Json(false));
  if (!rslora.is_boolean())
    problems_.add("wrong values",
                  "\"use_rslora\" is " + jsonForMessage(rslora));
  rootOfRank_ = rslora == true;
  readPatterns("rank_pattern", ranks_);
  readPatterns("alpha_pattern", alphas_);
}

void AdapterReader::nameRoles(const Descriptor *descriptor) {
  auto put = [&](std::string name, const std::string &role) {
    const std::string end = ".weight";
    if (name.size() > end.size() &&
        name.compare(name.size() - end.size(), end.size(), end) == 0)
      roles_[name.substr(0, name.size() - end.size())].push_back(role);
  };
  if (fromHuggingFace_) {
    for (const auto &[role, source] : spec_.parameters)
      put(source.name, role);
    return;
  }
  if (!descriptor)
    return;
  for (const auto &[pattern, name] : descriptor->huggingFace.tensors)
    for (std::int64_t i = 0; i < std::int64_t(spec_.layers.size()); ++i) {
      std::string role = expandPattern(pattern, i);
      if (spec_.parameters.count(role))
        put(expandPattern(name, i), role);
      if (role == pattern)
        break;
    }
}

// A copy of the embedding that PEFT saves beside its adapter says nothing new
// where it is that of the model.
void AdapterReader::checkCopy(const SafetensorsTensor &tensor,
                              const std::string &module) {
  auto roles = roles_.find(module);
  if (roles != roles_.end() && roles->second.size() == 1) {
    const TensorSource &base = spec_.parameters[roles->second[0]];
    Result<MappedFile> file =
        MappedFile::open(spec_.sources[base.fileIndex].path);
    std::span<const std::uint8_t> copy = file_.data(tensor);
    if (file && base.details.codes == std::nullopt &&
        base.byteOffset <= file->bytes().size() &&
        base.sizeBytes <= file->bytes().size() - base.byteOffset &&
        std::string(safetensorsDtypeName(tensor.dtype)) ==
            weightDtypeName(base.dtype) &&
        copy.size() == base.sizeBytes &&
        std::memcmp(copy.data(), file->bytes().data() + base.byteOffset,
                    copy.size()) == 0)
      return;
  }
  problems_.add("unsupported adapter tensors",
                quoteName(tensor.name) + " (not a copy of the base weight)");
}

void AdapterReader::pairTensors() {
  const std::string prefix = "base_model.model.";
  struct Kind {
    const char *suffix;
    const SafetensorsTensor *Pair::*member;
    bool isEmbedding;
  };
  const Kind kinds[] = {{".lora_A.weight", &Pair::a, false},
                        {".lora_B.weight", &Pair::b, false},
                        {".lora_embedding_A", &Pair::a, true},
                        {".lora_embedding_B", &Pair::b, true}};
  for (const SafetensorsTensor &tensor : file_.tensors()) {
    std::string name = tensor.name;
    if (name.rfind(prefix, 0) != 0) {
      problems_.add("unknown adapter tensors",
                    quoteName(name) + " " + shapeText(tensor.shape));
      continue;
    }
    name = name.substr(prefix.size());
    auto endsIn = [&](const std::string &suffix) {
      return name.size() > suffix.size() &&
             name.compare(name.size() - suffix.size(), suffix.size(), suffix) ==
                 0;
    };
    if (const std::string copy = ".base_layer.weight"; endsIn(copy)) {
      checkCopy(tensor, name.substr(0, name.size() - copy.size()));
      continue;
    }
    bool known = false;
    for (const Kind &kind : kinds)
      if (endsIn(kind.suffix)) {
        Pair &pair =
            pairs_[name.substr(0, name.size() - std::strlen(kind.suffix))];
        pair.*kind.member = &tensor;
        pair.isEmbedding = kind.isEmbedding;
        known = true;
      }
    if (!known)
      problems_.add("unknown adapter tensors",
                    quoteName(tensor.name) + " " + shapeText(tensor.shape));
  }
}

StoredPlane AdapterReader::plane(const SafetensorsTensor &tensor) const {
  StoredPlane plane;
  plane.name = tensor.name;
  plane.fileIndex = fileIndex_;
  plane.byteOffset = tensor.fileOffset;
  plane.sizeBytes = tensor.sizeBytes;
  plane.type = tensor.dtype == SafetensorsDtype::F16    ? PlaneType::F16
               : tensor.dtype == SafetensorsDtype::BF16 ? PlaneType::BF16
                                                        : PlaneType::F32;
  return plane;
}

void AdapterReader::add(const std::string &module, const Pair &pair) {
  if (!pair.a || !pair.b) {
    problems_.add("missing adapter tensors",
                  quoteName(module) + " has only one of its two matrices");
    return;
  }
  for (const SafetensorsTensor *tensor : {pair.a, pair.b})
    if (tensor->shape.size() != 2 ||
        (tensor->dtype != SafetensorsDtype::F32 &&
         tensor->dtype != SafetensorsDtype::F16 &&
         tensor->dtype != SafetensorsDtype::BF16)) {
      problems_.add("unsupported adapter tensors",
                    quoteName(tensor->name) + " " + shapeText(tensor->shape) +
                        " of " + safetensorsDtypeName(tensor->dtype));
      return;
    }
  auto roles = roles_.find(module);
  if (roles == roles_.end()) {
    problems_.add("unknown adapter tensors",
                  quoteName(pair.a->name) + " (the model has no weight of " +
                      quoteName(module) + ")");
    return;
  }
  const std::uint64_t rank = pair.a->shape[0];
  const double expectedRank = patternOr(ranks_, module, rank_);
  if (double(rank) != expectedRank || rank == 0 || rank > 1u << 20) {
    problems_.add("wrong shapes",
                  quoteName(pair.a->name) + " " + shapeText(pair.a->shape) +
                      " is not of rank " + std::to_string(expectedRank));
    return;
  }
  const double alpha = patternOr(alphas_, module, alpha_);
  for (const std::string &role : roles->second) {
    TensorSource &source = spec_.parameters[role];
    if (source.shape.size() != 2) {
      problems_.add("unknown adapter tensors", quoteName(pair.a->name) + " (" +
                                                   quoteName(module) +
                                                   " is not a matrix)");
      return;
    }
    // The rows of a fused tensor share the module's matrices.
    const auto rows = static_cast<std::uint64_t>(
        source.storedRows ? source.storedRows : source.shape[0]);
    const auto columns = static_cast<std::uint64_t>(source.shape[1]);
    // An embedding's matrices are those of its transpose.
    const std::uint64_t in = pair.isEmbedding ? rows : columns;
    const std::uint64_t out = pair.isEmbedding ? columns : rows;
    if (pair.a->shape[1] != in || pair.b->shape[0] != out ||
        pair.b->shape[1] != rank) {
      problems_.add("wrong shapes",
                    quoteName(module) + " expected [" + std::to_string(rank) +
                        ", " + std::to_string(in) + "] and [" +
                        std::to_string(out) + ", " + std::to_string(rank) +
                        "], found " + shapeText(pair.a->shape) + " and " +
                        shapeText(pair.b->shape));
      return;
    }
    StoredAdapter adapter;
    adapter.a = plane(pair.isEmbedding ? *pair.b : *pair.a);
    adapter.b = plane(pair.isEmbedding ? *pair.a : *pair.b);
    adapter.transposed = pair.isEmbedding;
    adapter.rank = static_cast<std::int64_t>(rank);
    adapter.scale = static_cast<float>(
        request_.scale *
        (alpha / (rootOfRank_ ? std::sqrt(double(rank)) : double(rank))));
    source.details.adapters.push_back(std::move(adapter));
  }
}

Status AdapterReader::run(const DescriptorList &descriptors) {
  INGOT_ASSIGN_OR_RETURN(auto folder, ModelFolder::open(request_.folder));
  INGOT_ASSIGN_OR_RETURN(auto text,
                         folder.readText(configName, maxConfigBytes));
  INGOT_ASSIGN_OR_RETURN(
      config_, parseStrictJson(text, request_.folder + "/" + configName));
  if (!config_.is_object())
    return Status::invalid(request_.folder + "/" + configName +
                           ": expected an object");
  if (!folder.has(weightsName))
    return Status::notFound(request_.folder + ": expected a file " +
                            weightsName +
                            (folder.has("adapter_model.bin")
                                 ? " (pickled adapter_model.bin is not read)"
                                 : ""));
  INGOT_ASSIGN_OR_RETURN(auto path, folder.resolve(weightsName));
  INGOT_ASSIGN_OR_RETURN(file_, SafetensorsFile::open(path));
  std::string base = request_.folder;
  while (base.size() > 1 && base.back() == '/')
    base.pop_back();
  fileIndex_ = static_cast<std::uint32_t>(spec_.sources.size());

  const Descriptor *family = nullptr;
  for (const auto &descriptor : descriptors)
    if (descriptor->family == spec_.family && !family)
      family = descriptor.get();
  checkConfig();
  nameRoles(family);
  pairTensors();
  for (const auto &[module, pair] : pairs_)
    add(module, pair);
  if (pairs_.empty() && problems_.empty())
    problems_.add("missing adapter tensors", "the file has none");
  if (!problems_.empty())
    return problems_.status(request_.folder, "an adapter");
  spec_.sources.push_back({path,
                           base.substr(base.rfind('/') + 1) + "/" + weightsName,
                           file_.sizeBytes()});
  spec_.notes.push_back("the adapter " + request_.folder + " is added to " +
                        std::to_string(pairs_.size()) + " weights");
  return Status::ok();
}

} // namespace

Status addLoraAdapter(const LoraRequest &request,
                      const DescriptorList &descriptors, bool fromHuggingFace,
                      ModelSpec &spec) {
  return AdapterReader(request, fromHuggingFace, spec).run(descriptors);
}

} // namespace ingot
