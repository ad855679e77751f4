// JSON bodies, strictly: the fields of an object are taken one by one with
// their types and ranges; what nobody has taken in the end is an error that
// names it. Everything here throws ApiFailure.
#pragma once

#include "runtime/serve/ApiError.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::serve {

using Json = nlohmann::ordered_json;

// An object; of limited depth, without a key twice, in valid UTF-8.
Json parseJsonObject(std::string_view body);

// Invalid UTF-8 cannot come up here, but must not end the program if it did.
std::string dumpJson(const Json &value);

class FieldReader {
public:
  // `path` stands before each name in messages: "stream_options.".
  explicit FieldReader(const Json &object, std::string path = {});

  // Null where the field is absent or null, which mean the same.
  const Json *take(const char *name);

  std::optional<bool> boolean(const char *name);
  std::optional<double> number(const char *name);
  std::optional<std::int64_t> integer(const char *name, std::int64_t low,
                                      std::int64_t high);
  std::optional<std::string> string(const char *name);

  // What is known and not done here: any value but null is refused.
  void refuse(const char *name, const char *why = "is not supported here");
  // Likewise, except for the value that changes nothing.
  void refuseUnless(const char *name, const Json &neutral);

  // Every field must have been taken by now.
  void finish() const;

  std::string pathOf(const std::string &name) const { return path_ + name; }

private:
  const Json &object_;
  std::string path_;
  std::set<std::string> taken_;
};

[[noreturn]] void failField(const std::string &field, const std::string &what);
// "a string", "an integer", ...: what the value is, for messages.
const char *kindOf(const Json &value);
// An integer of JSON inside the range; a number with a fraction or an exponent
// is not one.
std::int64_t integerOf(const Json &value, const std::string &field,
                       std::int64_t low, std::int64_t high);

} // namespace ingot::serve
