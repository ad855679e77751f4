#include "compiler/frontend/huggingface/TextPart.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <set>

namespace ingot {
namespace {

using Json = nlohmann::json;

const Wrapper *findWrapper(const std::vector<Wrapper> &wrappers,
                           const Json &config) {
  auto type = config.find("model_type");
  for (const Wrapper &wrapper : wrappers)
    if (type != config.end() && type->is_string() &&
        std::count(wrapper.names.begin(), wrapper.names.end(),
                   type->get<std::string>()))
      return &wrapper;
  return nullptr;
}

// A token of text has one position three times over, so that the sections of the
// head that go by one of them each make an ordinary rotation.
Status dropSections(const std::string &where, Json &config) {
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    auto rope = config.find(key);
    if (rope == config.end() || !rope->is_object())
      continue;
    auto sections = rope->find("mrope_section");
    if (sections == rope->end())
      continue;
    if (!sections->is_array() || sections->size() != 3)
      return Status::invalid(where + ": " + key +
                             ": mrope_section: expected three numbers, found " +
                             jsonForMessage(*sections));
    rope->erase("mrope_section");
    rope->erase("mrope_interleaved");
    for (const char *type : {"type", "rope_type"})
      if (rope->contains(type) && (*rope)[type] == "mrope")
        (*rope)[type] = "default";
  }
  return Status::ok();
}

// What the outer object says of the whole, which is not the text part's.
Status checkWhole(const Wrapper &wrapper, const std::string &where,
                  Json &config) {
  auto classes = config.find("architectures");
  if (classes == config.end() || classes->is_null())
    return Status::ok();
  bool known =
      classes->is_array() && classes->size() == 1 &&
      (*classes)[0].is_string() &&
      std::count(wrapper.architectures.begin(), wrapper.architectures.end(),
                 (*classes)[0].get<std::string>());
  if (!known)
    return Status::unsupported(where + ": unsupported architectures " +
                               jsonForMessage(*classes) + " of model_type " +
                               jsonForMessage(config["model_type"]));
  config.erase(classes);
  return Status::ok();
}

} // namespace

Result<const Wrapper *> takeTextPart(const std::vector<Wrapper> &wrappers,
                                     const std::string &where, Json &config) {
  const Wrapper *wrapper = findWrapper(wrappers, config);
  Json inner = config.value("text_config", Json::object());
  bool nests = config.contains("text_config");
  if (!inner.is_object())
    return Status::invalid(where + ": text_config: expected an object, found " +
                           jsonForMessage(inner));
  if (wrapper) {
    INGOT_RETURN_IF_ERROR(checkWhole(*wrapper, where, config));
    Json type = nests ? inner.value("model_type", Json()) : Json("");
    auto text = type.is_string() ? wrapper->text.find(type.get<std::string>())
                                 : wrapper->text.end();
    if (text == wrapper->text.end()) {
      std::string known;
      for (const auto &[name, family] : wrapper->text)
        known += (known.empty() ? "" : ", ") + quoteName(name);
      return Status::unsupported(
          where + ": the text part of model_type " +
          jsonForMessage(config["model_type"]) + " is " +
          (nests ? "model_type " + jsonForMessage(type) : "not nested") +
          " (known: " + known + ")");
    }
    for (const auto &[key, why] : wrapper->ignored)
      config.erase(key);
    config["model_type"] = text->second;
    inner.erase("model_type");
  }
  config.erase("text_config");
  for (const auto &item : inner.items())
    config[item.key()] = item.value();
  if (!wrapper)
    return nullptr;
  for (const auto &item : wrapper->defaults.items())
    if (!config.contains(item.key()))
      config[item.key()] = item.value();
  if (wrapper->ropeSections)
    INGOT_RETURN_IF_ERROR(dropSections(where, config));
  return wrapper;
}

Status takeTextTensors(const Wrapper &wrapper, const std::string &where,
                       std::vector<FileTensor> &tensors,
                       std::vector<std::string> &notes) {
  std::size_t before = tensors.size();
  std::erase_if(tensors, [&](const FileTensor &tensor) {
    return std::any_of(wrapper.ignoredTensors.begin(),
                       wrapper.ignoredTensors.end(),
                       [&](const std::string &prefix) {
                         return tensor.name.starts_with(prefix);
                       });
  });
  if (tensors.size() != before)
    notes.push_back(
        std::to_string(before - tensors.size()) +
        " tensors of parts that read no text are left out; the model reads and "
        "writes text only");
  std::set<std::string> names;
  for (FileTensor &tensor : tensors) {
    for (const auto &[prefix, instead] : wrapper.prefixes)
      if (tensor.name.starts_with(prefix)) {
        tensor.name = instead + tensor.name.substr(prefix.size());
        break;
      }
    if (!names.insert(tensor.name).second)
      return Status::invalid(where + ": tensor " + quoteName(tensor.name) +
                             " of the text part is there twice");
  }
  return Status::ok();
}

} // namespace ingot
