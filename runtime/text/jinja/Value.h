// The values of a render, with Python's semantics: what a name, a literal or
// an expression of a template holds. Lists and dicts never change once made
// (the sandbox forbids it), so they are shared; only namespaces change, and
// the Runtime owns those, so no cycle of shared pointers can arise.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/jinja/Text.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ingot::jinja {

class Runtime;
struct MacroObject;
struct LoopObject;
struct NamespaceObject;
struct HelperObject; // cycler(...) and joiner(...)

// Wide enough for every integer of JSON input (int64 and uint64).
using Int = __int128;

// Thrown inside the engine only; ChatTemplate turns it into a Status.
struct Failure {
  StatusCode code = StatusCode::InvalidInput;
  std::string message;
};
[[noreturn]] void fail(std::string message);
[[noreturn]] void failUnsupported(std::string message);

// Bytes that a value holds against the memory limit of its render.
class Charge {
public:
  Charge() = default;
  Charge(size_t *live, size_t bytes) : live_(live), bytes_(bytes) {
    *live_ += bytes_;
  }
  Charge(const Charge &) = delete;
  Charge &operator=(const Charge &) = delete;
  ~Charge() {
    if (live_)
      *live_ -= bytes_;
  }

private:
  size_t *live_ = nullptr;
  size_t bytes_ = 0;
};

struct StringObject;
struct SequenceObject;
struct DictObject;
struct MethodObject;
using StringPtr = std::shared_ptr<const StringObject>;
using SequencePtr = std::shared_ptr<const SequenceObject>;
using DictPtr = std::shared_ptr<const DictObject>;

// What a name that does not exist evaluates to; using it fails with `hint`.
struct Undefined {
  std::shared_ptr<const std::string> hint;
};
struct None {};

enum class Builtin {
  Range,
  Dict,
  DictFromKeys,
  Namespace,
  Cycler,
  Joiner,
  RaiseException,
  StrftimeNow,
};

class Value {
public:
  using Storage = std::variant<Undefined, None, bool, Int, double, StringPtr,
                               SequencePtr, DictPtr, NamespaceObject *,
                               LoopObject *, MacroObject *, HelperObject *,
                               Builtin, std::shared_ptr<const MethodObject>>;

  Value() : storage_(Undefined{}) {}
  Value(Storage storage) : storage_(std::move(storage)) {}
  static Value none() { return Value(Storage(None{})); }
  static Value boolean(bool b) { return Value(Storage(b)); }
  static Value integer(Int i) { return Value(Storage(i)); }
  static Value number(double d) { return Value(Storage(d)); }
  static Value undefined(std::string hint) {
    return Value(Storage(Undefined{std::make_shared<const std::string>(hint)}));
  }

  template <typename T> bool is() const {
    return std::holds_alternative<T>(storage_);
  }
  template <typename T> const T *as() const {
    return std::get_if<T>(&storage_);
  }
  const StringObject *string() const;
  const SequenceObject *sequence() const;
  const DictObject *dict() const;
  bool isUndefined() const { return is<Undefined>(); }
  bool isNone() const { return is<None>(); }
  // int or bool, as Python counts them
  bool isIntegral() const { return is<Int>() || is<bool>(); }
  bool isNumber() const { return isIntegral() || is<double>(); }
  Int toInt() const;       // of an integral value
  double toDouble() const; // of a number
  const Storage &storage() const { return storage_; }

private:
  Storage storage_;
};

struct StringObject {
  Text text;
  bool markup = false; // made by `safe` or `escape`: `+` escapes the other side
  Charge charge;
};

enum class SequenceKind {
  List,
  Tuple,
  Group, // a tuple of the groupby filter, with .grouper and .list
  Range,
  DictKeys,
  DictValues,
  DictItems,
  Generator, // consumed by one iteration
};

struct SequenceObject {
  SequenceKind kind = SequenceKind::List;
  std::vector<Value> items;
  uint32_t depth = 1;
  Charge charge;
  // Generators only: the items before this one are gone.
  mutable size_t consumed = 0;
  size_t remaining() const { return items.size() - consumed; }
};

struct DictObject {
  std::vector<std::pair<Value, Value>> entries;    // in order of insertion
  std::unordered_map<std::string, uint32_t> index; // by hashKey
  uint32_t depth = 1;
  Charge charge;

  const Value *find(std::string_view stringKey) const;
  const Value *find(Runtime &rt, const Value &key) const;
};

struct MethodObject {
  Value self;
  std::string name;
};

inline const StringObject *Value::string() const {
  auto *p = as<StringPtr>();
  return p ? p->get() : nullptr;
}
inline const SequenceObject *Value::sequence() const {
  auto *p = as<SequencePtr>();
  return p ? p->get() : nullptr;
}
inline const DictObject *Value::dict() const {
  auto *p = as<DictPtr>();
  return p ? p->get() : nullptr;
}

// Python's name of the value's type: "str", "NoneType", "dict" ...
std::string typeName(const Value &value);
// Quotes as repr() does a plain name in an error message.
std::string quoted(std::string_view text);

bool truthy(const Value &value);
bool equal(Runtime &rt, const Value &a, const Value &b);
// Less than, as Python's `<`; `op` names the operator in the error.
bool less(Runtime &rt, const Value &a, const Value &b, const char *op = "<");
bool contains(Runtime &rt, const Value &container, const Value &item);
// len(); fails for values that have none.
size_t length(Runtime &rt, const Value &value);
// The key under which a dict keeps `key`; fails for unhashable values.
std::string hashKey(Runtime &rt, const Value &key);

// str() and repr(), origin kept.
Text str(Runtime &rt, const Value &value);
void appendRepr(Runtime &rt, Text &out, const Value &value, int depth = 0);
std::string floatRepr(double value);
std::string intText(Int value);

// All items of anything that `for` accepts; a generator is used up.
std::vector<Value> iterate(Runtime &rt, const Value &value);

} // namespace ingot::jinja
