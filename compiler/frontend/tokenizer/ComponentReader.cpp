#include "compiler/frontend/tokenizer/ComponentReader.h"

#include <algorithm>

namespace ingot {

using Json = nlohmann::json;

Result<ComponentReader> ComponentReader::create(const Json &value,
                                                std::string path) {
  if (!value.is_object())
    return Status::invalid(path + ": expected an object, found " +
                           jsonForMessage(value));
  return ComponentReader(value, std::move(path));
}

Status
ComponentReader::allowOnly(std::initializer_list<std::string_view> keys) const {
  for (const auto &[key, value] : value_->items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return unsupported("unknown key " + quoteName(key));
  return Status::ok();
}

bool ComponentReader::has(std::string_view key) const {
  auto it = value_->find(std::string(key));
  return it != value_->end() && !it->is_null();
}

Status ComponentReader::wrongKind(std::string_view key,
                                  const char *expected) const {
  auto it = value_->find(std::string(key));
  return invalid("\"" + std::string(key) + "\": expected " + expected +
                 ", found " +
                 (it == value_->end() ? "nothing" : jsonForMessage(*it)));
}

Result<std::string> ComponentReader::string(std::string_view key) const {
  if (!has(key) || !at(key).is_string())
    return wrongKind(key, "a string");
  return at(key).get<std::string>();
}

Result<bool> ComponentReader::boolean(std::string_view key) const {
  if (!has(key) || !at(key).is_boolean())
    return wrongKind(key, "true or false");
  return at(key).get<bool>();
}

Result<bool> ComponentReader::boolean(std::string_view key, bool absent) const {
  return has(key) ? boolean(key) : Result<bool>(absent);
}

Result<int64_t> ComponentReader::integer(std::string_view key) const {
  if (!has(key) || !at(key).is_number_integer() ||
      (at(key).is_number_unsigned() && at(key).get<uint64_t>() > INT64_MAX))
    return wrongKind(key, "an integer");
  return at(key).get<int64_t>();
}

Result<ComponentReader> ComponentReader::object(std::string_view key) const {
  if (!has(key) || !at(key).is_object())
    return wrongKind(key, "an object");
  return ComponentReader(at(key), path_ + "." + std::string(key));
}

Result<const Json *> ComponentReader::array(std::string_view key) const {
  if (!has(key) || !at(key).is_array())
    return wrongKind(key, "an array");
  return &at(key);
}

} // namespace ingot
