// The tests of `is`: {{ x is defined }}.
#include "runtime/text/jinja/Runtime.h"

#include <cmath>
#include <map>

namespace ingot::jinja {
namespace {

using Predicate = bool (*)(Runtime &, const Value &, const Arguments &);
using V = const Value &;
using A = const Arguments &;

template <bool (*F)(const Value &)>
bool simple(Runtime &, const Value &value, const Arguments &a) {
  Bound bound("test", a, {});
  return F(value);
}

const Value &other(A a) {
  if (a.positional.size() != 1 || !a.named.empty())
    fail("the test takes exactly one argument (" +
         std::to_string(a.positional.size() + a.named.size()) + " given)");
  return a.positional[0];
}

bool isSequence(const Value &value) {
  auto *s = value.sequence();
  return value.string() || value.dict() || value.isUndefined() ||
         (s && s->kind <= SequenceKind::Range);
}

bool isIterable(const Value &value) {
  return value.string() || value.dict() || value.sequence() ||
         value.isUndefined() || value.is<LoopObject *>();
}

// `is`: the same object, as far as values that never change can tell.
bool same(Runtime &rt, const Value &a, const Value &b) {
  if (a.string() && b.string())
    return *a.as<StringPtr>() == *b.as<StringPtr>();
  if (a.sequence() && b.sequence())
    return a.sequence() == b.sequence();
  if (a.dict() && b.dict())
    return a.dict() == b.dict();
  if (a.storage().index() != b.storage().index())
    return false;
  return equal(rt, a, b);
}

bool divisible(Runtime &rt, V value, A a) {
  Value rest = binary(rt, BinaryOp::Mod, value, other(a));
  return rest.isNumber() && rest.toDouble() == 0;
}

template <int Rest> bool parity(Runtime &rt, V value, A a) {
  Bound bound("test", a, {});
  Value rest = binary(rt, BinaryOp::Mod, value, Value::integer(2));
  return rest.isNumber() && rest.toDouble() == Rest;
}

std::string nameArgument(V value) {
  auto *s = value.string();
  if (!s)
    fail("a filter or test is named by a string, not " + typeName(value));
  return s->text.str();
}

template <bool Lower> bool caseTest(Runtime &rt, V value, A a) {
  Bound bound("test", a, {});
  Text text = str(rt, value);
  return Lower ? isLowerText(text) : isUpperText(text);
}

bool eq(Runtime &rt, V value, A a) { return equal(rt, value, other(a)); }
bool ne(Runtime &rt, V value, A a) { return !equal(rt, value, other(a)); }
bool lt(Runtime &rt, V value, A a) { return less(rt, value, other(a), "<"); }
bool le(Runtime &rt, V value, A a) { return less(rt, value, other(a), "<="); }
bool gt(Runtime &rt, V value, A a) { return less(rt, value, other(a), ">"); }
bool ge(Runtime &rt, V value, A a) { return less(rt, value, other(a), ">="); }

bool isDefined(V v) { return !v.isUndefined(); }
bool isUndefined(V v) { return v.isUndefined(); }
bool isNone(V v) { return v.isNone(); }
bool isBoolean(V v) { return v.is<bool>(); }
bool isFalse(V v) { return v.is<bool>() && !*v.as<bool>(); }
bool isTrue(V v) { return v.is<bool>() && *v.as<bool>(); }
bool isInteger(V v) { return v.is<Int>(); }
bool isFloat(V v) { return v.is<double>(); }
bool isString(V v) { return v.string() != nullptr; }
bool isMapping(V v) { return v.dict() != nullptr; }
bool isNumber(V v) { return v.isNumber(); }
bool isEscaped(V v) { return v.string() && v.string()->markup; }

const std::map<std::string_view, Predicate> &tests() {
  static const std::map<std::string_view, Predicate> table = {
      {"odd", parity<1>},
      {"even", parity<0>},
      {"divisibleby", divisible},
      {"defined", simple<isDefined>},
      {"undefined", simple<isUndefined>},
      {"filter",
       [](Runtime &, V v, A) { return knownFilter(nameArgument(v)); }},
      {"test", [](Runtime &, V v, A) { return knownTest(nameArgument(v)); }},
      {"none", simple<isNone>},
      {"boolean", simple<isBoolean>},
      {"false", simple<isFalse>},
      {"true", simple<isTrue>},
      {"integer", simple<isInteger>},
      {"float", simple<isFloat>},
      {"lower", caseTest<true>},
      {"upper", caseTest<false>},
      {"string", simple<isString>},
      {"mapping", simple<isMapping>},
      {"number", simple<isNumber>},
      {"sequence", simple<isSequence>},
      {"iterable", simple<isIterable>},
      {"callable", simple<isCallable>},
      {"sameas", [](Runtime &rt, V v, A a) { return same(rt, v, other(a)); }},
      {"escaped", simple<isEscaped>},
      {"in", [](Runtime &rt, V v, A a) { return contains(rt, other(a), v); }},
      {"==", eq},
      {"eq", eq},
      {"equalto", eq},
      {"!=", ne},
      {"ne", ne},
      {">", gt},
      {"gt", gt},
      {"greaterthan", gt},
      {">=", ge},
      {"ge", ge},
      {"<", lt},
      {"lt", lt},
      {"lessthan", lt},
      {"<=", le},
      {"le", le},
  };
  return table;
}

} // namespace

bool isCallable(const Value &value) {
  auto *helper = value.as<HelperObject *>();
  return value.is<MacroObject *>() || value.is<Builtin>() ||
         value.is<LoopObject *>() || (helper && (*helper)->joiner) ||
         value.is<std::shared_ptr<const MethodObject>>() ||
         value.isUndefined(); // Undefined has __call__
}

bool knownTest(std::string_view name) { return tests().count(name) > 0; }

bool applyTest(Runtime &rt, const std::string &name, const Value &input,
               const Arguments &arguments) {
  rt.step();
  return tests().find(name)->second(rt, input, arguments);
}

} // namespace ingot::jinja
