// Methods of the values that are not strings, and the global functions.
#include "runtime/text/jinja/Runtime.h"

#include <cmath>

namespace ingot::jinja {
namespace {

Value view(Runtime &rt, const DictObject &dict, SequenceKind kind) {
  std::vector<Value> items;
  for (auto &[key, value] : dict.entries)
    items.push_back(kind == SequenceKind::DictKeys ? key
                    : kind == SequenceKind::DictValues
                        ? value
                        : rt.tuple({key, value}));
  return rt.sequence(kind, std::move(items));
}

Value fromKeys(Runtime &rt, const Arguments &arguments) {
  Bound bound("fromkeys", arguments, {"iterable", "value"}, 1, 2);
  Runtime::DictBuilder dict(rt);
  for (auto &key : iterate(rt, bound[0]))
    dict.set(key, bound.get(1, Value::none()));
  return dict.finish();
}

Value dictMethod(Runtime &rt, const Value &self, const std::string &name,
                 const Arguments &arguments) {
  const DictObject &dict = *self.dict();
  if (name == "get") {
    Bound bound("get", arguments, {"key", "default"}, 1, 2);
    const Value *found = dict.find(rt, bound[0]);
    return found ? *found : bound.get(1, Value::none());
  }
  if (name == "fromkeys")
    return fromKeys(rt, arguments);
  Bound bound(name.c_str(), arguments, {});
  if (name == "copy")
    return self;
  return view(rt, dict,
              name == "keys"     ? SequenceKind::DictKeys
              : name == "values" ? SequenceKind::DictValues
                                 : SequenceKind::DictItems);
}

Value sequenceMethod(Runtime &rt, const Value &self, const std::string &name,
                     const Arguments &arguments) {
  const SequenceObject &sequence = *self.sequence();
  if (name == "copy") {
    Bound bound("copy", arguments, {});
    return self;
  }
  if (name == "count") {
    Bound bound("count", arguments, {"value"}, 1, 1);
    Int count = 0;
    for (auto &item : sequence.items)
      count += equal(rt, item, bound[0]);
    return Value::integer(count);
  }
  Bound bound("index", arguments, {"value", "start", "stop"}, 1, 3);
  Int size = Int(sequence.items.size());
  auto clamp = [&](Int value) {
    return value < 0 ? std::max<Int>(0, value + size) : std::min(value, size);
  };
  Int stop = clamp(bound.integer(2, size));
  for (Int i = clamp(bound.integer(1, 0)); i < stop; ++i)
    if (equal(rt, sequence.items[size_t(i)], bound[0]))
      return Value::integer(i);
  fail("the value is not in the " + typeName(self));
}

Value loopMethod(Runtime &rt, LoopObject &loop, const std::string &name,
                 const Arguments &arguments) {
  if (!arguments.named.empty())
    fail("loop." + name + "() got an unexpected keyword argument " +
         quoted(arguments.named[0].first));
  if (name == "cycle") {
    if (arguments.positional.empty())
      fail("no items for cycling given");
    return arguments
        .positional[(loop.index0 - loop.first) % arguments.positional.size()];
  }
  bool changed = !loop.lastChanged ||
                 loop.lastChanged->size() != arguments.positional.size();
  for (size_t i = 0; !changed && i < arguments.positional.size(); ++i)
    changed = !equal(rt, (*loop.lastChanged)[i], arguments.positional[i]);
  if (changed)
    loop.lastChanged = arguments.positional;
  return Value::boolean(changed);
}

Value range(Runtime &rt, const Arguments &arguments) {
  Bound bound("range", arguments, {"start", "stop", "step"}, 1, 3);
  Int start = bound.integer(0, 0), stop = bound.integer(1, 0);
  Int step = bound.integer(2, 1);
  if (!bound.has(1)) {
    stop = start;
    start = 0;
  }
  if (step == 0)
    fail("range() arg 3 must not be zero");
  Int count = step > 0 ? (stop > start ? (stop - start - 1) / step + 1 : 0)
                       : (start > stop ? (start - stop - 1) / -step + 1 : 0);
  if (count > 100000)
    fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE "
         "(100000).");
  rt.step(uint64_t(count) / 8);
  std::vector<Value> items;
  for (Int i = 0; i < count; ++i)
    items.push_back(Value::integer(start + i * step));
  return rt.sequence(SequenceKind::Range, std::move(items));
}

// dict(mapping or pairs, name=value ...)
Value makeDict(Runtime &rt, const Arguments &arguments, const char *name) {
  if (arguments.positional.size() > 1)
    fail(std::string(name) + " expected at most 1 argument, got " +
         std::to_string(arguments.positional.size()));
  Runtime::DictBuilder dict(rt);
  if (!arguments.positional.empty()) {
    const Value &source = arguments.positional[0];
    if (auto *other = source.dict()) {
      for (auto &[key, value] : other->entries)
        dict.set(key, value);
    } else {
      for (auto &pair : iterate(rt, source)) {
        std::vector<Value> parts = iterate(rt, pair);
        if (parts.size() != 2)
          fail("dictionary update sequence element has length " +
               std::to_string(parts.size()) + "; 2 is required");
        dict.set(parts[0], parts[1]);
      }
    }
  }
  for (auto &[key, value] : arguments.named)
    dict.set(rt.string(key), value);
  return dict.finish();
}

Value makeNamespace(Runtime &rt, const Arguments &arguments) {
  Value dict = makeDict(rt, arguments, "namespace");
  NamespaceObject *out = rt.makeNamespace();
  for (auto &[key, value] : dict.dict()->entries) {
    auto *name = key.string();
    if (!name)
      fail("namespace attributes must be named by strings, not " +
           typeName(key));
    if (name->text.view().starts_with("_"))
      fail("Chat templates cannot store underscore-prefixed attributes on a "
           "namespace, but got " +
           quoted(name->text.str()) + ". Please rename the attribute.");
    out->attributes.emplace_back(name->text.str(), value);
  }
  return Value(Value::Storage(out));
}

Value makeHelper(Runtime &rt, const Arguments &arguments, bool joiner) {
  HelperObject *out = rt.makeHelper();
  out->joiner = joiner;
  if (joiner) {
    Bound bound("joiner", arguments, {"sep"});
    out->items.push_back(bound.get(0, rt.string(", ")));
    return Value(Value::Storage(out));
  }
  if (!arguments.named.empty())
    fail("cycler() got an unexpected keyword argument " +
         quoted(arguments.named[0].first));
  if (arguments.positional.empty())
    fail("at least one item has to be provided");
  out->items = arguments.positional;
  return Value(Value::Storage(out));
}

// datetime.now().strftime(format) of a time without a zone
Value strftimeNow(Runtime &rt, const Arguments &arguments, std::tm now) {
  Bound bound("strftime_now", arguments, {"format"}, 1);
  const std::string &format = bound.text(0).str();
  if (format.size() > 1024)
    fail("the format of strftime_now is too long (" +
         std::to_string(format.size()) + " bytes, at most 1024)");
  Text out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.append(bound.text(0), i, i + 1);
      continue;
    }
    size_t end = i + 1;
    while (end < format.size() && std::string_view("-_0^#EO").find(
                                      format[end]) != std::string_view::npos)
      ++end;
    char kind = end < format.size() ? format[end] : 0;
    if (!kind ||
        std::string_view("aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyYzZf%P")
                .find(kind) == std::string_view::npos ||
        kind == 's')
      failUnsupported("the strftime directive " +
                      quoted(format.substr(i, end - i + 1)) +
                      " is not supported");
    if (kind == 'f') {
      out.append("000000", Origin::Template);
    } else if (kind != 'z' && kind != 'Z') { // both empty without a zone
      char buffer[256];
      std::string one = format.substr(i, end - i + 1);
      size_t written = std::strftime(buffer, sizeof buffer, one.c_str(), &now);
      out.append(std::string_view(buffer, written), Origin::Template);
    }
    i = end;
  }
  return rt.string(std::move(out));
}

} // namespace

Value callMethod(Runtime &rt, const MethodObject &method,
                 const Arguments &arguments) {
  const Value &self = method.self;
  if (self.string())
    return callStringMethod(rt, self, method.name, arguments);
  if (self.dict())
    return dictMethod(rt, self, method.name, arguments);
  if (self.sequence())
    return sequenceMethod(rt, self, method.name, arguments);
  if (auto *loop = self.as<LoopObject *>())
    return loopMethod(rt, **loop, method.name, arguments);
  Bound bound(method.name.c_str(), arguments, {});
  if (auto *d = self.as<double>())
    return Value::boolean(std::isfinite(*d) && *d == std::floor(*d));
  if (auto *helper = self.as<HelperObject *>()) {
    HelperObject &cycler = **helper;
    if (method.name == "reset") {
      cycler.position = 0;
      return Value::none();
    }
    Value value = cycler.items[cycler.position];
    cycler.position = (cycler.position + 1) % cycler.items.size();
    return value;
  }
  fail("the method " + quoted(method.name) + " cannot be called");
}

Value callBuiltin(Runtime &rt, Builtin builtin, const Arguments &arguments,
                  const std::tm &now) {
  switch (builtin) {
  case Builtin::Range:
    return range(rt, arguments);
  case Builtin::Dict:
    return makeDict(rt, arguments, "dict");
  case Builtin::DictFromKeys:
    return fromKeys(rt, arguments);
  case Builtin::Namespace:
    return makeNamespace(rt, arguments);
  case Builtin::Cycler:
    return makeHelper(rt, arguments, false);
  case Builtin::Joiner:
    return makeHelper(rt, arguments, true);
  case Builtin::RaiseException: {
    Bound bound("raise_exception", arguments, {"message"}, 1);
    fail(str(rt, bound[0]).str());
  }
  case Builtin::StrftimeNow:
    return strftimeNow(rt, arguments, now);
  }
  fail("unknown function");
}

} // namespace ingot::jinja
