// Filters of single values: text, numbers and defaults. Those of sequences are
// in SequenceFilters.cpp.
#include "runtime/text/jinja/TextFilters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace ingot::jinja {
namespace {

using Filter = Value (*)(Runtime &, const Value &, const Arguments &);
using V = const Value &;
using A = const Arguments &;

// soft_str: text of anything; a string marked safe stays so.
bool isMarkup(V value) { return value.string() && value.string()->markup; }

template <Text (*F)(const Text &)> Value textFilter(Runtime &rt, V value, A a) {
  Bound bound("filter", a, {});
  return rt.string(F(str(rt, value)), isMarkup(value));
}

Text upper(const Text &text) { return mapCase(text, CaseMap::Upper); }
Text lower(const Text &text) { return mapCase(text, CaseMap::Lower); }

// The filter's title: words start after space, - ( { [ <, and only the first
// letter of each is raised.
Text titleWords(const Text &text) {
  Text out;
  bool start = true;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    Text one = text.slice(begin, i);
    out.append(mapCase(one, start ? CaseMap::Upper : CaseMap::Lower));
    start =
        isSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return out;
}

Value trim(Runtime &rt, V value, A a) {
  Bound bound("trim", a, {"chars"});
  bool some = bound.has(0) && !bound[0].isNone();
  return rt.string(
      strip(str(rt, value), some ? &bound.text(0) : nullptr, true, true),
      isMarkup(value));
}

Value defaultValue(Runtime &, V value, A a) {
  Bound bound("default", a, {"default_value", "boolean"});
  if (!value.isUndefined() && !(bound.flag(1, false) && !truthy(value)))
    return value;
  if (bound.has(0))
    return bound[0];
  auto empty = std::make_shared<StringObject>();
  return Value(Value::Storage(StringPtr(std::move(empty))));
}

Value replaceFilter(Runtime &rt, V value, A a) {
  Bound bound("replace", a, {"old", "new", "count"}, 2);
  Int count = bound.has(2) && !bound[2].isNone() ? bound.integer(2, -1) : -1;
  return rt.string(
      replace(rt, str(rt, value), str(rt, bound[0]), str(rt, bound[1]), count));
}

Value intFilter(Runtime &, V value, A a) {
  Bound bound("int", a, {"default", "base"});
  Value fallback = bound.get(0, Value::integer(0));
  Int base = bound.integer(1, 10);
  if (value.isUndefined())
    failUndefined(value);
  if (value.isIntegral())
    return Value::integer(value.toInt());
  std::optional<double> number;
  if (auto *s = value.string()) {
    if (auto whole =
            parseInt(s->text.view(), int(std::clamp<Int>(base, -1, 99))))
      return Value::integer(*whole);
    number = parseFloat(s->text.view());
  } else if (value.isNumber()) {
    number = value.toDouble();
    if (std::isinf(*number))
      fail("cannot convert float infinity to integer");
  }
  if (!number || !std::isfinite(*number))
    return fallback;
  if (std::abs(*number) > 0x1p110)
    fail("an integer result is out of range");
  return Value::integer(static_cast<Int>(*number));
}

Value floatFilter(Runtime &, V value, A a) {
  Bound bound("float", a, {"default"});
  if (value.isUndefined())
    failUndefined(value);
  if (value.isNumber())
    return Value::number(value.toDouble());
  if (auto *s = value.string())
    if (auto number = parseFloat(s->text.view()))
      return Value::number(*number);
  return bound.get(0, Value::number(0));
}

Value absFilter(Runtime &, V value, A a) {
  Bound bound("abs", a, {});
  if (value.isIntegral()) {
    Int i = value.toInt();
    return Value::integer(i < 0 ? -i : i);
  }
  if (value.isUndefined())
    failUndefined(value);
  if (!value.isNumber())
    fail("bad operand type for abs(): " + quoted(typeName(value)));
  return Value::number(std::abs(value.toDouble()));
}

double roundTo(double value, int precision) {
  if (!std::isfinite(value) || precision > 300)
    return value;
  if (precision < -308)
    return std::copysign(0.0, value);
  if (precision < 0) {
    double power = std::pow(10.0, -precision);
    double scaled = value / power;
    double rounded = std::round(scaled);
    if (std::abs(scaled - rounded) == 0.5)
      rounded = 2.0 * std::round(scaled / 2.0);
    return rounded * power;
  }
  // Correctly rounded decimal digits, as Python's own.
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*f", precision, value);
  return std::strtod(buffer, nullptr);
}

Value roundFilter(Runtime &rt, V value, A a) {
  Bound bound("round", a, {"precision", "method"});
  Int precision = std::clamp<Int>(bound.integer(0, 0), -400, 400);
  std::string method = bound.has(1) ? str(rt, bound[1]).str() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (value.isUndefined())
    failUndefined(value);
  if (!value.isNumber())
    fail("type " + typeName(value) + " doesn't define __round__ method");
  if (method == "common") {
    if (!value.isIntegral())
      return Value::number(roundTo(value.toDouble(), int(precision)));
    if (precision >= 0)
      return Value::integer(value.toInt());
    Int power = 1;
    for (Int i = 0; i < -precision && i < 30; ++i)
      power *= 10;
    Int v = value.toInt();
    Int rest = ((v % power) + power) % power;
    Int down = v - rest;
    bool up =
        rest * 2 > power || (rest * 2 == power && (down / power) % 2 != 0);
    return Value::integer(up ? down + power : down);
  }
  // func(value * 10**precision) / 10**precision
  double power = std::pow(10.0, double(precision));
  double scaled = value.toDouble() * power;
  if (!std::isfinite(scaled))
    fail("cannot convert float to integer");
  return Value::number(
      (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power);
}

Value indent(Runtime &rt, V value, A a) {
  Bound bound("indent", a, {"width", "first", "blank"});
  auto *s = value.string();
  if (value.isUndefined())
    failUndefined(value);
  if (!s)
    fail("indent expects a string, not " + typeName(value));
  Text indention;
  if (bound.has(0) && bound[0].string()) {
    indention = bound.text(0);
  } else {
    Int width = bound.integer(0, 4);
    if (width > 10000)
      fail("indent() argument 'width' is out of range");
    indention = Text(std::string(size_t(std::max<Int>(0, width)), ' '),
                     Origin::Template);
  }
  bool first = bound.flag(1, false), blank = bound.flag(2, false);
  Text source = s->text;
  source.append("\n", Origin::Template);
  Text out;
  size_t i = 0;
  for (const Text &line : splitLines(source, false)) {
    rt.touch(line.size() + indention.size());
    if (i > 0)
      out.append("\n", Origin::Template);
    if (i == 0 ? first : (blank || !line.empty()))
      out.append(indention);
    out.append(line);
    if (out.size() > rt.limits().outputBytes)
      fail("an indented string exceeds the output limit");
    ++i;
  }
  return rt.string(std::move(out), s->markup);
}

Value center(Runtime &rt, V value, A a) {
  Bound bound("center", a, {"width"});
  Arguments width;
  width.positional = {bound.get(0, Value::integer(80))};
  return callStringMethod(rt, rt.string(str(rt, value)), "center", width);
}

Value formatFilter(Runtime &rt, V value, A a) {
  if (!a.positional.empty() && !a.named.empty())
    fail("can't handle positional and keyword arguments at the same time");
  Value argument;
  if (!a.named.empty()) {
    Runtime::DictBuilder dict(rt);
    for (auto &[name, item] : a.named)
      dict.set(rt.string(name), item);
    argument = dict.finish();
  } else {
    argument = rt.tuple(a.positional);
  }
  if (isMarkup(value))
    failUnsupported("'%' on a string marked safe is not supported");
  return rt.string(percentFormat(rt, str(rt, value), argument));
}

Value truncate(Runtime &rt, V value, A a) {
  Bound bound("truncate", a, {"length", "killwords", "end", "leeway"});
  auto *s = value.string();
  if (value.isUndefined())
    failUndefined(value);
  if (!s)
    fail("truncate expects a string, not " + typeName(value));
  Int limit = bound.integer(0, 255);
  Text end = bound.has(2) ? bound.text(2) : Text("...", Origin::Template);
  Int endSize = Int(countCodePoints(end.view()));
  Int leeway = bound.has(3) && !bound[3].isNone() ? bound.integer(3, 5) : 5;
  if (limit < endSize)
    fail("expected length >= " + intText(endSize) + ", got " + intText(limit));
  if (leeway < 0)
    fail("expected leeway >= 0, got " + intText(leeway));
  if (Int(countCodePoints(s->text.view())) <= limit + leeway)
    return value;
  size_t cut = byteOffset(s->text.view(), size_t(limit - endSize));
  if (!bound.flag(1, false)) {
    size_t space = s->text.view().substr(0, cut).rfind(' ');
    if (space != std::string_view::npos)
      cut = space;
  }
  Text out = s->text.slice(0, cut);
  out.append(end);
  return rt.string(std::move(out), s->markup);
}

Value wordCount(Runtime &rt, V value, A a) {
  Bound bound("wordcount", a, {});
  Text text = str(rt, value);
  Int words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text.view(), i);
    bool word =
        c == '_' || isAlpha(c) || isDecimal(c) || isDigit(c) || isNumeric(c);
    words += word && !inside;
    inside = word;
  }
  return Value::integer(words);
}

Value urlEncode(Runtime &rt, V value, A a) {
  Bound bound("urlencode", a, {});
  auto encode = [&](const Text &text, bool query) {
    Text out;
    for (size_t i = 0; i < text.size(); ++i) {
      unsigned char c = text.str()[i];
      if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
          c == '_' || c == '.' || c == '-' || c == '~' ||
          (c == '/' && !query)) {
        out.append(text, i, i + 1);
      } else if (query && c == ' ') {
        out.append("+", text.originAt(i));
      } else {
        char escape[8];
        std::snprintf(escape, sizeof escape, "%%%02X", c);
        out.append(escape, text.originAt(i));
      }
    }
    return out;
  };
  if (value.string() || (!value.dict() && !value.sequence()))
    return rt.string(encode(str(rt, value), false));
  Text out;
  auto pair = [&](V key, V item) {
    if (!out.empty())
      out.append("&", Origin::Template);
    out.append(encode(str(rt, key), true));
    out.append("=", Origin::Template);
    out.append(encode(str(rt, item), true));
  };
  if (auto *d = value.dict()) {
    for (auto &[key, item] : d->entries)
      pair(key, item);
  } else {
    for (auto &entry : iterate(rt, value)) {
      std::vector<Value> parts = iterate(rt, entry);
      if (parts.size() != 2)
        fail("urlencode expects pairs");
      pair(parts[0], parts[1]);
    }
  }
  return rt.string(std::move(out));
}

Value escape(Runtime &rt, V value, A a, bool force) {
  Bound bound("escape", a, {});
  if (isMarkup(value) && !force)
    return value;
  return rt.string(escapeHtml(str(rt, value)), true);
}

Value attr(Runtime &rt, V value, A a) {
  Bound bound("attr", a, {"name"}, 1);
  // Attributes alone, never items.
  std::string name = bound.text(0).str();
  if (auto *d = value.dict(); d && d->find(name)) {
    Value found = getAttribute(rt, value, name);
    if (!found.is<std::shared_ptr<const MethodObject>>())
      return Value::undefined(quoted("dict object") + " has no attribute " +
                              quoted(name));
    return found;
  }
  return getAttribute(rt, value, name);
}

// The number that float() makes of a value.
double asFloat(V value) {
  if (value.isUndefined())
    failUndefined(value);
  if (value.isNumber())
    return value.toDouble();
  auto *s = value.string();
  if (!s)
    fail("float() argument must be a string or a real number, not " +
         quoted(typeName(value)));
  auto number = parseFloat(s->text.view());
  if (!number)
    fail("could not convert string to float: " + quoted(s->text.view()));
  return *number;
}

Value fileSize(Runtime &rt, V value, A a) {
  Bound bound("filesizeformat", a, {"binary"});
  double bytes = asFloat(value);
  const bool binary = bound.flag(0, false);
  const Int base = binary ? 1024 : 1000;
  if (bytes == 1)
    return rt.string("1 Byte");
  if (bytes < double(base)) {
    if (std::isinf(bytes))
      fail("cannot convert float infinity to integer");
    if (std::abs(bytes) > 0x1p110)
      fail("an integer result is out of range");
    return rt.string(intText(static_cast<Int>(bytes)) + " Bytes");
  }
  // The unit is an integer, wider than a double's own; comparing is exact.
  Int unit = base;
  char letter = 'Y';
  for (char prefix : std::string_view(binary ? "KMGTPEZY" : "kMGTPEZY")) {
    unit *= base;
    letter = prefix;
    if (static_cast<long double>(bytes) < static_cast<long double>(unit))
      break;
  }
  double scaled = double(base) * bytes / double(unit);
  char number[400] = "nan";
  if (!std::isnan(scaled))
    std::snprintf(number, sizeof number, "%.1f", scaled);
  return rt.string(std::string(number) + " " + letter + (binary ? "iB" : "B"));
}

// An item by chance, and not by the seed of anything.
Value randomItem(Runtime &rt, V value, A a) {
  Bound bound("random", a, {});
  auto *s = value.sequence();
  if (s && s->kind == SequenceKind::Generator)
    fail("object of type 'generator' has no len()");
  size_t size = length(rt, value);
  if (size == 0)
    return Value::undefined("No random item, sequence was empty.");
  std::random_device device;
  Int index = Int(std::uniform_int_distribution<size_t>(0, size - 1)(device));
  Value item = getItem(rt, value, Value::integer(index));
  if (item.isUndefined()) // of a dict: Python looks the number up
    fail("random: no key " + intText(index));
  return item;
}

const std::map<std::string_view, Filter> &filters() {
  static const std::map<std::string_view, Filter> table = {
      {"abs", absFilter},
      {"attr", attr},
      {"capitalize", textFilter<capitalize>},
      {"center", center},
      {"d", defaultValue},
      {"default", defaultValue},
      {"e", [](Runtime &rt, V v, A a) { return escape(rt, v, a, false); }},
      {"escape", [](Runtime &rt, V v, A a) { return escape(rt, v, a, false); }},
      {"forceescape",
       [](Runtime &rt, V v, A a) { return escape(rt, v, a, true); }},
      {"filesizeformat", fileSize},
      {"float", floatFilter},
      {"format", formatFilter},
      {"indent", indent},
      {"int", intFilter},
      {"lower", textFilter<lower>},
      {"pprint", prettyPrint},
      {"random", randomItem},
      {"replace", replaceFilter},
      {"round", roundFilter},
      {"safe",
       [](Runtime &rt, V v, A a) {
         Bound bound("safe", a, {});
         return rt.string(str(rt, v), true);
       }},
      {"string",
       [](Runtime &rt, V v, A a) {
         Bound bound("string", a, {});
         return v.string() ? v : rt.string(str(rt, v));
       }},
      {"striptags", stripTags},
      {"title", textFilter<titleWords>},
      {"tojson",
       [](Runtime &rt, V v, A a) { return rt.string(toJson(rt, v, a)); }},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", textFilter<upper>},
      {"urlencode", urlEncode},
      {"urlize", urlize},
      {"wordcount", wordCount},
      {"wordwrap", wordWrap},
      {"xmlattr", xmlAttributes},
  };
  return table;
}

constexpr std::string_view sequenceFilters[] = {
    "batch", "count",  "dictsort",   "first",   "groupby", "items",
    "join",  "last",   "length",     "list",    "map",     "max",
    "min",   "reject", "rejectattr", "reverse", "select",  "selectattr",
    "slice", "sort",   "sum",        "unique",
};

} // namespace

bool knownFilter(std::string_view name) {
  return filters().count(name) ||
         std::find(std::begin(sequenceFilters), std::end(sequenceFilters),
                   name) != std::end(sequenceFilters);
}

Value applyFilter(Runtime &rt, const std::string &name, const Value &input,
                  const Arguments &arguments) {
  rt.step();
  auto it = filters().find(name);
  if (it != filters().end())
    return it->second(rt, input, arguments);
  return *applySequenceFilter(rt, name, input, arguments);
}

} // namespace ingot::jinja
