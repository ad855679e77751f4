// Arithmetic, subscripts and attributes as Python and the Jinja sandbox
// define them.
#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Runtime.h"

#include <cmath>

namespace ingot::jinja {

void failUndefined(const Value &value) {
  auto *undefined = value.as<Undefined>();
  fail(undefined && undefined->hint ? *undefined->hint
                                    : std::string("a value is undefined"));
}

namespace {

constexpr Int intLimit = Int(1) << 120;

Int checked(Int value) {
  if (value > intLimit || value < -intLimit)
    fail("an integer result is out of range");
  return value;
}

bool fits64(Int value) { return value == static_cast<int64_t>(value); }

Int multiply(Int a, Int b) {
  if (!fits64(a) || !fits64(b)) {
    if (a == 0 || b == 0)
      return 0;
    if (a == 1 || b == 1)
      return a * b;
    fail("an integer result is out of range");
  }
  return checked(a * b);
}

const char *opText(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add:
    return "+";
  case BinaryOp::Sub:
    return "-";
  case BinaryOp::Mul:
    return "*";
  case BinaryOp::Div:
    return "/";
  case BinaryOp::FloorDiv:
    return "//";
  case BinaryOp::Mod:
    return "%";
  case BinaryOp::Pow:
    return "** or pow()";
  }
  return "?";
}

Value integers(BinaryOp op, Int a, Int b) {
  switch (op) {
  case BinaryOp::Add:
    return Value::integer(checked(a + b));
  case BinaryOp::Sub:
    return Value::integer(checked(a - b));
  case BinaryOp::Mul:
    return Value::integer(multiply(a, b));
  case BinaryOp::Div:
    if (b == 0)
      fail("division by zero");
    return Value::number(static_cast<double>(a) / static_cast<double>(b));
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: {
    if (b == 0)
      fail("integer division or modulo by zero");
    Int quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      --quotient;
      rest += b;
    }
    return Value::integer(op == BinaryOp::Mod ? rest : quotient);
  }
  case BinaryOp::Pow: {
    if (b < 0) {
      if (a == 0)
        fail("0.0 cannot be raised to a negative power");
      return Value::number(
          std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
    if (a == 0 || a == 1 || a == -1)
      return Value::integer(b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a);
    Int out = 1;
    for (; b > 0; --b)
      out = multiply(out, a);
    return Value::integer(out);
  }
  }
  fail("unknown operator");
}

Value floats(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add:
    return Value::number(a + b);
  case BinaryOp::Sub:
    return Value::number(a - b);
  case BinaryOp::Mul:
    return Value::number(a * b);
  case BinaryOp::Div:
    if (b == 0)
      fail("float division by zero");
    return Value::number(a / b);
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: {
    if (b == 0)
      fail("float floor division or modulo by zero");
    double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    } else if (rest == 0) {
      rest = std::copysign(0.0, b);
    }
    if (op == BinaryOp::Mod)
      return Value::number(rest);
    if (quotient == 0)
      return Value::number(std::copysign(0.0, a / b));
    double floor = std::floor(quotient);
    return Value::number(quotient - floor > 0.5 ? floor + 1 : floor);
  }
  case BinaryOp::Pow: {
    if (a == 0 && b < 0)
      fail("0.0 cannot be raised to a negative power");
    if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
      failUnsupported("complex numbers are not supported");
    double out = std::pow(a, b);
    if (std::isinf(out) && std::isfinite(a) && std::isfinite(b))
      fail("(34, 'Numerical result out of range')");
    return Value::number(out);
  }
  }
  fail("unknown operator");
}

Value repeatText(Runtime &rt, const StringObject &s, Int count) {
  Text out;
  if (count > 0 && !s.text.empty()) {
    if (count > Int(rt.limits().outputBytes) / Int(s.text.size()))
      fail("a repeated string exceeds the output limit");
    rt.touch(s.text.size() * size_t(count));
    rt.step(uint64_t(count));
    for (Int i = 0; i < count; ++i)
      out.append(s.text);
  }
  return rt.string(std::move(out), s.markup);
}

Value repeatItems(Runtime &rt, const SequenceObject &s, Int count) {
  std::vector<Value> out;
  if (count > 0 && !s.items.empty()) {
    size_t most = rt.limits().memoryBytes / sizeof(Value) / s.items.size();
    if (count > Int(most))
      fail("a repeated list is too long");
    rt.step(uint64_t(count) * s.items.size());
    for (Int i = 0; i < count; ++i)
      out.insert(out.end(), s.items.begin(), s.items.end());
  }
  return rt.sequence(s.kind == SequenceKind::Group ? SequenceKind::Tuple
                                                   : s.kind,
                     std::move(out));
}

bool isListOrTuple(const SequenceObject *s) {
  return s &&
         (s->kind == SequenceKind::List || s->kind == SequenceKind::Tuple ||
          s->kind == SequenceKind::Group);
}

} // namespace

Value binary(Runtime &rt, BinaryOp op, const Value &a, const Value &b) {
  rt.step();
  auto *s = a.string();
  auto *t = b.string();
  if (op == BinaryOp::Mod && s) {
    if (s->markup)
      failUnsupported("'%' on a string marked safe is not supported");
    return rt.string(percentFormat(rt, s->text, b));
  }
  if (a.isUndefined())
    failUndefined(a);
  if (b.isUndefined())
    failUndefined(b);
  if (a.isNumber() && b.isNumber())
    return a.isIntegral() && b.isIntegral()
               ? integers(op, a.toInt(), b.toInt())
               : floats(op, a.toDouble(), b.toDouble());
  auto *p = a.sequence();
  auto *q = b.sequence();
  if (op == BinaryOp::Add) {
    if (s && t) {
      bool markup = s->markup || t->markup;
      Text out = markup && !s->markup ? escapeHtml(s->text) : s->text;
      out.append(markup && !t->markup ? escapeHtml(t->text) : t->text);
      return rt.string(std::move(out), markup);
    }
    if (isListOrTuple(p) && isListOrTuple(q) &&
        (p->kind == SequenceKind::List) == (q->kind == SequenceKind::List)) {
      rt.step((p->items.size() + q->items.size()) / 8);
      std::vector<Value> out = p->items;
      out.insert(out.end(), q->items.begin(), q->items.end());
      return rt.sequence(p->kind == SequenceKind::List ? SequenceKind::List
                                                       : SequenceKind::Tuple,
                         std::move(out));
    }
    if (s)
      fail("can only concatenate str (not " + std::string("\"") + typeName(b) +
           "\") to str");
    if (p && isListOrTuple(p))
      fail("can only concatenate " + typeName(a) + " (not \"" + typeName(b) +
           "\") to " + typeName(a));
  }
  if (op == BinaryOp::Mul) {
    if (s && b.isIntegral())
      return repeatText(rt, *s, b.toInt());
    if (t && a.isIntegral())
      return repeatText(rt, *t, a.toInt());
    if (isListOrTuple(p) && b.isIntegral())
      return repeatItems(rt, *p, b.toInt());
    if (isListOrTuple(q) && a.isIntegral())
      return repeatItems(rt, *q, a.toInt());
  }
  fail(std::string("unsupported operand type(s) for ") + opText(op) + ": " +
       quoted(typeName(a)) + " and " + quoted(typeName(b)));
}

Value negate(const Value &value) {
  if (value.isIntegral())
    return Value::integer(-value.toInt());
  if (auto *d = value.as<double>())
    return Value::number(-*d);
  if (value.isUndefined())
    failUndefined(value);
  fail("bad operand type for unary -: " + quoted(typeName(value)));
}

Value positive(const Value &value) {
  if (value.isIntegral())
    return Value::integer(value.toInt());
  if (value.is<double>())
    return value;
  if (value.isUndefined())
    failUndefined(value);
  fail("bad operand type for unary +: " + quoted(typeName(value)));
}

// --- subscripts and attributes

namespace {

std::string objectRepr(const Value &object) {
  if (object.isNone())
    return "None";
  return typeName(object) + " object";
}

Value missing(Runtime &rt, const Value &object, const Value &key) {
  if (auto *s = key.string())
    return Value::undefined(quoted(objectRepr(object)) + " has no attribute " +
                            quoted(s->text.str()));
  Text repr;
  appendRepr(rt, repr, key);
  return Value::undefined(objectRepr(object) + " has no element " + repr.str());
}

Value unsafe(const Value &object, const std::string &name) {
  return Value::undefined("access to attribute " + quoted(name) + " of " +
                          quoted(typeName(object)) + " object is unsafe.");
}

bool oneOf(std::string_view name,
           std::initializer_list<std::string_view> names) {
  for (std::string_view candidate : names)
    if (name == candidate)
      return true;
  return false;
}

Value loopAttribute(Runtime &rt, const Value &object, const std::string &name) {
  LoopObject &loop = **object.as<LoopObject *>();
  Int count = Int(loop.items->size() - loop.first);
  Int index0 = Int(loop.index0 - loop.first);
  if (name == "index0")
    return Value::integer(index0);
  if (name == "index")
    return Value::integer(index0 + 1);
  if (name == "length")
    return Value::integer(count);
  if (name == "revindex")
    return Value::integer(count - index0);
  if (name == "revindex0")
    return Value::integer(count - index0 - 1);
  if (name == "first")
    return Value::boolean(index0 == 0);
  if (name == "last")
    return Value::boolean(index0 + 1 == count);
  if (name == "depth0")
    return Value::integer(loop.depth0);
  if (name == "depth")
    return Value::integer(Int(loop.depth0) + 1);
  if (name == "previtem")
    return index0 > 0 ? (*loop.items)[loop.index0 - 1]
                      : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return index0 + 1 < count ? (*loop.items)[loop.index0 + 1]
                              : Value::undefined("there is no next item");
  if (oneOf(name, {"cycle", "changed"}))
    return rt.method(object, name);
  return Value();
}

// The Python attribute of an object; nothing where it has none.
std::optional<Value> pythonAttribute(Runtime &rt, const Value &object,
                                     const std::string &name) {
  if (name.starts_with("__"))
    return unsafe(object, name);
  if (object.string()) {
    if (isStringMethod(name))
      return rt.method(object, name);
    if (oneOf(name, {"encode", "maketrans", "translate"}))
      failUnsupported("the string method " + quoted(name) +
                      " is not supported");
    return std::nullopt;
  }
  if (object.dict()) {
    if (oneOf(name, {"get", "keys", "values", "items", "copy", "fromkeys"}))
      return rt.method(object, name);
    if (oneOf(name, {"clear", "pop", "popitem", "setdefault", "update"}))
      return unsafe(object, name);
    return std::nullopt;
  }
  if (auto *s = object.sequence()) {
    if (oneOf(name, {"count", "index"}) && (s->kind <= SequenceKind::Range))
      return rt.method(object, name);
    if (s->kind == SequenceKind::List) {
      if (name == "copy")
        return rt.method(object, name);
      if (oneOf(name, {"append", "clear", "pop", "reverse", "insert", "sort",
                       "extend", "remove"}))
        return unsafe(object, name);
    }
    if (s->kind == SequenceKind::Group && oneOf(name, {"grouper", "list"}))
      return s->items[name == "list" ? 1 : 0];
    return std::nullopt;
  }
  if (auto *ns = object.as<NamespaceObject *>()) {
    for (auto &[key, value] : (*ns)->attributes)
      if (key == name)
        return value;
    return std::nullopt;
  }
  if (object.is<LoopObject *>()) {
    Value value = loopAttribute(rt, object, name);
    if (!value.isUndefined() || value.as<Undefined>()->hint)
      return value;
    return std::nullopt;
  }
  if (auto *macro = object.as<MacroObject *>()) {
    const Node &node = *(*macro)->node;
    if (name == "name")
      return rt.string(node.text);
    if (name == "catch_kwargs")
      return Value::boolean(node.usesKwargs);
    if (name == "catch_varargs")
      return Value::boolean(node.usesVarargs);
    if (name == "caller")
      return Value::boolean(node.usesCaller);
    return std::nullopt;
  }
  if (auto *helper = object.as<HelperObject *>();
      helper && !(*helper)->joiner) {
    if (oneOf(name, {"next", "reset"}))
      return rt.method(object, name);
    if (name == "current")
      return (*helper)->items[(*helper)->position];
    if (name == "items")
      return rt.tuple((*helper)->items);
    return std::nullopt;
  }
  if (auto *d = object.as<double>(); d && name == "is_integer")
    return rt.method(object, name);
  if (auto *b = object.as<Builtin>();
      b && *b == Builtin::Dict && name == "fromkeys")
    return Value(Value::Storage(Builtin::DictFromKeys));
  return std::nullopt;
}

// obj[key] alone; nothing on a TypeError or LookupError.
std::optional<Value> pythonItem(Runtime &rt, const Value &object,
                                const Value &key) {
  if (auto *d = object.dict()) {
    if (key.dict() || key.is<NamespaceObject *>() ||
        (key.sequence() && key.sequence()->kind != SequenceKind::Tuple))
      return std::nullopt; // unhashable
    const Value *found =
        key.string() ? d->find(key.string()->text.view()) : d->find(rt, key);
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  if (!key.isIntegral())
    return std::nullopt;
  Int index = key.toInt();
  if (auto *s = object.sequence(); s && s->kind <= SequenceKind::Range) {
    Int count = Int(s->items.size());
    if (index < 0)
      index += count;
    if (index < 0 || index >= count)
      return std::nullopt;
    return s->items[size_t(index)];
  }
  if (auto *s = object.string()) {
    Int count = Int(length(rt, object));
    if (index < 0)
      index += count;
    if (index < 0 || index >= count)
      return std::nullopt;
    rt.touch(s->text.size());
    size_t begin = byteOffset(s->text.view(), size_t(index));
    size_t end = begin;
    nextCodePoint(s->text.view(), end);
    return rt.string(s->text.slice(begin, end), s->markup);
  }
  return std::nullopt;
}

} // namespace

Value getItem(Runtime &rt, const Value &object, const Value &key) {
  rt.step();
  if (object.isUndefined())
    failUndefined(object);
  if (auto item = pythonItem(rt, object, key))
    return *item;
  if (auto *s = key.string())
    if (auto attribute = pythonAttribute(rt, object, s->text.str()))
      return *attribute;
  return missing(rt, object, key);
}

Value getAttribute(Runtime &rt, const Value &object, const std::string &name) {
  rt.step();
  if (object.isUndefined())
    failUndefined(object);
  if (auto attribute = pythonAttribute(rt, object, name))
    return *attribute;
  if (auto *d = object.dict())
    if (const Value *found = d->find(name))
      return *found;
  return Value::undefined(quoted(objectRepr(object)) + " has no attribute " +
                          quoted(name));
}

Value slice(Runtime &rt, const Value &object, const Value &start,
            const Value &stop, const Value &step) {
  if (object.isUndefined())
    failUndefined(object);
  auto *s = object.string();
  auto *q = object.sequence();
  if (!s && !(q && q->kind <= SequenceKind::Range)) {
    // env.getitem: a TypeError gives undefined
    return Value::undefined(objectRepr(object) + " has no element slice(...)");
  }
  for (const Value *value : {&start, &stop, &step})
    if (!value->isNone() && !value->isIntegral())
      return Value::undefined(objectRepr(object) +
                              " has no element slice(...)");
  Int count = Int(length(rt, object));
  Int by = step.isNone() ? Int(1) : step.toInt();
  if (by == 0)
    fail("slice step cannot be zero");
  auto clamp = [&](Int value) {
    if (value < 0) {
      value += count;
      return value < 0 ? (by < 0 ? Int(-1) : Int(0)) : value;
    }
    return value >= count ? (by < 0 ? count - 1 : count) : value;
  };
  Int from = start.isNone() ? (by < 0 ? count - 1 : 0) : clamp(start.toInt());
  Int to = stop.isNone() ? (by < 0 ? Int(-1) : count) : clamp(stop.toInt());
  if (s && by == 1) {
    rt.touch(s->text.size());
    if (from >= to)
      return rt.string(Text(), s->markup);
    size_t begin = byteOffset(s->text.view(), size_t(from));
    size_t end =
        begin + byteOffset(s->text.view().substr(begin), size_t(to - from));
    return rt.string(s->text.slice(begin, end), s->markup);
  }
  std::vector<size_t> starts; // byte offset of each code point
  if (s) {
    rt.step(s->text.size());
    for (size_t i = 0; i < s->text.size();) {
      starts.push_back(i);
      nextCodePoint(s->text.view(), i);
    }
    starts.push_back(s->text.size());
  }
  Text text;
  std::vector<Value> items;
  for (Int i = from; by > 0 ? i < to : i > to; i += by) {
    if (s)
      text.append(s->text, starts[size_t(i)], starts[size_t(i) + 1]);
    else
      items.push_back(q->items[size_t(i)]);
    if (by > count || by < -count)
      break;
  }
  if (s)
    return rt.string(std::move(text), s->markup);
  return rt.sequence(q->kind == SequenceKind::Group ? SequenceKind::Tuple
                                                    : q->kind,
                     std::move(items));
}

} // namespace ingot::jinja
