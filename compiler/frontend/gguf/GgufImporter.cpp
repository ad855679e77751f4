#include "compiler/frontend/gguf/GgufImporter.h"

#include "compiler/frontend/ModelFields.h"
#include "compiler/frontend/SpecBuilder.h"
#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/gguf/GgufFile.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

using Json = nlohmann::json;

// A metadata value as JSON for the field rules. Arrays of numbers and of
// strings are carried over up to a size that per-layer values need; longer
// ones belong to the tokenizer and stand as a text that names their size.
Json toJson(const GgufValue &value) {
  constexpr std::uint64_t maxElements = 8192;
  if (auto boolean = value.asBool())
    return *boolean;
  if (auto text = value.asString())
    return std::string(*text);
  if (auto integer = value.asInteger())
    return *integer;
  if (auto number = value.asFloat()) {
    // Infinity and NaN are not JSON; as text every reader of numbers refuses.
    if (!std::isfinite(*number))
      return std::isnan(*number) ? "NaN" : "infinity";
    return *number;
  }
  if (value.type() != GgufType::Array)
    return std::string("a ") + ggufTypeName(value.type()) + " beyond 63 bits";
  if (value.count() <= maxElements) {
    if (auto integers = value.asIntegers())
      return *integers;
    if (auto strings = value.asStrings()) {
      Json array = Json::array();
      for (std::string_view text : *strings)
        array.push_back(std::string(text));
      return array;
    }
  }
  return "an array of " + std::to_string(value.count()) + " " +
         ggufTypeName(value.elementType());
}

std::optional<WeightDtype> weightDtype(const GgmlType &type) {
  for (WeightDtype dtype :
       {WeightDtype::F32, WeightDtype::F16, WeightDtype::BF16, WeightDtype::F64,
        WeightDtype::Q8_0, WeightDtype::Q4_0, WeightDtype::Q4_1,
        WeightDtype::Q5_0, WeightDtype::Q5_1, WeightDtype::Q4_K,
        WeightDtype::Q5_K, WeightDtype::Q6_K})
    if (std::string_view(type.name) == weightDtypeName(dtype))
      return dtype;
  return std::nullopt;
}

std::vector<FileTensor> listTensors(const GgufFile &file) {
  std::vector<FileTensor> tensors;
  for (const GgufTensor &from : file.tensors()) {
    FileTensor tensor;
    tensor.name = from.name;
    tensor.byteOffset = from.fileOffset;
    tensor.data = file.data(from);
    tensor.dtype = weightDtype(*from.type);
    tensor.dtypeName = std::string(from.type->name) + " (ggml type " +
                       std::to_string(from.type->id) + ")";
    tensor.shape.assign(from.dims.rbegin(), from.dims.rend());
    // Vectors may be stored with unit dimensions around them.
    while (tensor.shape.size() > 2 && tensor.shape.front() == 1)
      tensor.shape.erase(tensor.shape.begin());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<const Descriptor *> chooseDescriptor(const DescriptorList &descriptors,
                                            const std::string &architecture,
                                            const std::string &where) {
  std::string known;
  for (const auto &descriptor : descriptors)
    for (const std::string &name : descriptor->gguf.names) {
      if (name == architecture)
        return descriptor.get();
      known += (known.empty() ? "" : ", ") + name;
    }
  return Status::unsupported(where + ": unsupported general.architecture " +
                             quoteName(architecture) + " (known: " + known +
                             ")");
}

// The vocabulary: stated, or the number of tokens, or the embedding's rows.
void setVocabulary(const GgufFile &file, const RouteDescriptor &route,
                   SpecFields &fields) {
  const GgufValue *tokens = file.find("tokenizer.ggml.tokens");
  if (fields.has("vocabSize"))
    return;
  if (tokens && tokens->asStrings()) {
    fields.set("vocabSize", tokens->count(), "tokenizer.ggml.tokens");
    return;
  }
  auto embed = route.tensors.find("embed");
  for (const GgufTensor &tensor : file.tensors())
    if (tensor.name == embed->second && tensor.dims.size() == 2) {
      fields.set("vocabSize", tensor.dims[1], tensor.name);
      return;
    }
  fields.problems().add("missing GGUF metadata keys",
                        "\"tokenizer.ggml.tokens\"");
}

// "tokenizer.chat_template" is the default; "tokenizer.chat_template.x" is
// named x.
Status readChatTemplates(const GgufFile &file,
                         std::vector<TemplateSource> &templates) {
  const std::string key = "tokenizer.chat_template";
  for (const auto &[name, value] : file.metadata()) {
    if (name != key && name.rfind(key + ".", 0) != 0)
      continue;
    auto text = value.asString();
    if (!text)
      return Status::invalid(file.name() + ": " + quoteName(name) +
                             ": expected a string");
    templates.push_back({name == key ? "default" : name.substr(key.size() + 1),
                         std::string(*text)});
  }
  std::sort(templates.begin(), templates.end(),
            [](const TemplateSource &a, const TemplateSource &b) {
              return a.name < b.name;
            });
  for (std::size_t i = 1; i < templates.size(); ++i)
    if (templates[i].name == templates[i - 1].name)
      return Status::invalid(file.name() + ": chat template " +
                             quoteName(templates[i].name) + " is given twice");
  return Status::ok();
}

// How an encoder's rows become a vector, as llama.cpp numbers it; where no key
// says so, the mean.
void readPooling(SpecFields &fields, ModelSpec &spec) {
  const Json *type = fields.find("poolingType");
  if (!type)
    return;
  auto number = fields.integer("poolingType", 0, 4);
  if (!number)
    return;
  switch (*number) {
  case 1:
    spec.embedding->pooling = Pooling::Mean;
    break;
  case 2:
    spec.embedding->pooling = Pooling::Cls;
    break;
  case 3:
    spec.embedding->pooling = Pooling::Last;
    break;
  default:
    fields.fault("poolingType", *number == 0
                                    ? "a vector of each token is not made "
                                      "(expected 1, 2 or 3)"
                                    : "a model that ranks is not read "
                                      "(expected 1, 2 or 3)");
  }
}

std::string joinLines(SpecFields &fields,
                      const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    if (auto line = fields.text(name))
      text += (text.empty() ? "" : "\n") + *line;
  return text;
}

} // namespace

// 1. the architecture chooses the descriptor, 2. fields, 3. ids and texts,
// 4. tensors; one message lists what is wrong in all of them.
Result<ModelSpec> importGguf(const std::string &path,
                             const ImportOptions &options) {
  INGOT_ASSIGN_OR_RETURN(auto file, GgufFile::open(path));
  INGOT_ASSIGN_OR_RETURN(auto descriptors,
                         loadDescriptors(options.descriptorPaths));
  const GgufValue *name = file.find("general.architecture");
  if (!name || !name->asString())
    return Status::invalid(path +
                           ": expected a string \"general.architecture\"");
  std::string architecture(*name->asString());
  INGOT_ASSIGN_OR_RETURN(const Descriptor *descriptor,
                         chooseDescriptor(descriptors, architecture, path));

  ModelSpec spec;
  ImportProblems problems;
  SpecFields fields(problems);
  Json metadata = Json::object();
  for (const auto &[key, value] : file.metadata())
    metadata[key] = toJson(value);
  fields.apply(descriptor->gguf.keys, metadata, "GGUF metadata", architecture);
  setVocabulary(file, descriptor->gguf, fields);
  std::vector<FileTensor> tensors = listTensors(file);
  INGOT_ASSIGN_OR_RETURN(
      Descriptor effective,
      resolveCases(
          *descriptor,
          [&](const std::string &field) { return fields.find(field); },
          namesOf(tensors)));
  const RouteDescriptor &route = effective.gguf;
  spec.family = descriptor->family;
  spec.architecture = architecture;
  bool layersRead = readModelFields(fields, route.block, spec);

  if (spec.embedding)
    readPooling(fields, spec);
  readSamplingFields(fields, spec.sampling);
  INGOT_RETURN_IF_ERROR(readChatTemplates(file, spec.chatTemplates));
  if (spec.vocabSize > 0) {
    const GgufValue *tokens = file.find("tokenizer.ggml.tokens");
    if (tokens && tokens->count() > std::uint64_t(spec.vocabSize))
      problems.add(
          "wrong values",
          "\"tokenizer.ggml.tokens\": " + std::to_string(tokens->count()) +
              " tokens for a vocabulary of " + std::to_string(spec.vocabSize));
    for (const char *field : {"eosIds", "eotId", "eomId"})
      readTokenIds(fields, field, spec.vocabSize, spec.eosIds);
    std::vector<std::int64_t> bos;
    readTokenIds(fields, "bosId", spec.vocabSize, bos);
    if (bos.size() > 1)
      fields.fault("bosId", "expected one id");
    else if (!bos.empty())
      spec.bosId = bos[0];
  }
  // "none" is what a converter writes for a model of token ids alone.
  const GgufValue *tokenizer = file.find("tokenizer.ggml.model");
  if (tokenizer && tokenizer->asString() != "none")
    spec.tokenizer = {TokenizerLocation::Kind::Gguf, path, ""};
  spec.licence = joinLines(fields, {"licence", "licenceName", "licenceLink"});
  spec.modelCard = joinLines(fields, {"modelCard"});

  std::size_t slash = path.rfind('/');
  spec.sources.push_back(
      {path, slash == std::string::npos ? path : path.substr(slash + 1),
       file.sizeBytes()});
  if (layersRead)
    bindTensors(fields, route, tensors, options, spec);
  if (!problems.empty())
    return problems.status(path, descriptor->family);
  return spec;
}

} // namespace ingot
