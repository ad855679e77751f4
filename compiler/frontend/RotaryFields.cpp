#include "compiler/frontend/RotaryFields.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t maxInt = 2147483647;

// What holds for an object beside its own keys.
struct Surroundings {
  std::int64_t contextLength = 0;
  std::optional<std::int64_t> originalLength;
};

// Reads one rope_scaling or rope_parameters object.
class RotaryReader {
public:
  RotaryReader(SpecFields &fields, const std::string &field, const Json &json,
               const Surroundings &around, RotarySpec &rotary)
      : fields_(fields), field_(field), json_(json), around_(around),
        rotary_(rotary) {}

  bool read(std::optional<double> &theta, std::optional<double> &partial);

private:
  bool fault(const std::string &message) {
    fields_.fault(field_, message);
    return false;
  }
  bool has(const char *key) const {
    return json_.contains(key) && !json_[key].is_null();
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
  bool optionalNumber(const char *key, double low, double &result) {
    return !has(key) || number(key, low, result);
  }
  bool numbers(const char *key, std::vector<double> &result) {
    if (!json_.contains(key))
      return fault(std::string("key \"") + key + "\" is missing");
    const Json &list = json_[key];
    if (!list.is_array() || list.empty() || list.size() > 4096)
      return fault(std::string("\"") + key + "\": expected a list of numbers");
    for (const Json &value : list) {
      if (!value.is_number() || !(value.get<double>() > 0.0) ||
          !std::isfinite(value.get<double>()))
        return fault(std::string("\"") + key +
                     "\": expected positive numbers, found " +
                     jsonForMessage(value));
      result.push_back(value.get<double>());
    }
    return true;
  }
  bool readType(std::string &type);
  bool readOriginal(bool required);
  bool readLlama3();
  bool readYarn();
  bool readLongRope();

  SpecFields &fields_;
  std::string field_;
  const Json &json_;
  const Surroundings &around_;
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
    if (value == "su") // what longrope was called at first
      value = "longrope";
    if (found && value != type)
      return fault("\"rope_type\" and \"type\" contradict each other");
    type = value;
    found = true;
  }
  return true;
}

// The length before scaling: in the object, beside it, or the context length.
bool RotaryReader::readOriginal(bool required) {
  const char *key = "original_max_position_embeddings";
  if (!required && !has(key)) {
    rotary_.originalContextLength =
        around_.originalLength.value_or(around_.contextLength);
    return true;
  }
  double original = 0;
  if (!number(key, 1, original))
    return false;
  if (original != std::floor(original) || original > double(maxInt))
    return fault(std::string("\"") + key + "\": expected an integer");
  rotary_.originalContextLength = static_cast<std::int64_t>(original);
  if (around_.originalLength &&
      *around_.originalLength != rotary_.originalContextLength)
    return fault(std::string("\"") + key + "\" contradicts " +
                 quoteName(fields_.keyOf("ropeOriginalLength")));
  return true;
}

bool RotaryReader::readLlama3() {
  if (!number("factor", 1e-6, rotary_.factor) ||
      !number("low_freq_factor", 1e-6, rotary_.lowFreqFactor) ||
      !number("high_freq_factor", 1e-6, rotary_.highFreqFactor) ||
      !readOriginal(/*required=*/true))
    return false;
  if (rotary_.highFreqFactor <= rotary_.lowFreqFactor)
    return fault("\"high_freq_factor\" must be above \"low_freq_factor\"");
  return true;
}

bool RotaryReader::readYarn() {
  if (!number("factor", 1e-6, rotary_.factor) || !readOriginal(false) ||
      !optionalNumber("beta_fast", 1e-6, rotary_.betaFast) ||
      !optionalNumber("beta_slow", 1e-6, rotary_.betaSlow))
    return false;
  if (has("truncate")) {
    if (!json_["truncate"].is_boolean())
      return fault("\"truncate\": expected true or false");
    rotary_.truncates = json_["truncate"].get<bool>();
  }
  auto magnitude = [&](double scale) {
    return rotary_.factor <= 1.0 ? 1.0
                                 : 0.1 * scale * std::log(rotary_.factor) + 1.0;
  };
  double scale = 0, scaleAllDim = 0;
  if (!optionalNumber("mscale", 0, scale) ||
      !optionalNumber("mscale_all_dim", 0, scaleAllDim))
    return false;
  rotary_.attentionFactor = scale != 0 && scaleAllDim != 0
                                ? magnitude(scale) / magnitude(scaleAllDim)
                                : magnitude(1.0);
  return optionalNumber("attention_factor", 1e-6, rotary_.attentionFactor);
}

bool RotaryReader::readLongRope() {
  if (!readOriginal(false) || !numbers("short_factor", rotary_.shortFactors) ||
      !numbers("long_factor", rotary_.longFactors))
    return false;
  rotary_.factor =
      double(around_.contextLength) /
      double(std::max<std::int64_t>(rotary_.originalContextLength, 1));
  if (!optionalNumber("factor", 1e-6, rotary_.factor))
    return false;
  rotary_.attentionFactor =
      rotary_.factor <= 1.0
          ? 1.0
          : std::sqrt(1.0 +
                      std::log(rotary_.factor) /
                          std::log(double(rotary_.originalContextLength)));
  if (rotary_.originalContextLength < 2)
    return fault("the original length must be 2 or more");
  return optionalNumber("attention_factor", 1e-6, rotary_.attentionFactor);
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
  const char *original = "original_max_position_embeddings";
  bool good = true;
  if (type == "default") {
    rotary_.kind = RotaryKind::Default;
  } else if (type == "linear") {
    rotary_.kind = RotaryKind::Linear;
    known.push_back("factor");
    good = number("factor", 1e-6, rotary_.factor);
  } else if (type == "llama3") {
    rotary_.kind = RotaryKind::Llama3;
    known.insert(known.end(),
                 {"factor", "low_freq_factor", "high_freq_factor", original});
    good = readLlama3();
  } else if (type == "yarn") {
    rotary_.kind = RotaryKind::Yarn;
    known.insert(known.end(),
                 {"factor", "beta_fast", "beta_slow", "truncate", "mscale",
                  "mscale_all_dim", "attention_factor", original});
    good = readYarn();
  } else if (type == "dynamic") {
    rotary_.kind = RotaryKind::Dynamic;
    known.insert(known.end(), {"factor", original});
    // Always the context length that the config states: HF reads no other.
    good = number("factor", 1e-6, rotary_.factor);
    rotary_.originalContextLength = around_.contextLength;
    if (good && has(original) && json_[original] != around_.contextLength)
      good = fault(std::string("\"") + original +
                   "\": expected the context length " +
                   std::to_string(around_.contextLength));
  } else if (type == "longrope") {
    rotary_.kind = RotaryKind::LongRope;
    known.insert(known.end(), {"short_factor", "long_factor", "factor",
                               "attention_factor", original});
    good = readLongRope();
  } else {
    fields_.problems().add("unsupported rotary types",
                           quoteName(type) + " in " +
                               quoteName(fields_.keyOf(field_)) +
                               " (default, linear, dynamic, llama3, yarn and "
                               "longrope are read)");
    return false;
  }
  for (const auto &item : json_.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      good = fault("key " + quoteName(item.key()) + " is not known to type \"" +
                   type + "\"");
  double value = 0;
  if (has("rope_theta") && (good &= number("rope_theta", 1e-6, value)))
    theta = value;
  if (has("partial_rotary_factor") &&
      (good &= number("partial_rotary_factor", 1e-6, value)))
    partial = value;
  return good;
}

// GGUF spells the same in separate keys.
bool readGgufScaling(SpecFields &fields, const Surroundings &around,
                     RotarySpec &rotary) {
  if (auto attention = fields.number("ropeAttentionFactor", 1e-6, 1e6))
    rotary.attentionFactor = *attention;
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
  if (*type != "linear" && *type != "yarn") {
    fields.problems().add("unsupported rotary types",
                          quoteName(*type) + " in " +
                              quoteName(fields.keyOf("ropeScalingType")) +
                              " (none, linear and yarn are read)");
    return false;
  }
  auto factor = fields.number("ropeScalingFactor", 1e-6, 1e9);
  if (!factor) {
    if (!fields.has("ropeScalingFactor"))
      fields.fault("ropeScalingType", "there is no scaling factor with it");
    return false;
  }
  rotary.kind = *type == "linear" ? RotaryKind::Linear : RotaryKind::Yarn;
  rotary.factor = *factor;
  if (*type == "yarn") {
    rotary.originalContextLength =
        around.originalLength.value_or(around.contextLength);
    rotary.attentionFactor *=
        *factor <= 1.0 ? 1.0 : 0.1 * std::log(*factor) + 1.0;
  }
  return true;
}

// Whether the object has a part for each kind of layer.
bool isByLayerType(const Json &json) {
  return json.is_object() && (json.contains("full_attention") ||
                              json.contains("sliding_attention"));
}

} // namespace

RotaryFields readRotaryFields(SpecFields &fields, const BlockDescriptor &block,
                              std::int64_t contextLength) {
  RotaryFields read;
  Surroundings around{contextLength,
                      fields.integer("ropeOriginalLength", 1, maxInt)};
  RotarySpec base;
  base.layout =
      block.interleavedRotary ? RotaryLayout::Interleaved : RotaryLayout::Half;
  read.full = read.sliding = base;

  const Json *scaling = fields.find("ropeScaling");
  const Json *parameters = fields.find("ropeParameters");
  if (scaling && parameters && *scaling != *parameters) {
    fields.fault("ropeScaling",
                 "contradicts " + quoteName(fields.keyOf("ropeParameters")));
    read.good = false;
    return read;
  }
  // Null and {} say nothing; anything else must be an object.
  auto says = [](const Json *json) {
    return json && !(json->empty() && !json->is_array());
  };
  std::optional<double> theta, partial, slidingTheta, slidingPartial;
  const char *field = says(parameters) ? "ropeParameters" : "ropeScaling";
  const Json *object = says(parameters) ? parameters
                       : says(scaling)  ? scaling
                                        : nullptr;
  auto outerTheta = fields.number("ropeTheta", 1e-6, 1e15);
  auto localTheta = fields.number("ropeLocalTheta", 1e-6, 1e15);
  bool byType = object && isByLayerType(*object);
  if (byType) {
    for (const auto &item : object->items()) {
      bool isFull = item.key() == "full_attention";
      if (!isFull && item.key() != "sliding_attention") {
        fields.fault(field, "unknown kind of layer " + quoteName(item.key()));
        read.good = false;
        continue;
      }
      read.good &= RotaryReader(fields, field, item.value(), around,
                                isFull ? read.full : read.sliding)
                       .read(isFull ? theta : slidingTheta,
                             isFull ? partial : slidingPartial);
    }
  } else if (object) {
    read.good = RotaryReader(fields, field, *object, around, read.full)
                    .read(theta, partial);
  }
  read.good &= readGgufScaling(fields, around, read.full);

  // The object's own value stands; the key beside it is the older place.
  auto outerPartial = fields.number("partialRotaryFactor", 1e-6, 1.0);
  read.full.theta =
      static_cast<float>(theta.value_or(outerTheta.value_or(10000.0)));
  read.fullPartial = partial.value_or(outerPartial.value_or(1.0));
  // Layers with a window have their own base, unscaled, where one is given.
  if (!byType) {
    if (!localTheta)
      read.sliding = read.full;
    else
      read.sliding.theta = static_cast<float>(*localTheta);
    read.slidingPartial = read.fullPartial;
  } else {
    read.sliding.theta = static_cast<float>(slidingTheta.value_or(
        localTheta.value_or(outerTheta.value_or(10000.0))));
    read.slidingPartial = slidingPartial.value_or(outerPartial.value_or(1.0));
  }
  if (read.fullPartial > 1.0 || read.slidingPartial > 1.0) {
    fields.fault("ropeParameters",
                 "\"partial_rotary_factor\": expected at most 1");
    read.good = false;
  }
  return read;
}

std::int64_t stretchedContext(const RotarySpec &rotary,
                              std::int64_t contextLength) {
  bool stretches =
      rotary.kind == RotaryKind::Dynamic || rotary.kind == RotaryKind::Yarn;
  if (!stretches)
    return contextLength;
  double stretched = double(rotary.originalContextLength) * rotary.factor;
  return std::max(contextLength, static_cast<std::int64_t>(
                                     std::min(stretched, double(maxInt))));
}

} // namespace ingot
