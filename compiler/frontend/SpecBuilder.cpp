#include "compiler/frontend/SpecBuilder.h"

#include "compiler/frontend/RotaryFrequencies.h"
#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <cmath>
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
  TensorBinder(SpecFields &fields, const RouteDescriptor &route,
               const std::vector<FileTensor> &tensors,
               const ImportOptions &options, ModelSpec &spec)
      : problems_(fields.problems()), fields_(fields), route_(route),
        options_(options), spec_(spec) {
    const std::string &prefix = route.optionalPrefix;
    hasPrefix_ = false;
    for (const FileTensor &tensor : tensors) {
      unused_[tensor.name] = &tensor;
      hasPrefix_ |= tensor.name.rfind(prefix, 0) == 0;
    }
  }

  void bind();

private:
  // The file's name for a role, such as ("layer.{i}.q", 3).
  std::string nameOf(const std::string &role, std::int64_t layer) const {
    auto found = route_.tensors.find(role);
    return found == route_.tensors.end()
               ? ""
               : expandPattern(withoutPrefix(found->second), layer, expert_);
  }
  // A pattern as files without the optional prefix have it.
  std::string withoutPrefix(const std::string &pattern) const {
    const std::string &prefix = route_.optionalPrefix;
    return hasPrefix_ || pattern.rfind(prefix, 0) != 0
               ? pattern
               : pattern.substr(prefix.size());
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
  // The tensor that holds several projections, and its rows of one of them.
  std::string fusedRole(const std::string &name) const;
  struct Rows {
    std::string role;
    std::int64_t count = 0, first = 0, run = 0, stride = 0;
  };
  void addFused(const std::string &role, std::int64_t layer,
                std::int64_t allRows, std::int64_t columns,
                const std::vector<Rows> &parts);
  bool isTransposed(const std::string &role,
                    const std::vector<std::int64_t> &shape) const;
  void addNorm(const std::string &role, std::int64_t layer);
  void addExperts(const std::string &name, std::int64_t layer,
                  std::int64_t rows, std::int64_t columns);
  void bindProjections(std::int64_t index);
  void bindHead();
  void bindPositions();
  void bindTokenTypes();
  void bindLayer(std::int64_t index);
  void setBiasesByPresence(std::int64_t index);
  bool readFactors(const FileTensor &tensor, std::vector<float> &factors);
  void bindFactorLists();
  void bindRotary();
  void bindLeftovers();

  ImportProblems &problems_;
  SpecFields &fields_;
  const RouteDescriptor &route_;
  const ImportOptions &options_;
  ModelSpec &spec_;
  std::map<std::string, const FileTensor *> unused_;
  bool hasPrefix_ = true;
  std::int64_t expert_ = 0; // that {e} stands for
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
  } else if (shape.size() == 1 && (weightBlockElements(*tensor.dtype) != 1 ||
                                   *tensor.dtype == WeightDtype::Codes)) {
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

TensorSource sourceOf(const FileTensor &tensor) {
  TensorSource source;
  source.name = tensor.name;
  source.fileIndex = tensor.fileIndex;
  source.byteOffset = tensor.byteOffset;
  source.sizeBytes = tensor.data.size();
  source.dtype = *tensor.dtype;
  source.details = tensor.details;
  return source;
}

std::string TensorBinder::fusedRole(const std::string &name) const {
  for (auto [fused, parts] :
       {std::pair("qkv", std::set<std::string>{"q", "k", "v"}),
        std::pair("gate_up", std::set<std::string>{"gate", "up"})})
    if (parts.count(name) &&
        route_.tensors.count(std::string("layer.{i}.") + fused))
      return fused;
  return name;
}

// Whether the file holds the matrix as [in, out].
bool TensorBinder::isTransposed(const std::string &role,
                                const std::vector<std::int64_t> &shape) const {
  return shape.size() == 2 && route_.transposed.count(role);
}

// One tensor that holds the rows of several parameters.
void TensorBinder::addFused(const std::string &role, std::int64_t layer,
                            std::int64_t allRows, std::int64_t columns,
                            const std::vector<Rows> &parts) {
  const FileTensor *tensor = take(role, layer);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf(role, layer)));
    return;
  }
  bool matrix = columns > 0;
  std::vector<std::int64_t> shape = {allRows};
  if (matrix)
    shape.push_back(columns);
  // Codes that others made have been turned to [out, in] already.
  bool transposed =
      isTransposed(role, shape) && tensor->dtype != WeightDtype::Codes;
  std::vector<std::uint64_t> stored(shape.begin(), shape.end());
  if (transposed)
    std::swap(stored[0], stored[1]);
  if (!check(*tensor, stored))
    return;
  if (transposed && weightBlockElements(*tensor->dtype) != 1) {
    problems_.add("unsupported dtypes",
                  "unsupported dtype " + tensor->dtypeName +
                      " in transposed tensor " + quoteName(tensor->name));
    return;
  }
  for (const Rows &part : parts) {
    TensorSource source = sourceOf(*tensor);
    source.shape = shape;
    source.shape[0] = part.count;
    source.transposed = transposed;
    source.storedRows = allRows;
    source.first = part.first;
    source.run = part.run;
    // Of one run there is no next: one way to say it.
    source.stride = part.run == part.count ? part.run : part.stride;
    spec_.parameters[expandPattern(part.role, layer)] = std::move(source);
  }
}

void TensorBinder::addNorm(const std::string &role, std::int64_t layer) {
  add(role, layer, {spec_.hiddenSize});
  if (spec_.normBias)
    add(role + ".bias", layer, {spec_.hiddenSize});
}

void TensorBinder::add(const std::string &role, std::int64_t layer,
                       const std::vector<std::int64_t> &shape,
                       std::int64_t rotaryHeads) {
  const FileTensor *tensor = take(role, layer);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf(role, layer)));
    return;
  }
  std::vector<std::uint64_t> stored(shape.begin(), shape.end());
  // Codes that others made have been turned to [out, in] already.
  bool transposed =
      isTransposed(role, shape) && tensor->dtype != WeightDtype::Codes;
  if (transposed)
    std::swap(stored[0], stored[1]);
  if (!check(*tensor, stored))
    return;
  TensorSource source = sourceOf(*tensor);
  source.shape = shape;
  source.transposed = transposed;
  if (rotaryHeads > 0 && route_.permutedRotary) {
    source.permutation = RowPermutation::LlamaGgufRope;
    source.permutationHeads = rotaryHeads;
  }
  spec_.parameters[expandPattern(role, layer, expert_)] = std::move(source);
}

// A matrix of each expert, or all of them in one tensor.
void TensorBinder::addExperts(const std::string &name, std::int64_t layer,
                              std::int64_t rows, std::int64_t columns) {
  std::int64_t experts = spec_.layers[static_cast<std::size_t>(layer)].experts;
  std::string role = "layer.{i}.expert.{e}." + name;
  std::string stacked = "layer.{i}.experts." + name;
  if (!route_.tensors.count(stacked)) {
    for (expert_ = 0; expert_ < experts; ++expert_)
      add(role, layer, {rows, columns});
    return;
  }
  const FileTensor *tensor = take(stacked, layer);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf(stacked, layer)));
    return;
  }
  if (!check(*tensor, {std::uint64_t(experts), std::uint64_t(rows),
                       std::uint64_t(columns)}))
    return;
  for (std::int64_t e = 0; e < experts; ++e) {
    TensorSource source = sourceOf(*tensor);
    source.shape = {rows, columns};
    source.storedRows = experts * rows;
    source.first = e * rows;
    source.run = rows;
    source.stride = rows;
    spec_.parameters[expandPattern(role, layer, e)] = std::move(source);
  }
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

// The table of learned positions, from the row of position 0 on.
void TensorBinder::bindPositions() {
  const std::int64_t first = spec_.firstPosition, count = spec_.contextLength;
  if (first == 0)
    return add("positions", 0, {count, spec_.hiddenSize});
  const FileTensor *tensor = take("positions", 0);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf("positions", 0)));
    return;
  }
  if (!check(*tensor,
             {std::uint64_t(first + count), std::uint64_t(spec_.hiddenSize)}))
    return;
  TensorSource source = sourceOf(*tensor);
  source.shape = {count, spec_.hiddenSize};
  source.storedRows = first + count;
  source.first = first;
  source.run = source.stride = count;
  spec_.parameters["positions"] = std::move(source);
}

// Texts are of type 0: its row is added to every token.
void TensorBinder::bindTokenTypes() {
  fields_.require("tokenTypeCount");
  auto count = fields_.integer("tokenTypeCount", 1, 1 << 16);
  const FileTensor *tensor = take("token_types", 0);
  if (!tensor) {
    problems_.add("missing tensors", quoteName(nameOf("token_types", 0)));
    return;
  }
  if (!count ||
      !check(*tensor, {std::uint64_t(*count), std::uint64_t(spec_.hiddenSize)}))
    return;
  if (weightBlockElements(*tensor->dtype) != 1 ||
      *tensor->dtype == WeightDtype::Codes) {
    problems_.add("unsupported dtypes", "unsupported dtype " +
                                            tensor->dtypeName + " in tensor " +
                                            quoteName(tensor->name));
    return;
  }
  TensorSource source = sourceOf(*tensor);
  source.shape = {spec_.hiddenSize};
  source.sizeBytes =
      std::uint64_t(spec_.hiddenSize) * weightBlockBytes(*tensor->dtype);
  spec_.parameters["token_types"] = std::move(source);
}

void TensorBinder::setBiasesByPresence(std::int64_t index) {
  LayerBiases &biases = spec_.layers[static_cast<std::size_t>(index)].biases;
  for (auto [name, flag] :
       {std::pair("q", &biases.q), std::pair("k", &biases.k),
        std::pair("v", &biases.v), std::pair("o", &biases.o),
        std::pair("gate", &biases.gate), std::pair("up", &biases.up),
        std::pair("down", &biases.down)}) {
    BiasRule rule = route_.block.biases.at(name);
    if (rule == BiasRule::AttentionBias || rule == BiasRule::MlpBias)
      *flag = peek("layer.{i}." + fusedRole(name) + ".bias", index);
  }
}

void TensorBinder::bindLayer(std::int64_t index) {
  if (route_.biasesByPresence)
    setBiasesByPresence(index);
  const LayerSpec &layer = spec_.layers[static_cast<std::size_t>(index)];
  if (route_.permutedRotary && layer.rotary.dim != 0 &&
      layer.rotary.dim != layer.headDim)
    problems_.add("unsupported values",
                  "layer " + std::to_string(index) +
                      ": rows permuted for a "
                      "rotation of " +
                      std::to_string(layer.rotary.dim) + " of " +
                      std::to_string(layer.headDim) + " head elements");
  for (auto [present, role] : {std::pair(layer.attnNorm, "attn"),
                               std::pair(layer.attnPostNorm, "attn_post"),
                               std::pair(layer.ffnNorm, "ffn"),
                               std::pair(layer.ffnPostNorm, "ffn_post"),
                               std::pair(layer.attnSumNorm, "attn_sum"),
                               std::pair(layer.ffnSumNorm, "ffn_sum")})
    if (present)
      addNorm(std::string("layer.{i}.") + role + "_norm", index);
  bindProjections(index);
  if (layer.qkNorm == QkNorm::None)
    return;
  for (auto [role, heads] : {std::pair("layer.{i}.q_norm", layer.heads),
                             std::pair("layer.{i}.k_norm", layer.kvHeads)}) {
    std::int64_t size = layer.headDim;
    if (layer.qkNorm != QkNorm::Head)
      size *= heads;
    // Weights of each head's own may be a tensor each, or a matrix, a row a
    // head.
    if (std::string each = std::string(role) + ".{e}";
        layer.qkNorm == QkNorm::OwnHead && route_.tensors.count(each)) {
      for (expert_ = 0; expert_ < heads; ++expert_)
        add(each, index, {layer.headDim});
      continue;
    }
    if (const FileTensor *tensor = peek(role, index);
        tensor && layer.qkNorm == QkNorm::OwnHead && tensor->dtype &&
        tensor->shape ==
            std::vector<std::uint64_t>{std::uint64_t(heads),
                                       std::uint64_t(layer.headDim)}) {
      TensorSource source = sourceOf(*take(role, index));
      source.shape = {size};
      spec_.parameters[expandPattern(role, index)] = std::move(source);
      continue;
    }
    add(role, index, {size});
  }
}

// The matrices of a layer and their biases, each in a tensor of its own or
// fused with others.
void TensorBinder::bindProjections(std::int64_t index) {
  const LayerSpec &layer = spec_.layers[static_cast<std::size_t>(index)];
  std::int64_t hidden = spec_.hiddenSize, ffn = layer.ffnSize;
  std::int64_t qRows = layer.heads * layer.headDim;
  std::int64_t kvRows = layer.kvHeads * layer.headDim;

  if (fusedRole("q") != "q") {
    std::int64_t all = qRows + 2 * kvRows;
    std::vector<Rows> parts = {
        {"layer.{i}.q", qRows, 0, qRows, qRows},
        {"layer.{i}.k", kvRows, qRows, kvRows, kvRows},
        {"layer.{i}.v", kvRows, qRows + kvRows, kvRows, kvRows}};
    if (route_.groupedQkv) {
      // For each key head its query heads, then its key, then its value.
      std::int64_t dim = layer.headDim;
      std::int64_t queries = layer.heads / layer.kvHeads * dim;
      std::int64_t stride = queries + 2 * dim;
      parts = {{"layer.{i}.q", qRows, 0, queries, stride},
               {"layer.{i}.k", kvRows, queries, dim, stride},
               {"layer.{i}.v", kvRows, queries + dim, dim, stride}};
    }
    addFused("layer.{i}.qkv", index, all, hidden, parts);
    if (layer.biases.q) {
      for (Rows &part : parts)
        part.role += ".bias";
      addFused("layer.{i}.qkv.bias", index, all, 0, parts);
    }
  } else {
    add("layer.{i}.q", index, {qRows, hidden}, layer.heads);
    add("layer.{i}.k", index, {kvRows, hidden}, layer.kvHeads);
    add("layer.{i}.v", index, {kvRows, hidden});
    if (layer.biases.q)
      add("layer.{i}.q.bias", index, {qRows}, layer.heads);
    if (layer.biases.k)
      add("layer.{i}.k.bias", index, {kvRows}, layer.kvHeads);
    if (layer.biases.v)
      add("layer.{i}.v.bias", index, {kvRows});
  }
  add("layer.{i}.o", index, {hidden, qRows});
  if (layer.biases.o)
    add("layer.{i}.o.bias", index, {hidden});

  if (layer.experts > 0) {
    add("layer.{i}.router", index, {layer.experts, hidden});
    addExperts("gate", index, ffn, hidden);
    addExperts("up", index, ffn, hidden);
    addExperts("down", index, hidden, ffn);
    return;
  }

  if (fusedRole("up") != "up") {
    std::vector<Rows> parts = {{"layer.{i}.gate", ffn, 0, ffn, ffn},
                               {"layer.{i}.up", ffn, ffn, ffn, ffn}};
    addFused("layer.{i}.gate_up", index, 2 * ffn, hidden, parts);
    if (layer.biases.up) {
      for (Rows &part : parts)
        part.role += ".bias";
      addFused("layer.{i}.gate_up.bias", index, 2 * ffn, 0, parts);
    }
  } else {
    if (layer.gated)
      add("layer.{i}.gate", index, {ffn, hidden});
    add("layer.{i}.up", index, {ffn, hidden});
    if (layer.gated && layer.biases.gate)
      add("layer.{i}.gate.bias", index, {ffn});
    if (layer.biases.up)
      add("layer.{i}.up.bias", index, {ffn});
  }
  add("layer.{i}.down", index, {hidden, ffn});
  if (layer.biases.down)
    add("layer.{i}.down.bias", index, {hidden});
}

// Divisors of the frequencies, one for each, which GGUF keeps in a tensor.
bool TensorBinder::readFactors(const FileTensor &tensor,
                               std::vector<float> &factors) {
  const RotarySpec &rotary = spec_.layers[0].rotary;
  if (!check(tensor, {static_cast<std::uint64_t>(rotary.dim / 2)}))
    return false;
  if (*tensor.dtype != WeightDtype::F32) {
    problems_.add("unsupported dtypes", "unsupported dtype " +
                                            tensor.dtypeName + " in tensor " +
                                            quoteName(tensor.name));
    return false;
  }
  if (rotary.kind != RotaryKind::Default) {
    problems_.add("wrong values",
                  "frequency factors in tensor " + quoteName(tensor.name) +
                      " beside rotary scaling " + rotaryKindName(rotary.kind));
    return false;
  }
  factors.resize(static_cast<std::size_t>(rotary.dim / 2));
  std::memcpy(factors.data(), tensor.data.data(),
              factors.size() * sizeof(float));
  for (float factor : factors)
    if (!std::isfinite(factor) || factor <= 0.0f) {
      problems_.add("wrong values", "a frequency factor in tensor " +
                                        quoteName(tensor.name) +
                                        " is not a positive number");
      return false;
    }
  return true;
}

// GGUF's form of longrope: two tensors, and keys for the original length and
// the scale of attention.
void TensorBinder::bindFactorLists() {
  const FileTensor *shorts = take("rope_factors_short", 0);
  const FileTensor *longs = take("rope_factors_long", 0);
  if (!shorts && !longs)
    return;
  for (auto [tensor, role] : {std::pair(shorts, "rope_factors_short"),
                              std::pair(longs, "rope_factors_long")})
    if (!tensor)
      problems_.add("missing tensors", quoteName(nameOf(role, 0)));
  for (const char *field : {"ropeOriginalLength", "ropeAttentionFactor"})
    fields_.require(field);
  auto original = fields_.integer("ropeOriginalLength", 2, spec_.contextLength);
  std::vector<float> shortFactors, longFactors;
  if (!shorts || !longs || !original || !fields_.has("ropeAttentionFactor") ||
      !readFactors(*shorts, shortFactors) || !readFactors(*longs, longFactors))
    return;
  for (LayerSpec &layer : spec_.layers) {
    RotarySpec &rotary = layer.rotary;
    rotary.kind = RotaryKind::LongRope;
    rotary.shortFactors.assign(shortFactors.begin(), shortFactors.end());
    rotary.longFactors.assign(longFactors.begin(), longFactors.end());
    rotary.originalContextLength = *original;
    rotary.factor = double(spec_.contextLength) / double(*original);
  }
}

// The frequencies of every layer; layers of one geometry share the work.
void TensorBinder::bindRotary() {
  bindFactorLists();
  std::vector<float> factors;
  if (const FileTensor *tensor = take("rope_factors", 0)) {
    if (!readFactors(*tensor, factors))
      return;
    for (LayerSpec &layer : spec_.layers)
      layer.rotary.kind = RotaryKind::FrequencyFactors;
  }
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    RotarySpec &rotary = spec_.layers[i].rotary;
    if (rotary.dim == 0)
      continue;
    auto made =
        std::find_if(spec_.layers.begin(),
                     spec_.layers.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const LayerSpec &other) {
                       RotarySpec same = other.rotary;
                       same.invFreq.clear();
                       return same == rotary;
                     });
    if (made != spec_.layers.begin() + static_cast<std::ptrdiff_t>(i)) {
      rotary.invFreq = made->rotary.invFreq;
      continue;
    }
    Status status = computeInverseFrequencies(rotary, factors);
    if (!status.isOk())
      problems_.add("wrong values", status.message());
  }
}

void TensorBinder::bindLeftovers() {
  std::map<std::string, std::size_t> ignored; // by reason
  for (const auto &[name, tensor] : unused_) {
    auto rule = std::find_if(
        route_.ignoredTensors.begin(), route_.ignoredTensors.end(),
        [&, &name = name](const IgnoredTensor &entry) {
          return matchesPattern(withoutPrefix(entry.pattern), name);
        });
    if (rule == route_.ignoredTensors.end()) {
      problems_.add("unknown tensors",
                    quoteName(name) + " " + shapeText(tensor->shape));
      continue;
    }
    ++ignored[rule->why];
  }
  for (const auto &[why, count] : ignored)
    spec_.notes.push_back(std::to_string(count) +
                          " tensors are left out by rule (" + why + ")");
}

void TensorBinder::bind() {
  if (!spec_.embedding)
    bindHead();
  add("embed", 0, {spec_.vocabSize, spec_.hiddenSize});
  if (!spec_.embedding)
    addNorm("final_norm", 0);
  if (spec_.learnedPositions)
    bindPositions();
  if (spec_.tokenTypes)
    bindTokenTypes();
  if (spec_.embeddingNorm)
    addNorm("embed_norm", 0);
  for (std::int64_t i = 0; i < std::int64_t(spec_.layers.size()); ++i)
    bindLayer(i);
  bindRotary();
  bindLeftovers();
}

} // namespace

std::set<std::string> namesOf(const std::vector<FileTensor> &tensors) {
  std::set<std::string> names;
  for (const FileTensor &tensor : tensors)
    names.insert(tensor.name);
  return names;
}

void bindTensors(SpecFields &fields, const RouteDescriptor &route,
                 const std::vector<FileTensor> &tensors,
                 const ImportOptions &options, ModelSpec &spec) {
  TensorBinder(fields, route, tensors, options, spec).bind();
}

} // namespace ingot
