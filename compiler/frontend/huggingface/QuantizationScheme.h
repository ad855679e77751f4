// How the weights of a group of modules are quantised: an entry of
// "config_groups" of compressed-tensors, in whose words the other methods are
// told too.
#pragma once

#include "compiler/frontend/SpecFields.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace ingot {

inline constexpr const char *badQuantizationConfig =
    "unsupported quantization_config values";

struct QuantizationScheme {
  std::int64_t bits = 0;
  bool isFloat = false;
  enum class Scales { Tensor, Channel, Group, Block } scales = Scales::Channel;
  std::int64_t group = 0;
  std::int64_t blockRows = 0;
};

// An integer of the range, and nothing that is only like one.
std::optional<std::int64_t> integerWithin(const nlohmann::json &value,
                                          std::int64_t least,
                                          std::int64_t most);

// [rows, columns] of a block of scales.
std::optional<std::pair<std::int64_t, std::int64_t>>
readBlock(const nlohmann::json &value);

// Largest group or block that is taken for one.
inline constexpr std::int64_t maxGroupSize = 1 << 24;

// Adds to the problems what is unknown or not read.
std::optional<QuantizationScheme>
readQuantizationScheme(const std::string &name, const nlohmann::json &entry,
                       ImportProblems &problems);

} // namespace ingot
