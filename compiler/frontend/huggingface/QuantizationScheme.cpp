#include "compiler/frontend/huggingface/QuantizationScheme.h"

#include "compiler/frontend/StrictJson.h"

#include <set>

namespace ingot {

using Json = nlohmann::json;

std::optional<std::int64_t> integerWithin(const Json &value, std::int64_t least,
                                          std::int64_t most) {
  if (!value.is_number_integer())
    return std::nullopt;
  // Above 63 bits a comparison of JSON numbers would wrap.
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return number < least || number > most ? std::nullopt : std::optional(number);
}

std::optional<std::pair<std::int64_t, std::int64_t>>
readBlock(const Json &value) {
  if (!value.is_array() || value.size() != 2)
    return std::nullopt;
  auto rows = integerWithin(value[0], 1, maxGroupSize);
  auto columns = integerWithin(value[1], 1, maxGroupSize);
  if (!rows || !columns)
    return std::nullopt;
  return std::pair(*rows, *columns);
}

std::optional<QuantizationScheme>
readQuantizationScheme(const std::string &name, const Json &entry,
                       ImportProblems &problems) {
  auto fault = [&](const std::string &message) {
    problems.add(badQuantizationConfig,
                 "config_groups " + quoteName(name) + ": " + message);
    return std::nullopt;
  };
  if (!entry.is_object())
    return fault("expected an object");
  for (const auto &item : entry.items())
    if (item.key() != "targets" && item.key() != "weights" &&
        item.key() != "input_activations" &&
        item.key() != "output_activations" && item.key() != "format")
      return fault("unknown key " + quoteName(item.key()));
  auto weights = entry.find("weights");
  if (weights == entry.end() || !weights->is_object())
    return fault("expected an object \"weights\"");
  static const std::set<std::string> known = {
      "num_bits",        "type",    "symmetric", "strategy", "group_size",
      "block_structure", "dynamic", "actorder",  "observer", "observer_kwargs",
      "scale_dtype",     "zp_dtype"};
  for (const auto &item : weights->items())
    if (!known.count(item.key()))
      return fault("unknown key " + quoteName(item.key()) + " of weights");
  QuantizationScheme scheme;
  const Json &bits = weights->value("num_bits", Json(8));
  const Json &type = weights->value("type", Json("int"));
  const Json &strategy = weights->value("strategy", Json(nullptr));
  const Json &group = weights->value("group_size", Json(nullptr));
  auto numBits = integerWithin(bits, 1, 64);
  if (!numBits)
    return fault("num_bits is " + jsonForMessage(bits));
  scheme.bits = *numBits;
  scheme.isFloat = type == "float";
  if (!scheme.isFloat && type != "int")
    return fault("type is " + jsonForMessage(type));
  if (scheme.isFloat ? scheme.bits != 8
                     : scheme.bits != 2 && scheme.bits != 4 && scheme.bits != 8)
    return fault("weights of " + std::to_string(scheme.bits) + " bits of " +
                 type.get<std::string>() + " are not read");
  if (strategy == "tensor") {
    scheme.scales = QuantizationScheme::Scales::Tensor;
  } else if (strategy == "channel") {
    scheme.scales = QuantizationScheme::Scales::Channel;
  } else if (strategy == "group" || (strategy.is_null() && !group.is_null())) {
    scheme.scales = QuantizationScheme::Scales::Group;
    auto size = integerWithin(group, -1, maxGroupSize);
    if (!size || *size == 0)
      return fault("group_size is " + jsonForMessage(group));
    scheme.group = *size;
    if (scheme.group == -1) {
      scheme.scales = QuantizationScheme::Scales::Channel;
      scheme.group = 0;
    }
  } else if (strategy == "block") {
    scheme.scales = QuantizationScheme::Scales::Block;
    const Json &block = weights->value("block_structure", Json(nullptr));
    auto sides = readBlock(block);
    if (!sides)
      return fault("block_structure is " + jsonForMessage(block));
    scheme.blockRows = sides->first;
    scheme.group = sides->second;
  } else {
    return fault("strategy is " + jsonForMessage(strategy));
  }
  return scheme;
}

} // namespace ingot
