#include "runtime/serve/JsonFields.h"

#include <cmath>

namespace ingot::serve {
namespace {

// Deeper than any real request.
constexpr int kMaxDepth = 64;
// Of one object. They are kept in order, so each costs a look at all before it.
constexpr std::size_t kMostKeys = 1024;
// A name in an error message: a client may send megabytes of it.
constexpr std::size_t kShownName = 64;

std::string shown(const std::string &name) {
  if (name.size() <= kShownName)
    return name;
  std::size_t end = kShownName;
  while (end > 0 && (name[end] & 0xC0) == 0x80)
    --end;
  return name.substr(0, end) + "...";
}

} // namespace

void failField(const std::string &field, const std::string &what) {
  throw ApiFailure{ApiError::invalid(field + ": " + what, field)};
}

const char *kindOf(const Json &value) {
  switch (value.type()) {
  case Json::value_t::null:
    return "null";
  case Json::value_t::object:
    return "an object";
  case Json::value_t::array:
    return "a list";
  case Json::value_t::string:
    return "a string";
  case Json::value_t::boolean:
    return "a boolean";
  case Json::value_t::number_integer:
  case Json::value_t::number_unsigned:
    return "an integer";
  case Json::value_t::number_float:
    // Integers beyond 64 bits are read as floats.
    return std::abs(value.get<double>()) >= 0x1p63
               ? "a number of more than 64 bits"
               : "a number with a fraction or exponent";
  default:
    return "something else";
  }
}

std::string dumpJson(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parseJsonObject(std::string_view body) {
  using Event = Json::parse_event_t;
  std::vector<std::set<std::string>> keys;
  auto check = [&](int depth, Event event, Json &value) {
    if (depth > kMaxDepth)
      throw ApiFailure{ApiError::invalid("the body is nested deeper than " +
                                         std::to_string(kMaxDepth))};
    if (event == Event::object_start)
      keys.emplace_back();
    else if (event == Event::object_end)
      keys.pop_back();
    else if (event == Event::key && keys.back().size() == kMostKeys)
      throw ApiFailure{
          ApiError::invalid("an object of the body has more than " +
                            std::to_string(kMostKeys) + " keys")};
    else if (event == Event::key &&
             !keys.back().insert(value.get<std::string>()).second)
      throw ApiFailure{ApiError::invalid("the key \"" +
                                         shown(value.get<std::string>()) +
                                         "\" is there twice")};
    return true;
  };
  Json value;
  try {
    value = Json::parse(body.begin(), body.end(), check);
  } catch (const Json::parse_error &error) {
    throw ApiFailure{
        ApiError::invalid("the body is not valid JSON (at byte " +
                          std::to_string(error.byte > 0 ? error.byte - 1 : 0) +
                          " of " + std::to_string(body.size()) + ")")};
  } catch (const Json::exception &) {
    throw ApiFailure{
        ApiError::invalid("the body holds a number that is out of range")};
  }
  if (!value.is_object())
    throw ApiFailure{ApiError::invalid(
        std::string("the body is expected to be an object, found ") +
        kindOf(value))};
  return value;
}

std::int64_t integerOf(const Json &value, const std::string &field,
                       std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer())
    failField(field,
              std::string("expected an integer, found ") + kindOf(value));
  bool isTooLarge = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() > std::uint64_t(INT64_MAX);
  if (isTooLarge || value.get<std::int64_t>() < low ||
      value.get<std::int64_t>() > high)
    failField(field, "is " + value.dump() + ", expected " +
                         std::to_string(low) + " to " + std::to_string(high));
  return value.get<std::int64_t>();
}

FieldReader::FieldReader(const Json &object, std::string path)
    : object_(object), path_(std::move(path)) {}

const Json *FieldReader::take(const char *name) {
  taken_.insert(name);
  auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> FieldReader::boolean(const char *name) {
  const Json *value = take(name);
  if (!value)
    return std::nullopt;
  if (!value->is_boolean())
    failField(pathOf(name),
              std::string("expected a boolean, found ") + kindOf(*value));
  return value->get<bool>();
}

std::optional<double> FieldReader::number(const char *name) {
  const Json *value = take(name);
  if (!value)
    return std::nullopt;
  if (!value->is_number())
    failField(pathOf(name),
              std::string("expected a number, found ") + kindOf(*value));
  return value->get<double>();
}

std::optional<std::int64_t>
FieldReader::integer(const char *name, std::int64_t low, std::int64_t high) {
  const Json *value = take(name);
  if (!value)
    return std::nullopt;
  return integerOf(*value, pathOf(name), low, high);
}

std::optional<std::string> FieldReader::string(const char *name) {
  const Json *value = take(name);
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    failField(pathOf(name),
              std::string("expected a string, found ") + kindOf(*value));
  return value->get<std::string>();
}

void FieldReader::refuse(const char *name, const char *why) {
  if (take(name))
    throw ApiFailure{ApiError::unsupported(pathOf(name), why)};
}

void FieldReader::refuseUnless(const char *name, const Json &neutral) {
  const Json *value = take(name);
  if (value && *value != neutral)
    throw ApiFailure{ApiError::unsupported(
        pathOf(name), "is not supported here, except as " + neutral.dump())};
}

void FieldReader::finish() const {
  for (const auto &[name, value] : object_.items())
    if (!taken_.count(name)) {
      std::string field = path_ + shown(name);
      throw ApiFailure{ApiError::invalid(field + ": no such field is known",
                                         field, "unknown_parameter")};
    }
}

} // namespace ingot::serve
