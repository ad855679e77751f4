#include "compiler/frontend/SpecBuilder.h"

#include "compiler/frontend/RotaryFrequencies.h"
#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ingot {
namespace {

std::string shapeText(const std::vector<std::uint64_t> &shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

class TensorBinder {
public:
  TensorBinder(SpecFields &fields, const Descriptor &descriptor,
               const RouteDescriptor &route,
               const std::vector<FileTensor> &tensors,
               const ImportOptions &options, ModelSpec &spec)
      : problems_(fields.problems()), fields_(fields), descriptor_(descriptor),
        route_(route), options_(options), spec_(spec) {
    for (const FileTensor &tensor : tensors)
      unused_[tensor.name] = &tensor;
  }

  void bind();

private:
  // The file's name for a role, such as ("layer.{i}.q", 3).
  std::string nameOf(const std::string &role, std::int64_t layer) const {
    auto found = route_.tensors.find(role);
    return found == route_.tensors.end() ? ""
                                         : expandPattern(found->second, layer);
  }
  const FileTensor *peek(const std::string &role, std::int64_t layer) const {
    auto found = unused_.find(nameOf(role, layer));
    return found == unused_.end() ? nullptr : found->second;
  }
  const FileTensor *take(const std::string &role, std::int64_t layer);
  bool check(const FileTensor &tensor, std::vector<std::uint64_t> shape);
  void add(const std::string &role, std::int64_t layer,
           const std::vector<std::int64_t> &shape,
           std::int64_t rotaryHeads = 0);
  void bindHead();
  void bindLayer(std::int64_t index);
  void setBiasesByPresence(std::int64_t index);
  void bindRotary();
  void bindLeftovers();

  ImportProblems &problems_;
  SpecFields &fields_;
  const Descriptor &descriptor_;
  const RouteDescriptor &route_;
  const ImportOptions &options_;
  ModelSpec &spec_;
  std::map<std::string, const FileTensor *> unused_;
};

// The tensor of a role, which no other role can have after this.
const FileTensor *TensorBinder::take(const std::string &role,
                                     std::int64_t layer) {
  const FileTensor *tensor = peek(role, layer);
  if (tensor)
    unused_.erase(tensor->name);
  return tensor;
}

bool TensorBinder::check(const FileTensor &tensor,
                         std::vector<std::uint64_t> shape) {
  bool good = true;
  if (!tensor.dtype) {
    problems_.add("unsupported dtypes", "unsupported dtype " +
                                            tensor.dtypeName + " in tensor " +
                                            quoteName(tensor.name));
    good = false;
  } else if (shape.size() == 1 && weightBlockElements(*tensor.dtype) != 1) {
    problems_.add("unsupported dtypes", "unsupported dtype " +
                                            tensor.dtypeName + " in vector " +
                                            quoteName(tensor.name));
    good = false;
  }
  if (tensor.shape != shape) {
    problems_.add("wrong shapes", quoteName(tensor.name) + " expected " +
                                      shapeText(shape) + ", found " +
                                      shapeText(tensor.shape));
    good = false;
  }
  return good;
}

void TensorBinder::add(const std::string &role, std::int64_t layer,
                       const std::vector<std::int64_t> &shape,
                       std::int64_t rotaryHeads) {
  const FileTensor *tensor = take(role, layer);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf(role, layer)));
    return;
  }
  if (!check(*tensor, {shape.begin(), shape.end()}))
    return;
  TensorSource source;
  source.name = tensor->name;
  source.fileIndex = tensor->fileIndex;
  source.byteOffset = tensor->byteOffset;
  source.sizeBytes = tensor->data.size();
  source.dtype = *tensor->dtype;
  source.shape = shape;
  if (rotaryHeads > 0 && route_.permutedRotary) {
    source.permutation = RowPermutation::LlamaGgufRope;
    source.permutationHeads = rotaryHeads;
  }
  spec_.parameters[expandPattern(role, layer)] = std::move(source);
}

// The four cases of a head: the flag says tied or not (a route without the
// flag tells by the tensor), and the tensor is there or not.
void TensorBinder::bindHead() {
  const FileTensor *embed = peek("embed", 0);
  const FileTensor *head = peek("lm_head", 0);
  auto flag = fields_.boolean("tiedHead");
  if (!head) {
    if (flag && !*flag && !options_.tieMissingHead) {
      problems_.add("missing tensors",
                    quoteName(nameOf("lm_head", 0)) +
                        " (the head is not tied to the embedding: " +
                        quoteName(fields_.keyOf("tiedHead")) + " is false)");
      return;
    }
    if (flag && !*flag)
      spec_.notes.push_back("the head is tied to the embedding by request; the "
                            "config says that it is its own tensor");
    spec_.tiedHead = true;
    return;
  }
  bool equal =
      embed && embed->dtype == head->dtype && embed->shape == head->shape &&
      embed->data.size() == head->data.size() &&
      (embed->data.empty() || std::memcmp(embed->data.data(), head->data.data(),
                                          embed->data.size()) == 0);
  if (flag.value_or(false) && equal) {
    take("lm_head", 0);
    spec_.tiedHead = true;
    spec_.notes.push_back("tensor " + quoteName(head->name) +
                          " is a copy of the embedding and is left out");
    return;
  }
  if (flag.value_or(false))
    spec_.notes.push_back(
        "the config ties the head to the embedding, but tensor " +
        quoteName(head->name) + " differs from it and is used");
  spec_.tiedHead = false;
  add("lm_head", 0, {spec_.vocabSize, spec_.hiddenSize});
}

void TensorBinder::setBiasesByPresence(std::int64_t index) {
  LayerBiases &biases = spec_.layers[static_cast<std::size_t>(index)].biases;
  for (auto [name, flag] :
       {std::pair("q", &biases.q), std::pair("k", &biases.k),
        std::pair("v", &biases.v), std::pair("o", &biases.o),
        std::pair("gate", &biases.gate), std::pair("up", &biases.up),
        std::pair("down", &biases.down)}) {
    BiasRule rule = descriptor_.block.biases.at(name);
    if (rule == BiasRule::AttentionBias || rule == BiasRule::MlpBias)
      *flag = peek(std::string("layer.{i}.") + name + ".bias", index);
  }
}

void TensorBinder::bindLayer(std::int64_t index) {
  if (route_.biasesByPresence)
    setBiasesByPresence(index);
  const LayerSpec &layer = spec_.layers[static_cast<std::size_t>(index)];
  std::int64_t hidden = spec_.hiddenSize, ffn = layer.ffnSize;
  std::int64_t qRows = layer.heads * layer.headDim;
  std::int64_t kvRows = layer.kvHeads * layer.headDim;
  if (route_.permutedRotary && layer.rotary.dim != layer.headDim)
    problems_.add("unsupported values",
                  "layer " + std::to_string(index) +
                      ": rows permuted for a "
                      "rotation of " +
                      std::to_string(layer.rotary.dim) + " of " +
                      std::to_string(layer.headDim) + " head elements");

  add("layer.{i}.attn_norm", index, {hidden});
  add("layer.{i}.q", index, {qRows, hidden}, layer.heads);
  add("layer.{i}.k", index, {kvRows, hidden}, layer.kvHeads);
  add("layer.{i}.v", index, {kvRows, hidden});
  add("layer.{i}.o", index, {hidden, qRows});
  add("layer.{i}.ffn_norm", index, {hidden});
  add("layer.{i}.gate", index, {ffn, hidden});
  add("layer.{i}.up", index, {ffn, hidden});
  add("layer.{i}.down", index, {hidden, ffn});
  if (layer.qkNorm) {
    add("layer.{i}.q_norm", index, {layer.headDim});
    add("layer.{i}.k_norm", index, {layer.headDim});
  }
  if (layer.biases.q)
    add("layer.{i}.q.bias", index, {qRows}, layer.heads);
  if (layer.biases.k)
    add("layer.{i}.k.bias", index, {kvRows}, layer.kvHeads);
  if (layer.biases.v)
    add("layer.{i}.v.bias", index, {kvRows});
  if (layer.biases.o)
    add("layer.{i}.o.bias", index, {hidden});
  if (layer.biases.gate)
    add("layer.{i}.gate.bias", index, {ffn});
  if (layer.biases.up)
    add("layer.{i}.up.bias", index, {ffn});
  if (layer.biases.down)
    add("layer.{i}.down.bias", index, {hidden});
}

// The frequencies of every layer; layers of one geometry share the work.
void TensorBinder::bindRotary() {
  std::vector<float> factors;
  if (const FileTensor *tensor = take("rope_factors", 0)) {
    RotarySpec &rotary = spec_.layers[0].rotary;
    if (!check(*tensor, {static_cast<std::uint64_t>(rotary.dim / 2)}))
      return;
    if (*tensor->dtype != WeightDtype::F32) {
      problems_.add("unsupported dtypes",
                    "unsupported dtype " + tensor->dtypeName + " in tensor " +
                        quoteName(tensor->name));
      return;
    }
    if (rotary.kind != RotaryKind::Default) {
      problems_.add("wrong values", "frequency factors in tensor " +
                                        quoteName(tensor->name) +
                                        " beside rotary scaling " +
                                        rotaryKindName(rotary.kind));
      return;
    }
    factors.resize(static_cast<std::size_t>(rotary.dim / 2));
    std::memcpy(factors.data(), tensor->data.data(),
                factors.size() * sizeof(float));
    for (LayerSpec &layer : spec_.layers)
      layer.rotary.kind = RotaryKind::FrequencyFactors;
  }
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    RotarySpec &rotary = spec_.layers[i].rotary;
    if (i > 0 && rotary.dim == spec_.layers[i - 1].rotary.dim) {
      rotary.invFreq = spec_.layers[i - 1].rotary.invFreq;
      continue;
    }
    Status status = computeInverseFrequencies(rotary, factors);
    if (!status.isOk())
      problems_.add("wrong values", status.message());
  }
}

void TensorBinder::bindLeftovers() {
  std::size_t ignored = 0;
  std::string why;
  for (const auto &[name, tensor] : unused_) {
    auto rule =
        std::find_if(route_.ignoredTensors.begin(), route_.ignoredTensors.end(),
                     [&name = name](const IgnoredTensor &entry) {
                       return matchesPattern(entry.pattern, name);
                     });
    if (rule == route_.ignoredTensors.end()) {
      problems_.add("unknown tensors",
                    quoteName(name) + " " + shapeText(tensor->shape));
      continue;
    }
    ++ignored;
    why = rule->why;
  }
  if (ignored > 0)
    spec_.notes.push_back(std::to_string(ignored) +
                          " tensors are left out by rule (" + why + ")");
}

void TensorBinder::bind() {
  bindHead();
  add("embed", 0, {spec_.vocabSize, spec_.hiddenSize});
  add("final_norm", 0, {spec_.hiddenSize});
  for (std::int64_t i = 0; i < std::int64_t(spec_.layers.size()); ++i)
    bindLayer(i);
  bindRotary();
  bindLeftovers();
}

} // namespace

void bindTensors(SpecFields &fields, const Descriptor &descriptor,
                 const RouteDescriptor &route,
                 const std::vector<FileTensor> &tensors,
                 const ImportOptions &options, ModelSpec &spec) {
  TensorBinder(fields, descriptor, route, tensors, options, spec).bind();
}

} // namespace ingot
