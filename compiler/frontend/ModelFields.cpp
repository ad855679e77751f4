#include "compiler/frontend/ModelFields.h"

#include "compiler/frontend/RotaryFields.h"
#include "compiler/frontend/StrictJson.h"
#include "compiler/kernels/Alibi.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t maxInt = 2147483647;
// Bounds on what is allocated before any tensor has been seen.
constexpr std::int64_t maxLayers = 4096;
constexpr std::int64_t maxHeadDim = 4096;
constexpr std::int64_t maxHeads = 65536;
constexpr std::int64_t maxExperts = 1024;

bool readActivation(const std::string &name, Activation &activation) {
  if (name == "silu" || name == "swish")
    activation = Activation::Silu;
  else if (name == "gelu")
    activation = Activation::Gelu;
  else if (name == "gelu_pytorch_tanh" || name == "gelu_new" ||
           name == "gelu_fast")
    activation = Activation::GeluTanh;
  else if (name == "relu")
    activation = Activation::Relu;
  else
    return false;
  return true;
}

// The effective window of each layer.
void readWindows(SpecFields &fields, const BlockDescriptor &block,
                 ModelSpec &spec) {
  WindowRule rule = block.window;
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
  if (rule == WindowRule::Pattern) {
    std::int64_t pattern = fields.integer("windowPattern", 1, maxInt)
                               .value_or(block.windowPattern);
    if (pattern == 0 && window != 0 && !fields.has("layerTypes"))
      return fields.fault("windowPattern", "no pattern of windows is given");
    for (std::size_t i = 0; i < slides.size() && pattern != 0; ++i)
      slides[i] = (static_cast<std::int64_t>(i) + 1) % pattern != 0;
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
  if (block.encoder && window != 0)
    fields.fault("slidingWindow", "windows that look both ways are not read");
}

// The slopes of ALiBi, as transformers computes them: powers of one base for the
// heads up to a power of two; for the rest every other power of its root.
void readSlopes(SpecFields &fields, const BlockDescriptor &block,
                ModelSpec &spec) {
  double bias = fields.number("alibiBias", 1e-3, 1e3).value_or(8.0);
  if (block.alibi == AlibiRule::None)
    return;
  for (LayerSpec &layer : spec.layers) {
    const auto heads = static_cast<std::size_t>(layer.heads);
    auto power = [&](std::size_t k, std::size_t of) {
      auto base = static_cast<float>(std::exp2(-bias / double(of)));
      return block.alibi == AlibiRule::Bias
                 ? static_cast<float>(std::exp2(-bias * double(k) / double(of)))
                 : static_cast<float>(std::pow(double(base), double(k)));
    };
    std::vector<float> slopes;
    if (block.alibi == AlibiRule::Bias) {
      const std::size_t all = std::bit_ceil(heads);
      for (std::size_t first : {all == heads ? 1u : 2u, 1u})
        for (std::size_t k = first; k <= all && slopes.size() < heads;
             k += all == heads ? 1 : 2)
          slopes.push_back(power(k, all));
    } else {
      const std::size_t whole = std::bit_floor(heads);
      for (std::size_t k = 1; k <= whole; ++k)
        slopes.push_back(power(k, whole));
      for (std::size_t k = 1; slopes.size() < heads; k += 2)
        slopes.push_back(power(k, 2 * whole));
    }
    layer.roundedSlopes = block.alibi == AlibiRule::Rounded;
    if (layer.roundedSlopes)
      for (float &slope : slopes)
        slope = kernels::roundToBrain(slope);
    layer.slopes = std::move(slopes);
  }
}

// The layers that do not rotate lose their rotary embedding.
bool dropRotary(SpecFields &fields, const BlockDescriptor &block,
                ModelSpec &spec) {
  std::vector<bool> rotates(spec.layers.size(), block.rotates);
  if (block.rotates && block.rotaryLayers == RotaryLayers::Sliding)
    for (std::size_t i = 0; i < rotates.size(); ++i)
      rotates[i] = spec.layers[i].slidingWindow > 0;
  if (block.rotates && block.rotaryLayers == RotaryLayers::Listed) {
    if (fields.has("noRopeLayers")) {
      // 1 for a layer that rotates, whatever the key's name seems to say.
      auto list = fields.integers(
          "noRopeLayers", static_cast<std::int64_t>(rotates.size()), 0, 1);
      if (list.empty())
        return false;
      for (std::size_t i = 0; i < rotates.size(); ++i)
        rotates[i] = list[i] != 0;
    } else {
      std::int64_t interval = fields.integer("noRopeInterval", 1, maxInt)
                                  .value_or(block.noRopeInterval);
      if (interval == 0) {
        fields.fault("noRopeInterval", "it is not said which layers rotate");
        return false;
      }
      for (std::size_t i = 0; i < rotates.size(); ++i)
        rotates[i] = (static_cast<std::int64_t>(i) + 1) % interval != 0;
    }
  }
  for (std::size_t i = 0; i < rotates.size(); ++i)
    if (!rotates[i])
      spec.layers[i].rotary = RotarySpec();
  return true;
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

// The layers whose feed-forward is one of experts: each sparseStep-th, but for
// those that plainLayers lists.
bool readExperts(SpecFields &fields, ModelSpec &spec) {
  fields.require("expertCount");
  fields.require("expertsPerToken");
  auto experts = fields.integer("expertCount", 1, maxExperts);
  auto perToken = fields.integer("expertsPerToken", 1, maxExperts);
  auto size = fields.integer("expertFfnSize", 1, maxInt);
  auto step = fields.integer("sparseStep", 1, maxInt).value_or(1);
  bool normalized = fields.boolean("expertsNormalized").value_or(true);
  std::vector<bool> plain(spec.layers.size(), false);
  if (const Json *list = fields.find("plainLayers"))
    for (const Json &layer : *list) {
      if (!list->is_array() || !layer.is_number_integer() || layer < 0 ||
          layer >= spec.layers.size()) {
        fields.fault("plainLayers", "expected numbers of layers");
        return false;
      }
      plain[layer.get<std::size_t>()] = true;
    }
  if (!experts || !perToken)
    return false;
  if (*perToken > *experts) {
    fields.fault("expertsPerToken", "expected 1 to " +
                                        std::to_string(*experts) +
                                        " experts for a token");
    return false;
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec &layer = spec.layers[i];
    if (plain[i] || (static_cast<std::int64_t>(i) + 1) % step != 0)
      continue;
    layer.experts = *experts;
    layer.expertsPerToken = *perToken;
    layer.expertsNormalized = normalized;
    layer.ffnSize = size.value_or(layer.ffnSize);
    if (layer.ffnSize % 8 != 0 || spec.hiddenSize % 16 != 0) {
      fields.fault(size ? "expertFfnSize" : "ffnSize",
                   "expected experts of sizes that are multiples of 8, in a "
                   "hidden size of a multiple of 16");
      return false;
    }
  }
  return true;
}

} // namespace

// 1. the model's own sizes, 2. what holds for all layers, 3. each layer.
bool readModelFields(SpecFields &fields, const BlockDescriptor &block,
                     ModelSpec &spec) {
  // Several keys may feed a field, so that none of them is required.
  for (const char *field :
       {"layerCount", "hiddenSize", "contextLength", "headCount", "normEps"})
    fields.require(field);
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
  spec.norm = block.norm;
  spec.normBias = block.normBias;
  spec.normOffset = block.normOffset;
  spec.learnedPositions = block.learnedPositions;
  spec.tokenTypes = block.tokenTypes;
  spec.embeddingNorm = block.embeddingNorm;
  if (block.encoder)
    spec.embedding.emplace();
  // The rows of a table of positions begin behind that of padding.
  if (auto pad = fields.integer("positionPadId", 0, maxInt - 1)) {
    spec.firstPosition = *pad + 1;
    if (context && spec.contextLength <= spec.firstPosition) {
      fields.fault("contextLength", "expected more than the " +
                                        std::to_string(spec.firstPosition) +
                                        " positions before the first");
      return false;
    }
    spec.contextLength -= spec.firstPosition;
  }
  spec.embeddingScale =
      fields.number("embeddingScale", -1e9, 1e9)
          .value_or(block.scalesEmbedding
                        ? std::sqrt(static_cast<double>(spec.hiddenSize))
                        : 1.0);
  spec.logitScale = fields.number("logitScale", -1e9, 1e9).value_or(1.0);
  if (auto divisor = fields.number("logitDivisor", 1e-9, 1e9))
    spec.logitScale /= *divisor;
  spec.logitSoftcap = fields.number("logitSoftcap", 0.0, 1e9).value_or(0.0);

  Activation activation = Activation::Silu;
  if (auto name = fields.text("activation")) {
    if (!readActivation(*name, activation))
      fields.problems().add("unsupported activations",
                            quoteName(*name) + " in " +
                                quoteName(fields.keyOf("activation")));
  } else if (!block.activation.empty()) {
    readActivation(block.activation, activation);
  }
  RotaryFields rotary = readRotaryFields(fields, block, spec.contextLength);
  auto headDim = fields.integer("headDim", 1, maxHeadDim);
  auto valueHeadDim = fields.integer("valueHeadDim", 1, maxHeadDim);
  auto rotaryDim = fields.integer("rotaryDim", 1, maxHeadDim);
  auto scale = fields.number("attentionScale", 1e-9, 1e9);
  if (!scale && block.attentionScale > 0)
    scale = block.attentionScale;
  if (auto scalar = fields.number("queryScalar", 1e-9, 1e9); scalar && !scale)
    scale = 1.0 / std::sqrt(*scalar);
  double softCap = fields.number("attentionSoftcap", 0.0, 1e9).value_or(0.0);
  double residualScale =
      fields.number("residualScale", -1e9, 1e9).value_or(1.0);
  bool attentionBias = fields.boolean("attentionBias").value_or(false);
  bool mlpBias = fields.boolean("mlpBias").value_or(false);
  if (!layerCount || !hidden || !vocab || !context || !eps)
    return false;

  std::int64_t count = *layerCount;
  auto heads = fields.integers("headCount", count, 1, maxHeads);
  bool derivesFfn = block.ffnMultiple > 0 && !fields.has("ffnSize") &&
                    *hidden <= maxInt / block.ffnMultiple;
  auto ffn = derivesFfn
                 ? std::vector<std::int64_t>(static_cast<std::size_t>(count),
                                             *hidden * block.ffnMultiple)
                 : fields.integers("ffnSize", count, 1, maxInt);
  auto kvHeads = block.kvHeads > 0
                     ? std::vector<std::int64_t>(
                           static_cast<std::size_t>(count), block.kvHeads)
                 : fields.has("kvHeadCount")
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
    layer.softCap = softCap;
    layer.residualScale = residualScale;
    layer.gated = block.gated;
    layer.attnNorm = block.norms.count("attn") > 0;
    layer.attnPostNorm = block.norms.count("attn_post") > 0;
    layer.ffnNorm = block.norms.count("ffn") > 0;
    layer.ffnPostNorm = block.norms.count("ffn_post") > 0;
    layer.attnSumNorm = block.norms.count("attn_sum") > 0;
    layer.ffnSumNorm = block.norms.count("ffn_sum") > 0;
    layer.bidirectional = block.encoder;
    layer.parallel = block.parallel;
    if (!readHeads(fields, layer, *hidden, headDim, i))
      return false;
    if (valueHeadDim && *valueHeadDim != layer.headDim) {
      fields.fault("valueHeadDim", "expected the size of a key head, " +
                                       std::to_string(layer.headDim));
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
  if (block.experts && !readExperts(fields, spec))
    return false;
  if (const Json *experts = fields.find("expertCount");
      experts && !block.experts && *experts != 0) {
    fields.fault("expertCount", "experts without a tensor that chooses them");
    return false;
  }
  readSlopes(fields, block, spec);
  readWindows(fields, block, spec);
  for (LayerSpec &layer : spec.layers) {
    bool slides = layer.slidingWindow > 0;
    layer.rotary = slides ? rotary.sliding : rotary.full;
    double part = slides ? rotary.slidingPartial : rotary.fullPartial;
    layer.rotary.dim = rotaryDim
                           ? *rotaryDim
                           : static_cast<std::int64_t>(
                                 static_cast<double>(layer.headDim) * part);
  }
  if (!dropRotary(fields, block, spec))
    return false;
  for (const LayerSpec &layer : spec.layers) {
    std::int64_t dim = layer.rotary.dim;
    if (dim == 0 && !block.rotates)
      continue;
    bool dropped = dim == 0 && block.rotaryLayers != RotaryLayers::All;
    if (!dropped && (dim < 2 || dim % 2 != 0 || dim > layer.headDim)) {
      fields.fault(rotaryDim ? "rotaryDim" : "headDim",
                   "expected an even number of rotating elements within the "
                   "head size " +
                       std::to_string(layer.headDim) + ", got " +
                       std::to_string(dim));
      return false;
    }
  }
  for (const LayerSpec &layer : spec.layers)
    if (layer.rotary.dim > 0)
      spec.contextLength = stretchedContext(layer.rotary, spec.contextLength);
  return rotary.good;
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
