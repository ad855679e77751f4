#include "compiler/architectures/Descriptor.h"

#include "compiler/frontend/StrictJson.h"
#include "runtime/support/MappedFile.h"

#include <algorithm>
#include <set>

namespace ingot {
namespace {

using Json = nlohmann::json;

// Every field that SpecFields.cpp or an importer reads.
const std::set<std::string> knownFields = {"vocabSize",
                                           "hiddenSize",
                                           "ffnSize",
                                           "layerCount",
                                           "headCount",
                                           "kvHeadCount",
                                           "headDim",
                                           "valueHeadDim",
                                           "contextLength",
                                           "tokenTypeCount",
                                           "poolingType",
                                           "alibiBias",
                                           "positionPadId",
                                           "normEps",
                                           "activation",
                                           "ropeTheta",
                                           "ropeScaling",
                                           "ropeParameters",
                                           "ropeScalingType",
                                           "ropeScalingFactor",
                                           "partialRotaryFactor",
                                           "rotaryDim",
                                           "ropeLocalTheta",
                                           "ropeOriginalLength",
                                           "ropeAttentionFactor",
                                           "noRopeLayers",
                                           "noRopeInterval",
                                           "attentionScale",
                                           "queryScalar",
                                           "attentionSoftcap",
                                           "expertCount",
                                           "expertsPerToken",
                                           "expertsNormalized",
                                           "expertFfnSize",
                                           "sparseStep",
                                           "plainLayers",
                                           "residualScale",
                                           "attentionBias",
                                           "mlpBias",
                                           "tiedHead",
                                           "slidingWindow",
                                           "useSlidingWindow",
                                           "maxWindowLayers",
                                           "layerTypes",
                                           "windowPattern",
                                           "embeddingScale",
                                           "logitScale",
                                           "logitDivisor",
                                           "logitSoftcap",
                                           "bosId",
                                           "eosIds",
                                           "eotId",
                                           "eomId",
                                           "doSample",
                                           "temperature",
                                           "topP",
                                           "topK",
                                           "minP",
                                           "repetitionPenalty",
                                           "licence",
                                           "licenceName",
                                           "licenceLink",
                                           "modelCard"};

const std::set<std::string> requiredFields = {"hiddenSize",    "ffnSize",
                                              "layerCount",    "headCount",
                                              "contextLength", "normEps"};

// Fields that only decide between cases.
bool isFlag(const std::string &field) { return field.rfind("flag.", 0) == 0; }

const std::vector<std::string> normNames = {"attn", "attn_post", "attn_sum",
                                            "ffn",  "ffn_post",  "ffn_sum"};
const std::vector<std::string> projections = {"q",    "k",  "v",   "o",
                                              "gate", "up", "down"};

std::set<std::string> knownRoles() {
  std::set<std::string> roles = {"embed",
                                 "final_norm",
                                 "final_norm.bias",
                                 "lm_head",
                                 "positions",
                                 "rope_factors",
                                 "rope_factors_short",
                                 "rope_factors_long",
                                 "embed_norm",
                                 "embed_norm.bias",
                                 "token_types"};
  for (const char *norm : {"q_norm", "k_norm"})
    for (const char *each : {"", ".{e}"}) // of each head
      roles.insert(std::string("layer.{i}.") + norm + each);
  for (const std::string &norm : normNames) {
    roles.insert("layer.{i}." + norm + "_norm");
    roles.insert("layer.{i}." + norm + "_norm.bias");
  }
  roles.insert("layer.{i}.router");
  for (const char *name : {"gate", "up", "down"})
    for (const char *kind : {"expert.{e}.", "experts."})
      roles.insert(std::string("layer.{i}.") + kind + name);
  std::vector<std::string> matrices = projections;
  matrices.insert(matrices.end(), {"qkv", "gate_up"});
  for (const std::string &name : matrices) {
    roles.insert("layer.{i}." + name);
    roles.insert("layer.{i}." + name + ".bias");
  }
  return roles;
}

// Reads the descriptor with every key accounted for. The first fault is kept;
// the reads after it go on harmlessly.
class DescriptorParser {
public:
  explicit DescriptorParser(std::string name) : name_(std::move(name)) {}
  Status status() const { return status_; }

  void fail(const std::string &message) {
    if (status_.isOk())
      status_ = Status::invalid(name_ + ": " + message);
  }
  // `value` is an object with no key but these.
  bool checkObject(const Json &value, const std::string &where,
                   const std::vector<std::string> &keys) {
    if (!value.is_object()) {
      fail(where + ": expected an object, found " + jsonForMessage(value));
      return false;
    }
    for (const auto &item : value.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        fail(where + ": unknown key " + quoteName(item.key()));
    return true;
  }
  std::string text(const Json &object, const char *key,
                   const std::string &where, bool required = true) {
    if (!object.contains(key)) {
      if (required)
        fail(where + ": key \"" + key + "\" is missing");
      return "";
    }
    if (!object[key].is_string()) {
      fail(where + "." + key + ": expected a string");
      return "";
    }
    return object[key].get<std::string>();
  }
  // One of `names`, or the first where the key is absent.
  std::size_t choice(const Json &object, const char *key,
                     const std::string &where,
                     const std::vector<std::string> &names) {
    if (!object.contains(key))
      return 0;
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (object[key] == names[i])
        return i;
      list += (i ? ", \"" : "\"") + names[i] + "\"";
    }
    fail(where + "." + key + ": expected one of " + list + ", found " +
         jsonForMessage(object[key]));
    return 0;
  }
  std::int64_t count(const Json &object, const char *key,
                     const std::string &where) {
    if (!object.contains(key))
      return 0;
    if (!object[key].is_number_integer() || object[key] < 1 ||
        object[key] > (1 << 24)) {
      fail(where + "." + key + ": expected a positive integer");
      return 0;
    }
    return object[key].get<std::int64_t>();
  }
  double number(const Json &object, const char *key, const std::string &where) {
    if (!object.contains(key))
      return 0;
    if (!object[key].is_number()) {
      fail(where + "." + key + ": expected a number");
      return 0;
    }
    return object[key].get<double>();
  }
  bool boolean(const Json &object, const char *key, const std::string &where) {
    if (!object.contains(key))
      return false;
    if (!object[key].is_boolean()) {
      fail(where + "." + key + ": expected true or false");
      return false;
    }
    return object[key].get<bool>();
  }
  std::vector<std::string> texts(const Json &object, const char *key,
                                 const std::string &where) {
    std::vector<std::string> result;
    if (!object.contains(key))
      return result;
    if (!object[key].is_array())
      fail(where + "." + key + ": expected an array");
    else
      for (const Json &value : object[key]) {
        if (!value.is_string())
          fail(where + "." + key + ": expected strings");
        else
          result.push_back(value.get<std::string>());
      }
    return result;
  }

  void keyRules(const Json &value, const std::string &where, KeyRules &rules);
  void route(const Json &value, const std::string &where, const char *keysName,
             RouteDescriptor &route);
  void block(const Json &value, BlockDescriptor &block);

private:
  std::string name_;
  Status status_;
};

void DescriptorParser::keyRules(const Json &value, const std::string &where,
                                KeyRules &rules) {
  if (!value.is_object())
    return fail(where + ": expected an object");
  for (const auto &item : value.items()) {
    std::string here = where + "." + item.key();
    const Json &json = item.value();
    if (!checkObject(json, here,
                     {"field", "required", "default", "null", "ignore",
                      "expect", "why"}))
      return;
    KeyRule rule;
    int kinds = json.contains("field") + json.contains("ignore") +
                json.contains("expect");
    if (kinds != 1)
      return fail(here + ": expected one of \"field\", \"ignore\", \"expect\"");
    if (json.contains("field")) {
      rule.kind = KeyRule::Kind::Field;
      rule.field = text(json, "field", here);
      rule.required = boolean(json, "required", here);
      rule.defaultValue = json.value("default", Json());
      rule.nullValue = json.value("null", Json());
      if (!knownFields.count(rule.field) && !isFlag(rule.field))
        fail(here + ": unknown field " + quoteName(rule.field));
      if (rule.required && !rule.defaultValue.is_null())
        fail(here + ": a required key has no default");
      if (item.key().back() == '*')
        fail(here + ": a prefix cannot feed a field");
    } else if (json.contains("ignore")) {
      rule.kind = KeyRule::Kind::Ignore;
      rule.why = text(json, "ignore", here);
      if (rule.why.empty())
        fail(here + ": an ignored key needs a reason");
    } else {
      rule.kind = KeyRule::Kind::Expect;
      rule.expected = json["expect"];
      rule.why = text(json, "why", here);
      if (!rule.expected.is_array() || rule.expected.empty())
        fail(here + ".expect: expected an array of values");
    }
    rules[item.key()] = std::move(rule);
  }
}

void DescriptorParser::route(const Json &value, const std::string &where,
                             const char *keysName, RouteDescriptor &route) {
  if (!checkObject(value, where,
                   {"names", "architectures", keysName, "tensors",
                    "ignoredTensors", "permutedRotary", "biases", "transposed",
                    "qkvRows", "block", "optionalPrefix", "generationConfig"}))
    return;
  route.optionalPrefix = text(value, "optionalPrefix", where, false);
  route.groupedQkv =
      choice(value, "qkvRows", where, {"concatenated", "grouped"}) == 1;
  for (const std::string &role : texts(value, "transposed", where))
    route.transposed.insert(role);
  route.names = texts(value, "names", where);
  route.architectures = texts(value, "architectures", where);
  route.permutedRotary = boolean(value, "permutedRotary", where);
  std::string biases = text(value, "biases", where, false);
  if (biases != "" && biases != "byRule" && biases != "byPresence")
    fail(where + ".biases: expected \"byRule\" or \"byPresence\"");
  route.biasesByPresence = biases == "byPresence";
  if (value.contains(keysName))
    keyRules(value[keysName], where + "." + keysName, route.keys);
  if (value.contains("tensors")) {
    static const std::set<std::string> roles = knownRoles();
    if (!value["tensors"].is_object())
      return fail(where + ".tensors: expected an object");
    for (const auto &item : value["tensors"].items()) {
      if (!roles.count(item.key()))
        fail(where + ".tensors: unknown role " + quoteName(item.key()));
      std::string pattern =
          text(value["tensors"], item.key().c_str(), where + ".tensors");
      bool layered = item.key().find("{i}") != std::string::npos;
      if (layered != (pattern.find("{i}") != std::string::npos))
        fail(where + ".tensors." + item.key() +
             ": the role and the name must both hold {i}, or neither");
      if ((item.key().find("{e}") != std::string::npos) !=
          (pattern.find("{e}") != std::string::npos))
        fail(where + ".tensors." + item.key() +
             ": the role and the name must both hold {e}, or neither");
      route.tensors[item.key()] = pattern;
    }
  }
  if (value.contains("ignoredTensors")) {
    if (!value["ignoredTensors"].is_array())
      return fail(where + ".ignoredTensors: expected an array");
    for (const Json &entry : value["ignoredTensors"]) {
      std::string here = where + ".ignoredTensors";
      if (!checkObject(entry, here, {"pattern", "why"}))
        return;
      IgnoredTensor ignored{text(entry, "pattern", here),
                            text(entry, "why", here)};
      if (ignored.why.empty() || ignored.pattern.empty())
        fail(here + ": an ignored tensor needs a pattern and a reason");
      route.ignoredTensors.push_back(std::move(ignored));
    }
  }
}

void DescriptorParser::block(const Json &value, BlockDescriptor &block) {
  if (!checkObject(value, "block",
                   {"rotaryLayout",     "rotaryLayers",   "noRopeInterval",
                    "learnedPositions", "norm",           "norms",
                    "parallel",         "qkNorm",         "mlp",
                    "slidingWindow",    "windowPattern",  "kvHeads",
                    "ffnMultiple",      "embeddingScale", "attentionScale",
                    "activation",       "biases",         "encoder",
                    "tokenTypes",       "embeddingNorm",  "alibi"}))
    return;
  block.encoder = boolean(value, "encoder", "block");
  block.tokenTypes = boolean(value, "tokenTypes", "block");
  block.embeddingNorm = boolean(value, "embeddingNorm", "block");
  std::string layout = text(value, "rotaryLayout", "block");
  if (layout != "half" && layout != "interleaved" && layout != "none")
    fail("block.rotaryLayout: expected \"half\", \"interleaved\" or \"none\"");
  block.interleavedRotary = layout == "interleaved";
  block.rotates = layout != "none";
  block.rotaryLayers = static_cast<RotaryLayers>(
      choice(value, "rotaryLayers", "block", {"all", "listed", "sliding"}));
  block.noRopeInterval = count(value, "noRopeInterval", "block");
  block.learnedPositions = boolean(value, "learnedPositions", "block");
  if (value.contains("norm") &&
      checkObject(value["norm"], "block.norm", {"kind", "bias", "offset"})) {
    const Json &norm = value["norm"];
    block.norm = static_cast<NormKind>(
        choice(norm, "kind", "block.norm", {"rms", "layer"}));
    block.normBias = boolean(norm, "bias", "block.norm");
    block.normOffset = number(norm, "offset", "block.norm");
    if (block.norm == NormKind::Rms ? block.normBias : block.normOffset != 0)
      fail("block.norm: a bias belongs to kind \"layer\", an offset to "
           "\"rms\"");
  }
  if (value.contains("norms")) {
    block.norms.clear();
    for (const std::string &name : texts(value, "norms", "block")) {
      if (std::find(normNames.begin(), normNames.end(), name) ==
          normNames.end())
        fail("block.norms: unknown place " + quoteName(name));
      block.norms.insert(name);
    }
  }
  block.parallel = boolean(value, "parallel", "block");
  if (block.parallel &&
      (!block.norms.count("attn") || block.norms.count("attn_post") ||
       block.norms.count("ffn_post") || block.norms.count("attn_sum") ||
       block.norms.count("ffn_sum")))
    fail("block.norms: a parallel block has \"attn\", or \"attn\" and \"ffn\"");
  block.qkNorm = static_cast<QkNorm>(
      choice(value, "qkNorm", "block", {"none", "head", "ownHead", "row"}));
  std::size_t mlp =
      choice(value, "mlp", "block", {"gated", "plain", "experts"});
  block.gated = mlp != 1;
  block.experts = mlp == 2;
  std::string window = text(value, "slidingWindow", "block");
  if (window != "everyLayer" && window != "qwen" && window != "pattern")
    fail("block.slidingWindow: expected \"everyLayer\", \"qwen\" or "
         "\"pattern\"");
  block.window = window == "qwen"      ? WindowRule::Qwen
                 : window == "pattern" ? WindowRule::Pattern
                                       : WindowRule::EveryLayer;
  block.alibi = static_cast<AlibiRule>(
      choice(value, "alibi", "block", {"none", "exact", "rounded", "bias"}));
  if (block.alibi != AlibiRule::None && (block.rotates || block.encoder))
    fail("block.alibi: it is read where nothing rotates and each token looks "
         "back");
  block.windowPattern = count(value, "windowPattern", "block");
  if (block.encoder && (block.parallel || block.experts ||
                        block.window != WindowRule::EveryLayer))
    fail("block.encoder: parallel halves, experts and windows by layer are "
         "not read in one that looks both ways");
  block.kvHeads = count(value, "kvHeads", "block");
  block.ffnMultiple = count(value, "ffnMultiple", "block");
  block.scalesEmbedding =
      choice(value, "embeddingScale", "block", {"none", "rootOfHidden"}) == 1;
  block.attentionScale = number(value, "attentionScale", "block");
  if (value.contains("activation")) {
    const std::vector<std::string> names = {"silu", "gelu", "gelu_pytorch_tanh",
                                            "relu"};
    block.activation = names[choice(value, "activation", "block", names)];
  }
  if (!value.contains("biases") ||
      !checkObject(value["biases"], "block.biases", projections))
    return fail("block: key \"biases\" is missing or wrong");
  for (const std::string &name : projections) {
    std::string rule = text(value["biases"], name.c_str(), "block.biases");
    if (rule == "never")
      block.biases[name] = BiasRule::Never;
    else if (rule == "always")
      block.biases[name] = BiasRule::Always;
    else if (rule == "attentionBias")
      block.biases[name] = BiasRule::AttentionBias;
    else if (rule == "mlpBias")
      block.biases[name] = BiasRule::MlpBias;
    else
      fail("block.biases." + name +
           ": expected \"never\", \"always\", "
           "\"attentionBias\" or \"mlpBias\"");
  }
}

// The roles that a block of this kind needs.
std::vector<std::string> neededRoles(const BlockDescriptor &block,
                                     const RouteDescriptor &route) {
  std::vector<std::string> needed = {"embed"};
  if (!block.encoder)
    needed.insert(needed.end(), {"final_norm", "lm_head"});
  if (block.tokenTypes)
    needed.push_back("token_types");
  if (block.embeddingNorm) {
    needed.push_back("embed_norm");
    if (block.normBias)
      needed.push_back("embed_norm.bias");
  }
  if (block.learnedPositions)
    needed.push_back("positions");
  if (block.normBias && !block.encoder)
    needed.push_back("final_norm.bias");
  for (const std::string &name : block.norms) {
    needed.push_back("layer.{i}." + name + "_norm");
    if (block.normBias)
      needed.push_back("layer.{i}." + name + "_norm.bias");
  }
  bool mixed = false; // with layers without experts
  if (block.experts) {
    needed.push_back("layer.{i}.router");
    for (const auto &[key, rule] : route.keys)
      mixed |= rule.field == "sparseStep" || rule.field == "plainLayers";
  }
  if (block.qkNorm != QkNorm::None) {
    for (const std::string role : {"layer.{i}.q_norm", "layer.{i}.k_norm"})
      needed.push_back(route.tensors.count(role + ".{e}") ? role + ".{e}"
                                                          : role);
  }
  // A fused tensor stands for its parts.
  auto fusedRole = [&](const std::string &name) -> std::string {
    bool attention = name == "q" || name == "k" || name == "v";
    std::string fused = attention ? "qkv" : "gate_up";
    bool part = attention || name == "gate" || name == "up";
    return part && route.tensors.count("layer.{i}." + fused) ? fused : name;
  };
  for (const std::string &name : projections) {
    if (name == "gate" && !block.gated)
      continue;
    if (block.experts && (name == "gate" || name == "up" || name == "down")) {
      std::string stacked = "layer.{i}.experts." + name;
      needed.push_back(route.tensors.count(stacked)
                           ? stacked
                           : "layer.{i}.expert.{e}." + name);
      if (!mixed)
        continue;
    }
    std::string role = "layer.{i}." + fusedRole(name);
    needed.push_back(role);
    auto bias = block.biases.find(name);
    if (bias != block.biases.end() && bias->second != BiasRule::Never)
      needed.push_back(role + ".bias");
  }
  return needed;
}

// A route that can be taken feeds what every model has, and names the tensors
// that every block has.
void checkRoute(DescriptorParser &parser, const RouteDescriptor &route,
                const std::string &where) {
  if (route.names.empty())
    return;
  std::set<std::string> fed;
  for (const auto &[key, rule] : route.keys)
    if (rule.kind == KeyRule::Kind::Field)
      fed.insert(rule.field);
  for (const std::string &field : requiredFields)
    if (!fed.count(field) &&
        !(field == "ffnSize" && route.block.ffnMultiple > 0))
      parser.fail(where + ": no key feeds the field " + quoteName(field));
  if (!route.block.gated && route.block.biases.count("gate") &&
      route.block.biases.at("gate") != BiasRule::Never)
    parser.fail(where + ": a plain feed-forward has no gate to bias");
  for (const char *name : {"gate", "up", "down"})
    if (auto bias = route.block.biases.find(name);
        route.block.experts && bias != route.block.biases.end() &&
        bias->second != BiasRule::Never)
      parser.fail(where + ": experts have no biases");
  if (route.block.tokenTypes && !fed.count("tokenTypeCount"))
    parser.fail(where + ": no key feeds the field \"tokenTypeCount\"");
  for (const char *field : {"expertCount", "expertsPerToken"})
    if (route.block.experts && !fed.count(field))
      parser.fail(where + ": no key feeds the field " + quoteName(field));
  if (route.tensors.count("layer.{i}.gate_up") && !route.block.gated)
    parser.fail(where + ": a plain feed-forward has no role \"gate_up\"");
  for (const std::string &role : route.transposed)
    if (!route.tensors.count(role))
      parser.fail(where + ".transposed: role " + quoteName(role) +
                  " has no tensor");
  std::vector<std::string> needed = neededRoles(route.block, route);
  for (const std::string &role : needed)
    if (!route.tensors.count(role))
      parser.fail(where + ".tensors: role " + quoteName(role) + " is missing");
}

} // namespace

const KeyRule *findKeyRule(const KeyRules &rules, const std::string &key) {
  auto exact = rules.find(key);
  if (exact != rules.end())
    return &exact->second;
  const KeyRule *best = nullptr;
  std::size_t bestLength = 0;
  for (const auto &[pattern, rule] : rules)
    if (pattern.back() == '*' && pattern.size() > bestLength &&
        key.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) ==
            0) {
      best = &rule;
      bestLength = pattern.size();
    }
  return best;
}

// Everything but the cases.
static Result<Descriptor> parseWhole(const Json &json, const Json &common,
                                     const std::string &name) {
  Descriptor descriptor;
  DescriptorParser parser(name);
  if (!parser.checkObject(
          json, "descriptor",
          {"family", "about", "huggingface", "gguf", "block", "cases"}) ||
      !parser.checkObject(common, "shared", {"huggingface", "gguf"}))
    return parser.status();
  descriptor.family = parser.text(json, "family", "descriptor");
  descriptor.about = parser.text(json, "about", "descriptor");

  // The shared rules first, so that a family's own rule replaces them.
  RouteDescriptor sharedHuggingFace, sharedGguf;
  if (common.contains("huggingface")) {
    parser.route(common["huggingface"], "shared.huggingface", "config",
                 sharedHuggingFace);
    if (common["huggingface"].is_object() &&
        common["huggingface"].contains("generationConfig"))
      parser.keyRules(common["huggingface"]["generationConfig"],
                      "shared.huggingface.generationConfig",
                      descriptor.generationConfig);
  }
  if (common.contains("gguf"))
    parser.route(common["gguf"], "shared.gguf", "metadata", sharedGguf);
  if (json.contains("huggingface")) {
    parser.route(json["huggingface"], "huggingface", "config",
                 descriptor.huggingFace);
    if (json["huggingface"].is_object() &&
        json["huggingface"].contains("generationConfig"))
      parser.keyRules(json["huggingface"]["generationConfig"],
                      "huggingface.generationConfig",
                      descriptor.generationConfig);
  }
  if (json.contains("gguf"))
    parser.route(json["gguf"], "gguf", "metadata", descriptor.gguf);
  for (auto [from, to] :
       {std::pair(&sharedHuggingFace, &descriptor.huggingFace),
        std::pair(&sharedGguf, &descriptor.gguf)}) {
    to->keys.insert(from->keys.begin(), from->keys.end());
    to->ignoredTensors.insert(to->ignoredTensors.end(),
                              from->ignoredTensors.begin(),
                              from->ignoredTensors.end());
  }
  if (!json.contains("block"))
    parser.fail("descriptor: key \"block\" is missing");
  // A converter may have changed what a block needs.
  for (auto [key, route] : {std::pair("huggingface", &descriptor.huggingFace),
                            std::pair("gguf", &descriptor.gguf)}) {
    Json block = json.value("block", Json::object());
    if (json.contains(key) && json[key].is_object() &&
        json[key].contains("block"))
      block.merge_patch(json[key]["block"]);
    parser.block(block, route->block);
    checkRoute(parser, *route, key);
  }
  if (descriptor.huggingFace.names.empty() && descriptor.gguf.names.empty())
    parser.fail("descriptor: neither \"huggingface\" nor \"gguf\" has names");
  INGOT_RETURN_IF_ERROR(parser.status());
  descriptor.source = json;
  descriptor.shared = common;
  descriptor.name = name;
  return descriptor;
}

static Status parseCases(const Json &json, Descriptor &descriptor) {
  if (!json.is_array())
    return Status::invalid(descriptor.name + ": cases: expected an array");
  for (std::size_t i = 0; i < json.size(); ++i) {
    std::string where = descriptor.name + ": cases[" + std::to_string(i) + "]";
    const Json &entry = json[i];
    if (!entry.is_object() || !entry.contains("when") ||
        !entry["when"].is_object() || entry["when"].empty())
      return Status::invalid(where + ": expected an object with \"when\"");
    Descriptor::Case one;
    for (const auto &[key, value] : entry["when"].items()) {
      if (!knownFields.count(key) && !isFlag(key) &&
          key.rfind("tensor.", 0) != 0)
        return Status::invalid(where + ": unknown field " + quoteName(key));
      one.when[key] = value;
    }
    one.patch = entry;
    one.patch.erase("when");
    for (const auto &[key, value] : one.patch.items())
      if (key != "block" && key != "huggingface" && key != "gguf")
        return Status::invalid(where + ": unknown key " + quoteName(key));
    Json patched = descriptor.source;
    patched.merge_patch(one.patch);
    auto parsed = parseWhole(patched, descriptor.shared, where);
    if (!parsed)
      return parsed.status();
    descriptor.cases.push_back(std::move(one));
  }
  return Status::ok();
}

Result<Descriptor> parseDescriptor(std::string_view text,
                                   std::string_view shared,
                                   const std::string &name) {
  INGOT_ASSIGN_OR_RETURN(auto json, parseStrictJson(text, name));
  INGOT_ASSIGN_OR_RETURN(auto common,
                         parseStrictJson(shared, name + " (shared rules)"));
  INGOT_ASSIGN_OR_RETURN(auto descriptor, parseWhole(json, common, name));
  if (json.contains("cases"))
    INGOT_RETURN_IF_ERROR(parseCases(json["cases"], descriptor));
  return descriptor;
}

Result<Descriptor> resolveCases(const Descriptor &descriptor,
                                const FindField &find,
                                const std::set<std::string> &tensors) {
  const std::string tensorMark = "tensor.";
  auto holds = [&](const std::string &key, const Json &value) {
    if (key.rfind(tensorMark, 0) == 0)
      return value == Json(tensors.count(key.substr(tensorMark.size())) > 0);
    const Json *found = find(key);
    return value == (found ? *found : Json(false));
  };
  Json source = descriptor.source;
  bool patched = false;
  for (const Descriptor::Case &one : descriptor.cases)
    if (std::all_of(one.when.begin(), one.when.end(), [&](const auto &entry) {
          return holds(entry.first, entry.second);
        })) {
      source.merge_patch(one.patch);
      patched = true;
    }
  if (!patched)
    return descriptor;
  return parseWhole(source, descriptor.shared, descriptor.name);
}

namespace {

std::string_view sharedDescriptor() {
  for (const EmbeddedDescriptor &file : embeddedDescriptors())
    if (std::string_view(file.name) == "shared.json")
      return file.text;
  return {};
}

Result<DescriptorList> parseEmbedded() {
  DescriptorList descriptors;
  for (const EmbeddedDescriptor &file : embeddedDescriptors()) {
    if (std::string_view(file.name) == "shared.json" ||
        std::string_view(file.name) == "wrappers.json")
      continue;
    INGOT_ASSIGN_OR_RETURN(
        auto descriptor,
        parseDescriptor(file.text, sharedDescriptor(), file.name));
    descriptors.push_back(
        std::make_shared<const Descriptor>(std::move(descriptor)));
  }
  return descriptors;
}

} // namespace

Result<DescriptorList>
loadDescriptors(const std::vector<std::string> &userPaths) {
  // Parsed once: the embedded texts do not change.
  static const Result<DescriptorList> embedded = parseEmbedded();
  INGOT_RETURN_IF_ERROR(embedded.status());
  DescriptorList descriptors;
  for (const std::string &path : userPaths) {
    INGOT_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
    std::string_view text(reinterpret_cast<const char *>(file.bytes().data()),
                          file.bytes().size());
    INGOT_ASSIGN_OR_RETURN(auto descriptor,
                           parseDescriptor(text, sharedDescriptor(), path));
    descriptors.push_back(
        std::make_shared<const Descriptor>(std::move(descriptor)));
  }
  descriptors.insert(descriptors.end(), embedded->begin(), embedded->end());
  return descriptors;
}

std::string expandPattern(const std::string &pattern, std::int64_t layer,
                          std::int64_t expert) {
  std::string text = pattern;
  for (auto [mark, number] : {std::pair("{i}", layer), {"{e}", expert}})
    if (std::size_t at = text.find(mark); at != std::string::npos)
      text.replace(at, 3, std::to_string(number));
  return text;
}

bool matchesPattern(const std::string &pattern, const std::string &name) {
  std::size_t at = pattern.find("{i}");
  if (at == std::string::npos)
    return pattern == name;
  std::size_t tail = pattern.size() - at - 3;
  if (name.size() <= at + tail || name.compare(0, at, pattern, 0, at) != 0 ||
      name.compare(name.size() - tail, tail, pattern, at + 3, tail) != 0)
    return false;
  std::string number = name.substr(at, name.size() - at - tail);
  return std::all_of(number.begin(), number.end(),
                     [](char c) { return c >= '0' && c <= '9'; }) &&
         (number == "0" || number[0] != '0');
}

} // namespace ingot
