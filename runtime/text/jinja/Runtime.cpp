// See Runtime.h.
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>

namespace ingot::jinja {

// Deeper values would overflow the stack of whoever walks or frees them.
constexpr uint32_t maxValueDepth = 200;

Runtime::~Runtime() = default;

void Runtime::step(uint64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    fail("the template does not end: it used up its " +
         std::to_string(limits_.steps) + " steps");
}

void Runtime::checkMemory(size_t more) {
  if (more > limits_.memoryBytes || liveBytes_ > limits_.memoryBytes - more)
    fail("the template holds more than its " +
         std::to_string(limits_.memoryBytes) + " bytes of memory");
}

void Runtime::hold(size_t bytes) {
  checkMemory(bytes);
  liveBytes_ += bytes;
}

template <typename T> T *Runtime::own(std::deque<T> &store) {
  hold(sizeof(T));
  return &store.emplace_back();
}

NamespaceObject *Runtime::makeNamespace() { return own(namespaces_); }
LoopObject *Runtime::makeLoop() { return own(loops_); }
MacroObject *Runtime::makeMacro() { return own(macros_); }
HelperObject *Runtime::makeHelper() { return own(helpers_); }

namespace {
// StringObject and its fellows hold a Charge, which is bound once and for all:
// aggregate construction keeps it in place.
uint32_t depthOf(const Value &value) {
  if (auto *s = value.sequence())
    return s->depth;
  if (auto *d = value.dict())
    return d->depth;
  if (auto *m = value.as<std::shared_ptr<const MethodObject>>())
    return depthOf((*m)->self) + 1;
  return 0;
}

uint32_t deeper(uint32_t depth) {
  if (depth + 1 > maxValueDepth)
    fail("a value is nested too deeply (more than " +
         std::to_string(maxValueDepth) + " levels)");
  return depth + 1;
}
} // namespace

Value Runtime::string(Text text, bool markup) {
  size_t bytes = sizeof(StringObject) + text.size() +
                 text.userRanges().size() * sizeof(ByteRange);
  touch(text.size());
  checkMemory(bytes);
  return Value(Value::Storage(StringPtr(
      new StringObject{std::move(text), markup, Charge(&liveBytes_, bytes)})));
}

Value Runtime::sequence(SequenceKind kind, std::vector<Value> items) {
  size_t bytes = sizeof(SequenceObject) + items.size() * sizeof(Value);
  step(1 + items.size() / 8);
  checkMemory(bytes);
  uint32_t depth = 0;
  for (auto &item : items)
    depth = std::max(depth, depthOf(item));
  return Value(Value::Storage(SequencePtr(new SequenceObject{
      kind, std::move(items), deeper(depth), Charge(&liveBytes_, bytes)})));
}

Value Runtime::method(Value self, std::string name) {
  deeper(depthOf(self));
  return Value(Value::Storage(std::make_shared<const MethodObject>(
      MethodObject{std::move(self), std::move(name)})));
}

void Runtime::DictBuilder::set(const Value &key, const Value &value) {
  rt_.step();
  dict_->depth =
      std::max(dict_->depth, deeper(std::max(depthOf(key), depthOf(value))));
  auto [it, added] = dict_->index.try_emplace(hashKey(rt_, key),
                                              uint32_t(dict_->entries.size()));
  if (added) {
    rt_.checkMemory(dict_->entries.size() * 200);
    dict_->entries.emplace_back(key, value);
  } else {
    dict_->entries[it->second].second = value;
  }
}

Value Runtime::DictBuilder::finish() {
  size_t bytes = sizeof(DictObject) + dict_->entries.size() * 200;
  for (auto &[key, position] : dict_->index)
    bytes += key.size();
  rt_.checkMemory(bytes);
  return Value(Value::Storage(
      DictPtr(new DictObject{std::move(dict_->entries), std::move(dict_->index),
                             dict_->depth, Charge(&rt_.liveBytes_, bytes)})));
}

Bound::Bound(const char *function, const Arguments &arguments,
             std::initializer_list<const char *> names, size_t required,
             size_t positionalOnly)
    : function_(function), names_(names), values_(names.size()),
      given_(names.size()) {
  if (arguments.positional.size() > names_.size())
    fail(std::string(function) + "() takes at most " +
         std::to_string(names_.size()) + " arguments (" +
         std::to_string(arguments.positional.size()) + " given)");
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = arguments.positional[i];
    given_[i] = true;
  }
  for (auto &[name, value] : arguments.named) {
    size_t i = positionalOnly;
    while (i < names_.size() && name != names_[i])
      ++i;
    if (i >= names_.size())
      fail(std::string(function) + "() got an unexpected keyword argument " +
           quoted(name));
    if (given_[i])
      fail(std::string(function) + "() got multiple values for argument " +
           quoted(name));
    values_[i] = value;
    given_[i] = true;
  }
  for (size_t i = 0; i < required; ++i)
    if (!given_[i])
      fail(std::string(function) + "() missing required argument " +
           quoted(names_[i]));
}

Int Bound::integer(size_t i, Int fallback) const {
  if (!given_[i])
    return fallback;
  if (!values_[i].isIntegral())
    fail(std::string(function_) + "() argument " + quoted(names_[i]) +
         " must be an integer, not " + typeName(values_[i]));
  return values_[i].toInt();
}

bool Bound::flag(size_t i, bool fallback) const {
  return given_[i] ? truthy(values_[i]) : fallback;
}

const Text &Bound::text(size_t i) const {
  auto *s = values_[i].string();
  if (!s)
    fail(std::string(function_) + "() argument " + quoted(names_[i]) +
         " must be str, not " + typeName(values_[i]));
  return s->text;
}

} // namespace ingot::jinja
