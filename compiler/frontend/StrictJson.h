// JSON as the importers read it: hostile text. A key given twice is refused
// (which of the two a reader takes is anybody's guess), nesting is limited, and
// nothing may follow the value. Never throws.
#pragma once

#include "runtime/support/Status.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace ingot {

struct JsonLimits {
  std::size_t maxDepth = 64;
};

// `name` stands for the text in messages.
Result<nlohmann::json> parseStrictJson(std::string_view text,
                                       const std::string &name,
                                       const JsonLimits &limits = {});

// `value` as one line of JSON for a message, cut after 80 characters.
std::string jsonForMessage(const nlohmann::json &value);

// A name from a file for a message: quoted, with what does not print escaped.
std::string quoteName(std::string_view name);

} // namespace ingot
