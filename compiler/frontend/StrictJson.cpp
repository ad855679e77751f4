#include "compiler/frontend/StrictJson.h"

#include <cstdio>
#include <vector>

namespace ingot {
namespace {

using Json = nlohmann::json;

// Builds the document while it watches depth and keys. Each false return stops
// the parse with the reason in `error`.
class StrictHandler final : public nlohmann::json_sax<Json> {
public:
  explicit StrictHandler(std::size_t maxDepth) : maxDepth_(maxDepth) {}

  Json take() { return std::move(root_); }
  const std::string &error() const { return error_; }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return put(value);
  }
  bool string(string_t &value) override { return put(std::move(value)); }
  bool binary(binary_t &) override {
    error_ = "binary values are not JSON";
    return false;
  }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override {
    stack_.pop_back();
    return true;
  }
  bool end_array() override {
    stack_.pop_back();
    return true;
  }
  bool key(string_t &value) override {
    Json &object = *stack_.back();
    if (object.contains(value)) {
      error_ = "key " + quoteName(value) + " is given twice";
      return false;
    }
    slot_ = &object[value];
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &exception) override {
    error_ = std::string("not valid JSON near byte ") +
             std::to_string(position) + ": " + exception.what();
    return false;
  }

private:
  // Where the next value goes: the root, the slot of the last key, or the end
  // of the open array.
  Json *place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json &parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (stack_.size() >= maxDepth_) {
      error_ = "nested deeper than " + std::to_string(maxDepth_) + " levels";
      return false;
    }
    stack_.push_back(place(std::move(value)));
    return true;
  }

  std::size_t maxDepth_;
  Json root_;
  std::vector<Json *> stack_;
  Json *slot_ = nullptr;
  std::string error_;
};

} // namespace

Result<Json> parseStrictJson(std::string_view text, const std::string &name,
                             const JsonLimits &limits) {
  StrictHandler handler(limits.maxDepth);
  // The handler turns every parse error into a false return; the catch keeps
  // the promise should the library throw for another reason.
  try {
    if (!Json::sax_parse(text.begin(), text.end(), &handler))
      return Status::invalid(name + ": " + handler.error());
  } catch (const std::exception &exception) {
    return Status::invalid(name + ": " + exception.what());
  }
  return handler.take();
}

std::string jsonForMessage(const Json &value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80)
    text = text.substr(0, 77) + "...";
  return text;
}

std::string quoteName(std::string_view name) {
  std::string text = "\"";
  for (char c : name) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"' || c == '\\') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      text += escape;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

} // namespace ingot
