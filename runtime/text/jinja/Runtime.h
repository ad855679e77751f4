// What one render owns: its limits and what is left of them, the values that
// change (namespaces, loops, macros), and the making of every other value. A
// hostile template runs out of steps, memory, depth or output and ends with an
// error; it never hangs and never overflows the stack.
#pragma once

#include "runtime/text/jinja/ChatTemplate.h"
#include "runtime/text/jinja/Unicode.h"
#include "runtime/text/jinja/Value.h"

#include <ctime>
#include <deque>
#include <optional>

namespace ingot::jinja {

struct Scope;
struct Node;

struct NamespaceObject {
  std::vector<std::pair<std::string, Value>> attributes; // in order
};

struct LoopObject {
  const std::vector<Value> *items = nullptr;
  size_t index0 = 0;
  size_t first = 0; // index of the first item (a generator may be half used)
  std::optional<std::vector<Value>> lastChanged;
  uint32_t depth0 = 0;
  const Node *node = nullptr; // set for `recursive` loops
  Scope *scope = nullptr;
};

struct MacroObject {
  const Node *node = nullptr;
  Scope *scope = nullptr; // where it was defined
};

struct HelperObject {
  bool joiner = false;
  std::vector<Value> items; // joiner: the separator
  size_t position = 0;      // joiner: uses so far
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Runtime {
public:
  explicit Runtime(const RenderLimits &limits) : limits_(limits) {}

  const RenderLimits &limits() const { return limits_; }
  // Every loop, evaluation and item touched counts.
  void step(uint64_t count = 1);
  // Work that is proportional to `bytes` of text.
  void touch(size_t bytes) { step(1 + bytes / 256); }

  Value string(Text text, bool markup = false);
  Value string(std::string_view text, Origin origin = Origin::Template) {
    return string(Text(std::string(text), origin));
  }
  Value sequence(SequenceKind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) {
    return sequence(SequenceKind::List, std::move(items));
  }
  Value tuple(std::vector<Value> items) {
    return sequence(SequenceKind::Tuple, std::move(items));
  }
  Value method(Value self, std::string name);

  // Builds a dict; later values of one key replace earlier ones in place.
  class DictBuilder {
  public:
    explicit DictBuilder(Runtime &rt) : rt_(rt) {}
    void set(const Value &key, const Value &value);
    Value finish();

  private:
    Runtime &rt_;
    std::shared_ptr<DictObject> dict_ = std::make_shared<DictObject>();
  };

  NamespaceObject *makeNamespace();
  LoopObject *makeLoop();
  MacroObject *makeMacro();
  HelperObject *makeHelper();

  // Calls a macro, method or global function.
  virtual Value call(const Value &callee, Arguments arguments) = 0;
  virtual Value callFilter(const std::string &name, const Value &input,
                           Arguments arguments) = 0;
  virtual bool callTest(const std::string &name, const Value &input,
                        Arguments arguments) = 0;

protected:
  ~Runtime();
  // Counts bytes that stay until the end of the render.
  void hold(size_t bytes);

private:
  template <typename T> T *own(std::deque<T> &store);
  void checkMemory(size_t more);

  RenderLimits limits_;
  uint64_t steps_ = 0;
  size_t liveBytes_ = 0;
  std::deque<NamespaceObject> namespaces_;
  std::deque<LoopObject> loops_;
  std::deque<MacroObject> macros_;
  std::deque<HelperObject> helpers_;
};

// Gives each argument of a built-in function its parameter, as Python does.
class Bound {
public:
  // `names`: the parameters; the first `required` must be given. Names before
  // `positionalOnly` cannot be given by keyword.
  Bound(const char *function, const Arguments &arguments,
        std::initializer_list<const char *> names, size_t required = 0,
        size_t positionalOnly = 0);

  bool has(size_t i) const { return given_[i]; }
  const Value &operator[](size_t i) const { return values_[i]; }
  Value get(size_t i, Value fallback) const {
    return given_[i] ? values_[i] : fallback;
  }
  // Typed access; fails with the parameter's name.
  Int integer(size_t i, Int fallback) const;
  bool flag(size_t i, bool fallback) const;
  const Text &text(size_t i) const;

private:
  const char *function_;
  std::vector<const char *> names_;
  std::vector<Value> values_;
  std::vector<bool> given_;
};

// --- Operators.cpp
enum class BinaryOp { Add, Sub, Mul, Div, FloorDiv, Mod, Pow };
Value binary(Runtime &rt, BinaryOp op, const Value &a, const Value &b);
Value negate(const Value &value);
Value positive(const Value &value);
// obj[key] and obj.name as the sandbox resolves them
Value getItem(Runtime &rt, const Value &object, const Value &key);
Value getAttribute(Runtime &rt, const Value &object, const std::string &name);
// Absent bounds are None.
Value slice(Runtime &rt, const Value &object, const Value &start,
            const Value &stop, const Value &step);
[[noreturn]] void failUndefined(const Value &value);

// --- StringMethods.cpp, Methods.cpp
bool isStringMethod(std::string_view name);
Value callStringMethod(Runtime &rt, const Value &self, const std::string &name,
                       const Arguments &arguments);
Value callMethod(Runtime &rt, const MethodObject &method,
                 const Arguments &arguments);
Value callBuiltin(Runtime &rt, Builtin builtin, const Arguments &arguments,
                  const std::tm &now);
Text strip(const Text &text, const Text *chars, bool left, bool right);
Text mapCase(const Text &text, CaseMap map);
Text titleCase(const Text &text);
Text capitalize(const Text &text);
Text replace(Runtime &rt, const Text &text, const Text &from, const Text &to,
             Int count);
std::vector<Text> splitLines(const Text &text, bool keepEnds);
bool isLowerText(const Text &text);
bool isUpperText(const Text &text);
std::optional<Int> parseInt(std::string_view text, int base);
std::optional<double> parseFloat(std::string_view text);

// --- Format.cpp
Text percentFormat(Runtime &rt, const Text &format, const Value &argument);
Text braceFormat(Runtime &rt, const Text &format, const Arguments &arguments);

// --- Json.cpp
Text toJson(Runtime &rt, const Value &value, const Arguments &options);

// --- Filters.cpp, SequenceFilters.cpp, Predicates.cpp
bool knownFilter(std::string_view name);
bool knownTest(std::string_view name);
Value applyFilter(Runtime &rt, const std::string &name, const Value &input,
                  const Arguments &arguments);
std::optional<Value> applySequenceFilter(Runtime &rt, const std::string &name,
                                         const Value &input,
                                         const Arguments &arguments);
bool applyTest(Runtime &rt, const std::string &name, const Value &input,
               const Arguments &arguments);
// The stable order of `keys` by Python's `<`, as indices.
std::vector<size_t> sortedOrder(Runtime &rt, const std::vector<Value> &keys,
                                bool reverse);
bool isCallable(const Value &value);
Text escapeHtml(const Text &text);

} // namespace ingot::jinja
