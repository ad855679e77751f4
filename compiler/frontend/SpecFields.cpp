#include "compiler/frontend/SpecFields.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <cmath>

namespace ingot {

using Json = nlohmann::json;

void ImportProblems::add(const std::string &kind, const std::string &item) {
  for (auto &[name, items] : kinds_)
    if (name == kind) {
      items.push_back(item);
      return;
    }
  kinds_.push_back({kind, {item}});
}

Status ImportProblems::status(const std::string &where,
                              const std::string &family) const {
  std::string message = where + ": cannot be imported as " + family + ":";
  bool unsupported = true;
  for (const auto &[kind, items] : kinds_) {
    unsupported &= kind.rfind("unsupported", 0) == 0;
    message += "\n  " + kind + ": ";
    for (std::size_t i = 0; i < items.size(); ++i)
      message += (i ? ", " : "") + items[i];
  }
  return unsupported ? Status::unsupported(message) : Status::invalid(message);
}

static std::string expandArch(const std::string &key, const std::string &arch) {
  const std::string mark = "{arch}";
  if (key.compare(0, mark.size(), mark) != 0)
    return key;
  return arch + key.substr(mark.size());
}

// 1. each key by its rule, 2. what required keys are missing, 3. defaults.
void SpecFields::apply(const KeyRules &rules, const Json &config,
                       const std::string &what, const std::string &arch) {
  KeyRules expanded;
  for (const auto &[key, rule] : rules)
    expanded[expandArch(key, arch)] = rule;
  for (const auto &item : config.items()) {
    const KeyRule *rule = findKeyRule(expanded, item.key());
    const Json &value = item.value();
    if (!rule) {
      problems_.add("unknown " + what + " keys", quoteName(item.key()));
      continue;
    }
    switch (rule->kind) {
    case KeyRule::Kind::Ignore:
      break;
    case KeyRule::Kind::Expect:
      if (std::find(rule->expected.begin(), rule->expected.end(), value) ==
          rule->expected.end())
        problems_.add("unsupported " + what + " values",
                      quoteName(item.key()) + " is " + jsonForMessage(value) +
                          ", expected one of " +
                          jsonForMessage(rule->expected) + " (" + rule->why +
                          ")");
      break;
    case KeyRule::Kind::Field: {
      const Json &taken = value.is_null() ? rule->nullValue : value;
      if (taken.is_null())
        break;
      auto found = values_.find(rule->field);
      if (found != values_.end() && found->second.json != taken)
        problems_.add("contradictory " + what + " keys",
                      quoteName(found->second.key) + " and " +
                          quoteName(item.key()));
      set(rule->field, taken, item.key());
      break;
    }
    }
  }
  for (const auto &[key, rule] : expanded) {
    if (rule.kind != KeyRule::Kind::Field || has(rule.field))
      continue;
    std::string &keys = missing_[rule.field];
    keys += (keys.empty() ? "" : " or ") + quoteName(key);
    if (rule.required) {
      problems_.add("missing " + what + " keys", quoteName(key));
      reported_.insert(rule.field);
    } else if (!rule.defaultValue.is_null())
      set(rule.field, rule.defaultValue, key);
  }
}

void SpecFields::require(const std::string &field) {
  if (has(field) || !reported_.insert(field).second)
    return;
  auto keys = missing_.find(field);
  problems_.add("missing keys", keys == missing_.end() ? field : keys->second);
}

void SpecFields::set(const std::string &field, Json value,
                     const std::string &key) {
  values_[field] = {std::move(value), key};
}

const Json *SpecFields::find(const std::string &field) const {
  auto found = values_.find(field);
  return found == values_.end() ? nullptr : &found->second.json;
}

std::string SpecFields::keyOf(const std::string &field) const {
  auto found = values_.find(field);
  return found == values_.end() ? field : found->second.key;
}

void SpecFields::fault(const std::string &field, const std::string &message) {
  const Json *value = find(field);
  problems_.add("wrong values",
                quoteName(keyOf(field)) + ": " + message +
                    (value ? ", found " + jsonForMessage(*value) : ""));
}

static bool readInteger(const Json &value, std::int64_t low, std::int64_t high,
                        std::int64_t &result) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<std::uint64_t>() > std::uint64_t(INT64_MAX)))
    return false;
  result = value.get<std::int64_t>();
  return result >= low && result <= high;
}

std::optional<std::int64_t> SpecFields::integer(const std::string &field,
                                                std::int64_t low,
                                                std::int64_t high) {
  const Json *value = find(field);
  if (!value)
    return std::nullopt;
  std::int64_t result = 0;
  if (readInteger(*value, low, high, result))
    return result;
  fault(field, "expected an integer from " + std::to_string(low) + " to " +
                   std::to_string(high));
  return std::nullopt;
}

std::vector<std::int64_t> SpecFields::integers(const std::string &field,
                                               std::int64_t layers,
                                               std::int64_t low,
                                               std::int64_t high) {
  const Json *value = find(field);
  if (!value)
    return {};
  std::vector<std::int64_t> result(static_cast<std::size_t>(layers), 0);
  if (!value->is_array()) {
    auto one = integer(field, low, high);
    if (!one)
      return {};
    std::fill(result.begin(), result.end(), *one);
    return result;
  }
  if (value->size() != result.size()) {
    fault(field, "expected one number, or one for each of " +
                     std::to_string(layers) + " layers");
    return {};
  }
  for (std::size_t i = 0; i < result.size(); ++i)
    if (!readInteger((*value)[i], low, high, result[i])) {
      fault(field, "expected integers from " + std::to_string(low) + " to " +
                       std::to_string(high));
      return {};
    }
  return result;
}

std::optional<double> SpecFields::number(const std::string &field, double low,
                                         double high) {
  const Json *value = find(field);
  if (!value)
    return std::nullopt;
  if (value->is_number()) {
    double result = value->get<double>();
    if (std::isfinite(result) && result >= low && result <= high)
      return result;
  }
  fault(field, "expected a number from " + jsonForMessage(low) + " to " +
                   jsonForMessage(high));
  return std::nullopt;
}

std::optional<bool> SpecFields::boolean(const std::string &field) {
  const Json *value = find(field);
  if (!value)
    return std::nullopt;
  if (value->is_boolean())
    return value->get<bool>();
  fault(field, "expected true or false");
  return std::nullopt;
}

std::optional<std::string> SpecFields::text(const std::string &field) {
  const Json *value = find(field);
  if (!value)
    return std::nullopt;
  if (value->is_string())
    return value->get<std::string>();
  fault(field, "expected a string");
  return std::nullopt;
}

} // namespace ingot
