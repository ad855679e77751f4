#include "compiler/architectures/Wrapper.h"

#include "compiler/architectures/Descriptor.h"
#include "compiler/frontend/StrictJson.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

// Reads one wrapper; the first fault stays.
class WrapperParser {
public:
  explicit WrapperParser(std::string where) : where_(std::move(where)) {}

  Wrapper read(const Json &json) {
    Wrapper wrapper;
    if (!json.is_object()) {
      fault("expected an object");
      return wrapper;
    }
    wrapper.defaults = Json::object();
    for (const auto &item : json.items()) {
      const std::string &key = item.key();
      const Json &value = item.value();
      if (key == "names")
        wrapper.names = list(key, value);
      else if (key == "architectures")
        wrapper.architectures = list(key, value);
      else if (key == "ignoredTensors")
        wrapper.ignoredTensors = list(key, value);
      else if (key == "text")
        wrapper.text = texts(key, value);
      else if (key == "ignored")
        wrapper.ignored = texts(key, value);
      else if (key == "prefixes")
        wrapper.prefixes = texts(key, value);
      else if (key == "defaults" && value.is_object())
        wrapper.defaults = value;
      else if (key == "ropeSections" && value.is_boolean())
        wrapper.ropeSections = value.get<bool>();
      else
        fault(quoteName(key) + ": unknown, or of another kind than expected");
    }
    if (wrapper.names.empty() || wrapper.text.empty())
      fault("\"names\" and \"text\" must hold something");
    return wrapper;
  }

  const std::string &message() const { return message_; }

private:
  void fault(const std::string &what) {
    if (message_.empty())
      message_ = where_ + ": " + what;
  }
  std::vector<std::string> list(const std::string &key, const Json &json) {
    std::vector<std::string> items;
    for (const Json &item : json.is_array() ? json : Json::array({Json()})) {
      if (!item.is_string()) {
        fault(quoteName(key) + ": expected a list of texts");
        return {};
      }
      items.push_back(item.get<std::string>());
    }
    return items;
  }
  std::map<std::string, std::string> texts(const std::string &key,
                                           const Json &json) {
    std::map<std::string, std::string> items;
    if (!json.is_object())
      fault(quoteName(key) + ": expected an object of texts");
    else
      for (const auto &item : json.items()) {
        if (item.value().is_string())
          items[item.key()] = item.value().get<std::string>();
        else
          fault(quoteName(key) + ": expected an object of texts");
      }
    return items;
  }

  std::string where_, message_;
};

} // namespace

Result<std::vector<Wrapper>> parseWrappers(std::string_view text,
                                           const std::string &name) {
  INGOT_ASSIGN_OR_RETURN(Json json, parseStrictJson(text, name));
  if (!json.is_object() || json.size() != 1 || !json.contains("wrappers") ||
      !json["wrappers"].is_array())
    return Status::invalid(name + ": expected one list, \"wrappers\"");
  std::vector<Wrapper> wrappers;
  for (const Json &entry : json["wrappers"]) {
    WrapperParser parser(name + ": wrappers[" +
                         std::to_string(wrappers.size()) + "]");
    wrappers.push_back(parser.read(entry));
    if (!parser.message().empty())
      return Status::invalid(parser.message());
  }
  return wrappers;
}

Result<std::vector<Wrapper>> loadWrappers() {
  for (const EmbeddedDescriptor &file : embeddedDescriptors())
    if (std::string_view(file.name) == "wrappers.json")
      return parseWrappers(file.text, file.name);
  return std::vector<Wrapper>();
}

} // namespace ingot
