#include "compiler/frontend/huggingface/HuggingFaceImporter.h"

#include "compiler/frontend/ModelFields.h"
#include "compiler/frontend/SpecBuilder.h"
#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/FolderContents.h"
#include "compiler/frontend/huggingface/QuantizedTensors.h"
#include "compiler/frontend/huggingface/SafetensorsFolder.h"
#include "compiler/frontend/huggingface/SentenceTransformers.h"
#include "compiler/frontend/huggingface/TextPart.h"
#include "compiler/frontend/huggingface/TokenizerFiles.h"

#include <algorithm>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t maxConfigBytes = 16 << 20;
constexpr std::uint64_t maxTextBytes = 8 << 20;

Result<Json> readConfig(const ModelFolder &folder, const std::string &name) {
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxConfigBytes));
  INGOT_ASSIGN_OR_RETURN(auto json,
                         parseStrictJson(text, folder.path() + "/" + name));
  if (!json.is_object())
    return Status::invalid(folder.path() + "/" + name +
                           ": expected an object, found " +
                           jsonForMessage(json));
  return json;
}

std::optional<WeightDtype> weightDtype(SafetensorsDtype dtype) {
  switch (dtype) {
  case SafetensorsDtype::F32:
    return WeightDtype::F32;
  case SafetensorsDtype::F16:
    return WeightDtype::F16;
  case SafetensorsDtype::BF16:
    return WeightDtype::BF16;
  case SafetensorsDtype::F64:
    return WeightDtype::F64;
  case SafetensorsDtype::F8E4M3:
    return WeightDtype::F8E4M3;
  case SafetensorsDtype::F8E5M2:
    return WeightDtype::F8E5M2;
  case SafetensorsDtype::F8E8M0:
    return WeightDtype::F8E8M0;
  default:
    return std::nullopt;
  }
}

// Keys within an object for which the rules have some of the form "object.key".
void flattenObjects(const KeyRules &rules, Json &config) {
  Json flat = Json::object();
  for (const auto &item : config.items()) {
    const std::string prefix = item.key() + ".";
    auto rule = rules.lower_bound(prefix);
    if (!item.value().is_object() || rule == rules.end() ||
        !rule->first.starts_with(prefix)) {
      flat[item.key()] = item.value();
      continue;
    }
    for (const auto &inner : item.value().items())
      flat[prefix + inner.key()] = inner.value();
  }
  config = std::move(flat);
}

// How the weights were quantised, null where they were not: part of the config,
// or the file that early GPTQ tools wrote beside it. Not a key of any family.
Result<Json> takeQuantization(const ModelFolder &folder, Json &config) {
  Json quantization;
  for (const char *key : {"quantization_config", "compression_config"})
    if (auto found = config.find(key); found != config.end()) {
      if (quantization.is_null())
        quantization = *found;
      config.erase(found);
    }
  if (quantization.is_null() && folder.has("quantize_config.json"))
    return readConfig(folder, "quantize_config.json");
  return quantization;
}

// The descriptor by model_type; the class, where one is named, must be one
// that the family knows, as a class decides what the tensors mean.
Result<const Descriptor *> chooseDescriptor(const DescriptorList &descriptors,
                                            const Json &config,
                                            const std::string &where) {
  auto type = config.find("model_type");
  if (type == config.end() || !type->is_string())
    return Status::invalid(where + ": expected a string \"model_type\"");
  std::string known;
  for (const auto &descriptor : descriptors) {
    const RouteDescriptor &route = descriptor->huggingFace;
    for (const std::string &name : route.names) {
      known += (known.empty() ? "" : ", ") + name;
      if (*type != name)
        continue;
      auto classes = config.find("architectures");
      if (classes == config.end() || classes->is_null())
        return descriptor.get();
      if (!classes->is_array() || classes->size() != 1 ||
          !(*classes)[0].is_string())
        return Status::invalid(where +
                               ": architectures: expected one name, "
                               "found " +
                               jsonForMessage(*classes));
      std::string name0 = (*classes)[0].get<std::string>();
      if (std::find(route.architectures.begin(), route.architectures.end(),
                    name0) != route.architectures.end())
        return descriptor.get();
      return Status::unsupported(where + ": unsupported architecture " +
                                 quoteName(name0) + " of model_type " +
                                 quoteName(name));
    }
  }
  return Status::unsupported(where + ": unsupported model_type " +
                             jsonForMessage(*type) + " (known: " + known + ")");
}

Result<std::string> readFirst(const ModelFolder &folder,
                              const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (folder.has(name))
      return folder.readText(name, maxTextBytes);
  return std::string();
}

std::vector<FileTensor> listTensors(const SafetensorsFolder &weights) {
  std::vector<FileTensor> tensors;
  for (const auto &[name, located] : weights.tensors()) {
    const SafetensorsTensor &from = *located.tensor;
    FileTensor tensor;
    tensor.name = name;
    tensor.fileIndex = static_cast<std::uint32_t>(located.fileIndex);
    tensor.byteOffset = from.fileOffset;
    tensor.data = weights.files()[located.fileIndex].data(from);
    tensor.dtype = weightDtype(from.dtype);
    tensor.dtypeName = safetensorsDtypeName(from.dtype);
    tensor.shape = from.shape;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

} // namespace

// 1. the config chooses the descriptor, 2. fields, 3. tokenizer and generation
// files, 4. tensors; one message lists what is wrong in all of them.
Result<ModelSpec> importHuggingFace(const std::string &path,
                                    const ImportOptions &options) {
  INGOT_ASSIGN_OR_RETURN(auto folder, ModelFolder::open(path));
  INGOT_ASSIGN_OR_RETURN(auto descriptors,
                         loadDescriptors(options.descriptorPaths));
  std::string where = path + "/config.json";
  if (!folder.has("config.json")) {
    INGOT_ASSIGN_OR_RETURN(auto names, folder.list());
    return Status::notFound(path +
                            ": holds no \"config.json\", which a Hugging "
                            "Face folder has" +
                            insteadOfConfig(names));
  }
  INGOT_ASSIGN_OR_RETURN(auto config, readConfig(folder, "config.json"));
  INGOT_ASSIGN_OR_RETURN(auto wrappers, loadWrappers());
  INGOT_ASSIGN_OR_RETURN(const Wrapper *wrapper,
                         takeTextPart(wrappers, where, config));
  INGOT_ASSIGN_OR_RETURN(Json quantization, takeQuantization(folder, config));
  INGOT_ASSIGN_OR_RETURN(const Descriptor *descriptor,
                         chooseDescriptor(descriptors, config, where));

  flattenObjects(descriptor->huggingFace.keys, config);

  ModelSpec spec;
  ImportProblems problems;
  SpecFields fields(problems);
  fields.apply(descriptor->huggingFace.keys, config, "config");
  spec.family = descriptor->family;
  spec.architecture = config["model_type"].get<std::string>();
  INGOT_ASSIGN_OR_RETURN(auto weights, SafetensorsFolder::open(folder));
  spec.notes = weights.notes();
  std::vector<FileTensor> tensors = listTensors(weights);
  if (wrapper)
    INGOT_RETURN_IF_ERROR(takeTextTensors(*wrapper, path, tensors, spec.notes));
  const bool named =
      quantization.is_null() ||
      resolveQuantized(quantization, tensors, problems, spec.notes);
  INGOT_ASSIGN_OR_RETURN(
      Descriptor effective,
      resolveCases(
          *descriptor,
          [&](const std::string &field) { return fields.find(field); },
          namesOf(tensors)));
  const RouteDescriptor &route = effective.huggingFace;
  bool layersRead = readModelFields(fields, route.block, spec);

  // Ids and sampling: the union of what every file says ends a text.
  SpecFields generation(problems);
  if (folder.has("generation_config.json")) {
    INGOT_ASSIGN_OR_RETURN(auto json,
                           readConfig(folder, "generation_config.json"));
    generation.apply(descriptor->generationConfig, json, "generation_config");
  }
  readSamplingFields(generation, spec.sampling);
  INGOT_ASSIGN_OR_RETURN(auto tokenizer, readTokenizerFiles(folder));
  spec.tokenizer = tokenizer.location;
  spec.chatTemplates = std::move(tokenizer.chatTemplates);
  if (spec.vocabSize > 0) {
    readTokenIds(fields, "eosIds", spec.vocabSize, spec.eosIds);
    readTokenIds(generation, "eosIds", spec.vocabSize, spec.eosIds);
    if (tokenizer.eosId) {
      SpecFields one(problems);
      one.set("eosIds", *tokenizer.eosId, "tokenizer eos_token");
      readTokenIds(one, "eosIds", spec.vocabSize, spec.eosIds);
    }
    std::vector<std::int64_t> bos;
    readTokenIds(fields.has("bosId") ? fields : generation, "bosId",
                 spec.vocabSize, bos);
    if (bos.size() > 1)
      fields.fault("bosId", "expected one id");
    else if (!bos.empty())
      spec.bosId = bos[0];
  }

  for (std::size_t i = 0; i < weights.files().size(); ++i)
    spec.sources.push_back({weights.files()[i].name(), weights.fileNames()[i],
                            weights.files()[i].sizeBytes()});
  if (layersRead && named)
    bindTensors(fields, route, tensors, options, spec);
  if (!problems.empty())
    return problems.status(path, descriptor->family);

  // After the tensors, whose tables hold every position.
  if (spec.embedding)
    INGOT_RETURN_IF_ERROR(readSentenceTransformers(folder, spec));
  INGOT_ASSIGN_OR_RETURN(
      spec.licence, readFirst(folder, {"LICENSE", "LICENSE.txt", "LICENSE.md",
                                       "LICENCE", "LICENCE.txt"}));
  INGOT_ASSIGN_OR_RETURN(spec.modelCard, readFirst(folder, {"README.md"}));
  return spec;
}

} // namespace ingot
