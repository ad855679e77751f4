#include "compiler/frontend/ModelFields.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t maxInt = 2147483647;
// Bounds on what is allocated before any tensor has been seen.
constexpr std::int64_t maxLayers = 4096;
constexpr std::int64_t maxHeadDim = 4096;
constexpr std::int64_t maxHeads = 65536;

bool readActivation(const std::string &name, Activation &activation) {
  if (name == "silu" || name == "swish")
    activation = Activation::Silu;
  else if (name == "gelu")
    activation = Activation::Gelu;
  else if (name == "gelu_pytorch_tanh" || name == "gelu_new")
    activation = Activation::GeluTanh;
  else
    return false;
  return true;
}

// Reads one rope_scaling or rope_parameters object. Keys are strict for each
// type, as a key of another type means that something else was intended.
class RotaryReader {
public:
  RotaryReader(SpecFields &fields, const std::string &field, const Json &json,
               RotarySpec &rotary)
      : fields_(fields), field_(field), json_(json), rotary_(rotary) {}

  bool read(std::optional<double> &theta, std::optional<double> &partial);

private:
  bool fault(const std::string &message) {
    fields_.fault(field_, message);
    return false;
  }
  bool number(const char *key, double low, double &result) {
    if (!json_.contains(key))
      return fault(std::string("key \"") + key + "\" is missing");
    const Json &value = json_[key];
    if (!value.is_number() || !std::isfinite(value.get<double>()) ||
        value.get<double>() < low)
      return fault(std::string("\"") + key + "\": expected a number of " +
                   jsonForMessage(low) + " or more");
    result = value.get<double>();
    return true;
  }
  bool readType(std::string &type);

  SpecFields &fields_;
  std::string field_;
  const Json &json_;
  RotarySpec &rotary_;
};

// "rope_type", or "type" in older files; both only when they agree.
bool RotaryReader::readType(std::string &type) {
  type = "default";
  bool found = false;
  for (const char *key : {"rope_type", "type"}) {
    if (!json_.contains(key))
      continue;
    if (!json_[key].is_string())
      return fault(std::string("\"") + key + "\": expected a string");
    std::string value = json_[key].get<std::string>();
    if (found && value != type)
      return fault("\"rope_type\" and \"type\" contradict each other");
    type = value;
    found = true;
  }
  return true;
}

bool RotaryReader::read(std::optional<double> &theta,
                        std::optional<double> &partial) {
  if (!json_.is_object())
    return fault("expected an object");
  std::string type;
  if (!readType(type))
    return false;
  std::vector<std::string> known = {"rope_type", "type", "rope_theta",
                                    "partial_rotary_factor"};
  if (type == "default") {
    rotary_.kind = RotaryKind::Default;
  } else if (type == "linear") {
    rotary_.kind = RotaryKind::Linear;
    known.push_back("factor");
  } else if (type == "llama3") {
    rotary_.kind = RotaryKind::Llama3;
    known.insert(known.end(), {"factor", "low_freq_factor", "high_freq_factor",
                               "original_max_position_embeddings"});
  } else {
    fields_.problems().add("unsupported rotary types",
                           quoteName(type) + " in " +
                               quoteName(fields_.keyOf(field_)) +
                               " (default, linear and llama3 are read)");
    return false;
  }
  bool good = true;
  for (const auto &item : json_.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      good = fault("key " + quoteName(item.key()) + " is not known to type \"" +
                   type + "\"");
  if (rotary_.kind != RotaryKind::Default)
    good &= number("factor", 1e-6, rotary_.factor);
  if (rotary_.kind == RotaryKind::Llama3) {
    good &= number("low_freq_factor", 1e-6, rotary_.lowFreqFactor) &&
            number("high_freq_factor", 1e-6, rotary_.highFreqFactor);
    double original = 0;
    good &= number("original_max_position_embeddings", 1, original);
    if (good && (original != std::floor(original) || original > double(maxInt)))
      good = fault("\"original_max_position_embeddings\": expected an integer");
    if (good && rotary_.highFreqFactor <= rotary_.lowFreqFactor)
      good = fault("\"high_freq_factor\" must be above \"low_freq_factor\"");
    if (good)
      rotary_.originalContextLength = static_cast<std::int64_t>(original);
  }
  double value = 0;
  if (json_.contains("rope_theta") &&
      (good &= number("rope_theta", 1e-6, value)))
    theta = value;
  if (json_.contains("partial_rotary_factor") &&
      !json_["partial_rotary_factor"].is_null() &&
      (good &= number("partial_rotary_factor", 1e-6, value)))
    partial = value;
  return good;
}

// GGUF spells the same in separate keys.
bool readGgufScaling(SpecFields &fields, RotarySpec &rotary) {
  auto type = fields.text("ropeScalingType");
  if (!type) {
    // A factor with no type has no meaning that all readers agree on.
    if (fields.has("ropeScalingFactor") &&
        fields.number("ropeScalingFactor", 1e-6, 1e9).value_or(1.0) != 1.0) {
      fields.fault("ropeScalingFactor", "there is no scaling type with it");
      return false;
    }
    return !fields.has("ropeScalingType");
  }
  if (*type == "none")
    return true;
  if (*type != "linear") {
    fields.problems().add("unsupported rotary types",
                          quoteName(*type) + " in " +
                              quoteName(fields.keyOf("ropeScalingType")) +
                              " (none and linear are read)");
    return false;
  }
  auto factor = fields.number("ropeScalingFactor", 1e-6, 1e9);
  if (!factor) {
    if (!fields.has("ropeScalingFactor"))
      fields.fault("ropeScalingType", "there is no scaling factor with it");
    return false;
  }
  rotary.kind = RotaryKind::Linear;
  rotary.factor = *factor;
  return true;
}

// Everything of the rotary embedding that does not depend on the head size.
bool readRotary(SpecFields &fields, const BlockDescriptor &block,
                RotarySpec &rotary, double &partialFactor) {
  rotary.layout =
      block.interleavedRotary ? RotaryLayout::Interleaved : RotaryLayout::Half;
  std::optional<double> theta, partial;
  const Json *scaling = fields.find("ropeScaling");
  const Json *parameters = fields.find("ropeParameters");
  if (scaling && parameters && *scaling != *parameters) {
    fields.fault("ropeScaling",
                 "contradicts " + quoteName(fields.keyOf("ropeParameters")));
    return false;
  }
  bool good = true;
  // Null and {} say nothing; anything else must be an object.
  auto says = [](const Json *json) {
    return json && !(json->empty() && !json->is_array());
  };
  if (says(parameters))
    good = RotaryReader(fields, "ropeParameters", *parameters, rotary)
               .read(theta, partial);
  else if (says(scaling))
    good = RotaryReader(fields, "ropeScaling", *scaling, rotary)
               .read(theta, partial);
  good &= readGgufScaling(fields, rotary);

  // The object's own value stands; the key beside it is the older place.
  auto outerTheta = fields.number("ropeTheta", 1e-6, 1e15);
  auto outerPartial = fields.number("partialRotaryFactor", 1e-6, 1.0);
  rotary.theta =
      static_cast<float>(theta.value_or(outerTheta.value_or(10000.0)));
  partialFactor = partial.value_or(outerPartial.value_or(1.0));
  if (partialFactor > 1.0) {
    fields.fault("ropeParameters",
                 "\"partial_rotary_factor\": expected at most 1");
    good = false;
  }
  return good;
}

// The effective window of each layer.
void readWindows(SpecFields &fields, WindowRule rule, ModelSpec &spec) {
  std::int64_t window = fields.integer("slidingWindow", 0, maxInt).value_or(0);
  std::vector<bool> slides(spec.layers.size(), true);
  if (rule == WindowRule::Qwen) {
    if (!fields.boolean("useSlidingWindow").value_or(false))
      window = 0;
    std::int64_t first = fields.integer("maxWindowLayers", 0, maxInt)
                             .value_or(static_cast<std::int64_t>(maxInt));
    for (std::size_t i = 0; i < slides.size(); ++i)
      slides[i] = static_cast<std::int64_t>(i) >= first;
  }
  if (const Json *types = fields.find("layerTypes")) {
    if (!types->is_array() || types->size() != slides.size()) {
      fields.fault("layerTypes", "expected a name for each of " +
                                     std::to_string(slides.size()) + " layers");
      return;
    }
    for (std::size_t i = 0; i < slides.size(); ++i) {
      if ((*types)[i] == "sliding_attention")
        slides[i] = true;
      else if ((*types)[i] == "full_attention")
        slides[i] = false;
      else
        return fields.fault("layerTypes", "expected \"full_attention\" or "
                                          "\"sliding_attention\" for layer " +
                                              std::to_string(i));
    }
  }
  for (std::size_t i = 0; i < slides.size(); ++i)
    spec.layers[i].slidingWindow = slides[i] ? window : 0;
}

bool hasBias(const BlockDescriptor &block, const char *name, bool attention,
             bool mlp) {
  switch (block.biases.at(name)) {
  case BiasRule::Never:
    return false;
  case BiasRule::Always:
    return true;
  case BiasRule::AttentionBias:
    return attention;
  case BiasRule::MlpBias:
    return mlp;
  }
  return false;
}

// The head counts and sizes of one layer, from what was read for all.
bool readHeads(SpecFields &fields, LayerSpec &layer, std::int64_t hiddenSize,
               std::optional<std::int64_t> headDim, std::size_t index) {
  if (layer.heads % layer.kvHeads != 0) {
    fields.fault("kvHeadCount", "layer " + std::to_string(index) + ": " +
                                    std::to_string(layer.heads) +
                                    " heads are not a multiple of " +
                                    std::to_string(layer.kvHeads) +
                                    " key and value heads");
    return false;
  }
  if (headDim) {
    layer.headDim = *headDim;
  } else if (hiddenSize % layer.heads != 0) {
    fields.fault("headCount", "layer " + std::to_string(index) +
                                  ": the hidden size " +
                                  std::to_string(hiddenSize) +
                                  " is not a multiple of the heads, and no "
                                  "head size is given");
    return false;
  } else {
    layer.headDim = hiddenSize / layer.heads;
  }
  if (layer.headDim > maxHeadDim) {
    fields.fault("headDim", "layer " + std::to_string(index) +
                                ": a head size of " +
                                std::to_string(layer.headDim) + " is above " +
                                std::to_string(maxHeadDim));
    return false;
  }
  return true;
}

} // namespace

// 1. the model's own sizes, 2. what holds for all layers, 3. each layer.
bool readModelFields(SpecFields &fields, const BlockDescriptor &block,
                     ModelSpec &spec) {
  auto layerCount = fields.integer("layerCount", 1, maxLayers);
  auto hidden = fields.integer("hiddenSize", 1, maxInt);
  auto vocab = fields.integer("vocabSize", 1, maxInt);
  auto context = fields.integer("contextLength", 1, maxInt);
  auto eps = fields.number("normEps", 0.0, 1.0);
  spec.hiddenSize = hidden.value_or(0);
  spec.vocabSize = vocab.value_or(0);
  spec.contextLength = context.value_or(0);
  // Computed with in float32, whatever precision the input spells it in.
  spec.normEps = static_cast<float>(eps.value_or(0.0));
  // Without it a row of zeros is divided by zero.
  if (eps && spec.normEps <= 0.0) {
    fields.fault("normEps", "expected a number above 0 (in float32)");
    return false;
  }
  spec.embeddingScale =
      fields.number("embeddingScale", -1e9, 1e9).value_or(1.0);
  spec.logitScale = fields.number("logitScale", -1e9, 1e9).value_or(1.0);
  spec.logitSoftcap = fields.number("logitSoftcap", 0.0, 1e9).value_or(0.0);

  Activation activation = Activation::Silu;
  if (auto name = fields.text("activation");
      name && !readActivation(*name, activation))
    fields.problems().add("unsupported activations",
                          quoteName(*name) + " in " +
                              quoteName(fields.keyOf("activation")));
  RotarySpec rotary;
  double partialFactor = 1.0;
  bool rotaryGood = readRotary(fields, block, rotary, partialFactor);
  auto headDim = fields.integer("headDim", 1, maxHeadDim);
  auto valueHeadDim = fields.integer("valueHeadDim", 1, maxHeadDim);
  auto rotaryDim = fields.integer("rotaryDim", 1, maxHeadDim);
  auto scale = fields.number("attentionScale", 1e-9, 1e9);
  bool attentionBias = fields.boolean("attentionBias").value_or(false);
  bool mlpBias = fields.boolean("mlpBias").value_or(false);
  if (!layerCount || !hidden || !vocab || !context || !eps)
    return false;

  std::int64_t count = *layerCount;
  auto heads = fields.integers("headCount", count, 1, maxHeads);
  auto ffn = fields.integers("ffnSize", count, 1, maxInt);
  auto kvHeads = fields.has("kvHeadCount")
                     ? fields.integers("kvHeadCount", count, 1, maxHeads)
                     : heads;
  if (heads.empty() || ffn.empty() || kvHeads.empty())
    return false;
  spec.layers.assign(static_cast<std::size_t>(count), LayerSpec());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec &layer = spec.layers[i];
    layer.heads = heads[i];
    layer.kvHeads = kvHeads[i];
    layer.ffnSize = ffn[i];
    layer.activation = activation;
    layer.qkNorm = block.qkNorm;
    if (!readHeads(fields, layer, *hidden, headDim, i))
      return false;
    if (valueHeadDim && *valueHeadDim != layer.headDim) {
      fields.fault("valueHeadDim", "expected the size of a key head, " +
                                       std::to_string(layer.headDim));
      return false;
    }
    layer.rotary = rotary;
    layer.rotary.dim =
        rotaryDim ? *rotaryDim
                  : static_cast<std::int64_t>(
                        static_cast<double>(layer.headDim) * partialFactor);
    if (layer.rotary.dim < 2 || layer.rotary.dim % 2 != 0 ||
        layer.rotary.dim > layer.headDim) {
      fields.fault(rotaryDim ? "rotaryDim" : "headDim",
                   "expected an even number of rotating elements within the "
                   "head size " +
                       std::to_string(layer.headDim) + ", got " +
                       std::to_string(layer.rotary.dim));
      return false;
    }
    layer.softmaxScale =
        scale ? *scale : 1.0 / std::sqrt(static_cast<double>(layer.headDim));
    layer.biases = {hasBias(block, "q", attentionBias, mlpBias),
                    hasBias(block, "k", attentionBias, mlpBias),
                    hasBias(block, "v", attentionBias, mlpBias),
                    hasBias(block, "o", attentionBias, mlpBias),
                    hasBias(block, "gate", attentionBias, mlpBias),
                    hasBias(block, "up", attentionBias, mlpBias),
                    hasBias(block, "down", attentionBias, mlpBias)};
  }
  readWindows(fields, block.window, spec);
  return rotaryGood;
}

void readSamplingFields(SpecFields &fields, DefaultSampling &sampling) {
  sampling.doSample = fields.boolean("doSample");
  sampling.temperature = fields.number("temperature", 0.0, 1e6);
  sampling.topP = fields.number("topP", 0.0, 1.0);
  sampling.topK = fields.integer("topK", -1, maxInt);
  sampling.minP = fields.number("minP", 0.0, 1.0);
  sampling.repetitionPenalty = fields.number("repetitionPenalty", 1e-6, 1e6);
}

void readTokenIds(SpecFields &fields, const std::string &field,
                  std::int64_t vocabSize, std::vector<std::int64_t> &ids) {
  const Json *value = fields.find(field);
  if (!value)
    return;
  for (const Json &id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_integer() || id < 0 || id >= vocabSize) {
      fields.fault(field, "expected token ids from 0 to " +
                              std::to_string(vocabSize - 1));
      return;
    }
    ids.push_back(id.get<std::int64_t>());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

} // namespace ingot
