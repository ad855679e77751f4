// See Value.h: truth, equality, order, hashing and printing of values.
#include "runtime/text/jinja/Value.h"

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Runtime.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace ingot::jinja {

void fail(std::string message) {
  throw Failure{StatusCode::InvalidInput, std::move(message)};
}
void failUnsupported(std::string message) {
  throw Failure{StatusCode::Unsupported, std::move(message)};
}

Int Value::toInt() const {
  if (auto *b = as<bool>())
    return *b ? 1 : 0;
  return *as<Int>();
}

double Value::toDouble() const {
  if (auto *d = as<double>())
    return *d;
  return static_cast<double>(toInt());
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

static const char *kindName(SequenceKind kind) {
  switch (kind) {
  case SequenceKind::List:
    return "list";
  case SequenceKind::Tuple:
    return "tuple";
  case SequenceKind::Group:
    return "tuple";
  case SequenceKind::Range:
    return "range";
  case SequenceKind::DictKeys:
    return "dict_keys";
  case SequenceKind::DictValues:
    return "dict_values";
  case SequenceKind::DictItems:
    return "dict_items";
  case SequenceKind::Generator:
    return "generator";
  }
  return "?";
}

std::string typeName(const Value &value) {
  struct Visitor {
    std::string operator()(const Undefined &) { return "Undefined"; }
    std::string operator()(const None &) { return "NoneType"; }
    std::string operator()(bool) { return "bool"; }
    std::string operator()(Int) { return "int"; }
    std::string operator()(double) { return "float"; }
    std::string operator()(const StringPtr &s) {
      return s->markup ? "Markup" : "str";
    }
    std::string operator()(const SequencePtr &s) { return kindName(s->kind); }
    std::string operator()(const DictPtr &) { return "dict"; }
    std::string operator()(NamespaceObject *) { return "Namespace"; }
    std::string operator()(LoopObject *) { return "LoopContext"; }
    std::string operator()(MacroObject *) { return "Macro"; }
    std::string operator()(HelperObject *h) {
      return h->joiner ? "Joiner" : "Cycler";
    }
    std::string operator()(Builtin) { return "function"; }
    std::string operator()(const std::shared_ptr<const MethodObject> &) {
      return "builtin_function_or_method";
    }
  };
  return std::visit(Visitor{}, value.storage());
}

bool truthy(const Value &value) {
  if (auto *b = value.as<bool>())
    return *b;
  if (auto *i = value.as<Int>())
    return *i != 0;
  if (auto *d = value.as<double>())
    return *d != 0;
  if (auto *s = value.string())
    return !s->text.empty();
  if (auto *s = value.sequence())
    return s->kind == SequenceKind::Generator || !s->items.empty();
  if (auto *d = value.dict())
    return !d->entries.empty();
  return !value.isUndefined() && !value.isNone();
}

static bool isTupleKind(SequenceKind kind) {
  return kind == SequenceKind::Tuple || kind == SequenceKind::Group;
}

// Exact comparison of an integer with a float: -1, 0, 1; 2 with NaN.
static int compareNumbers(const Value &a, const Value &b) {
  if (a.isIntegral() && b.isIntegral()) {
    Int x = a.toInt(), y = b.toInt();
    return x < y ? -1 : x > y;
  }
  if (!a.isIntegral() && !b.isIntegral()) {
    double x = a.toDouble(), y = b.toDouble();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (b.isIntegral()) {
    int c = compareNumbers(b, a);
    return c == 2 ? 2 : -c;
  }
  Int x = a.toInt();
  double y = b.toDouble();
  if (std::isnan(y))
    return 2;
  if (y >= 0x1p126)
    return -1;
  if (y <= -0x1p126)
    return 1;
  Int whole = static_cast<Int>(y);
  if (x != whole)
    return x < whole ? -1 : 1;
  double fraction = y - static_cast<double>(whole);
  return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
}

bool equal(Runtime &rt, const Value &a, const Value &b) {
  rt.step();
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b) == 0;
  if (auto *s = a.string()) {
    auto *t = b.string();
    if (!t || s->text.size() != t->text.size())
      return false;
    rt.touch(s->text.size());
    return s->text.str() == t->text.str();
  }
  if (auto *s = a.sequence()) {
    auto *t = b.sequence();
    if (!t)
      return false;
    if (s == t)
      return true;
    if (s->kind != t->kind && !(isTupleKind(s->kind) && isTupleKind(t->kind)))
      return false;
    if (s->kind == SequenceKind::Generator ||
        s->kind == SequenceKind::DictValues)
      return false;
    if (s->items.size() != t->items.size())
      return false;
    for (size_t i = 0; i < s->items.size(); ++i)
      if (!equal(rt, s->items[i], t->items[i]))
        return false;
    return true;
  }
  if (auto *d = a.dict()) {
    auto *e = b.dict();
    if (!e || d->entries.size() != e->entries.size())
      return false;
    if (d == e)
      return true;
    for (auto &[key, value] : d->entries) {
      const Value *other = e->find(rt, key);
      if (!other || !equal(rt, value, *other))
        return false;
    }
    return true;
  }
  if (a.isUndefined() || b.isUndefined())
    return a.isUndefined() && b.isUndefined();
  if (a.isNone() || b.isNone())
    return a.isNone() && b.isNone();
  if (a.storage().index() != b.storage().index())
    return false;
  if (auto *p = a.as<NamespaceObject *>())
    return *p == *b.as<NamespaceObject *>();
  if (auto *p = a.as<LoopObject *>())
    return *p == *b.as<LoopObject *>();
  if (auto *p = a.as<MacroObject *>())
    return *p == *b.as<MacroObject *>();
  if (auto *p = a.as<HelperObject *>())
    return *p == *b.as<HelperObject *>();
  if (auto *p = a.as<Builtin>())
    return *p == *b.as<Builtin>();
  if (auto *p = a.as<std::shared_ptr<const MethodObject>>()) {
    auto &q = *b.as<std::shared_ptr<const MethodObject>>();
    return (*p)->name == q->name && equal(rt, (*p)->self, q->self);
  }
  return false;
}

bool less(Runtime &rt, const Value &a, const Value &b, const char *op) {
  rt.step();
  bool orEqual = op[1] == '=';
  bool swapped = op[0] == '>';
  const Value &x = swapped ? b : a;
  const Value &y = swapped ? a : b;
  if (x.isNumber() && y.isNumber()) {
    int c = compareNumbers(x, y);
    return c == -1 || (orEqual && c == 0);
  }
  auto *s = x.string();
  auto *t = y.string();
  if (s && t) {
    rt.touch(std::min(s->text.size(), t->text.size()));
    int c = s->text.str().compare(t->text.str());
    return c < 0 || (orEqual && c == 0);
  }
  auto *p = x.sequence();
  auto *q = y.sequence();
  if (p && q &&
      ((p->kind == SequenceKind::List && q->kind == SequenceKind::List) ||
       (isTupleKind(p->kind) && isTupleKind(q->kind)))) {
    size_t count = std::min(p->items.size(), q->items.size());
    for (size_t i = 0; i < count; ++i)
      if (!equal(rt, p->items[i], q->items[i]))
        return less(rt, p->items[i], q->items[i], orEqual ? "<=" : "<");
    return orEqual ? p->items.size() <= q->items.size()
                   : p->items.size() < q->items.size();
  }
  if (a.isUndefined())
    failUndefined(a);
  if (b.isUndefined())
    failUndefined(b);
  fail(quoted(op) + " not supported between instances of " +
       quoted(typeName(a)) + " and " + quoted(typeName(b)));
}

bool contains(Runtime &rt, const Value &container, const Value &item) {
  if (auto *s = container.string()) {
    auto *needle = item.string();
    if (!needle)
      fail("'in <string>' requires string as left operand, not " +
           typeName(item));
    rt.touch(s->text.size() + needle->text.size());
    return needle->text.empty() ||
           memmem(s->text.str().data(), s->text.size(),
                  needle->text.str().data(), needle->text.size());
  }
  if (auto *d = container.dict())
    return d->find(rt, item) != nullptr;
  if (container.isUndefined())
    return false;
  if (auto *s = container.sequence()) {
    for (size_t i = s->consumed; i < s->items.size(); ++i) {
      if (s->kind == SequenceKind::Generator)
        s->consumed = i + 1;
      if (equal(rt, s->items[i], item))
        return true;
    }
    return false;
  }
  fail("argument of type " + quoted(typeName(container)) + " is not iterable");
}

size_t length(Runtime &rt, const Value &value) {
  if (auto *s = value.string()) {
    rt.touch(s->text.size());
    return countCodePoints(s->text.view());
  }
  if (auto *s = value.sequence(); s && s->kind != SequenceKind::Generator)
    return s->items.size();
  if (auto *d = value.dict())
    return d->entries.size();
  if (value.isUndefined())
    return 0;
  if (auto *loop = value.as<LoopObject *>())
    return (*loop)->items->size() - (*loop)->first;
  fail("object of type " + quoted(typeName(value)) + " has no len()");
}

static void appendKey(Runtime &rt, std::string &out, const Value &key) {
  rt.step();
  if (auto *s = key.string()) {
    // A string alone is its own key; inside a tuple its length leads.
    out += "s" + std::to_string(s->text.size()) + ":" + s->text.str();
  } else if (key.isNumber()) {
    double d = key.toDouble();
    bool whole =
        key.isIntegral() || (std::abs(d) < 0x1p100 && d == std::floor(d));
    out += whole ? "i" + intText(key.isIntegral() ? key.toInt()
                                                  : static_cast<Int>(d))
                 : "f" + floatRepr(d);
    out += ";";
  } else if (key.isNone()) {
    out += "n";
  } else if (key.isUndefined()) {
    out += "u";
  } else if (auto *s = key.sequence(); s && isTupleKind(s->kind)) {
    out += "(";
    for (auto &item : s->items)
      appendKey(rt, out, item);
    out += ")";
  } else {
    fail("unhashable type: " + quoted(typeName(key)));
  }
}

std::string hashKey(Runtime &rt, const Value &key) {
  std::string out;
  if (auto *s = key.string()) {
    rt.touch(s->text.size());
    return "s" + s->text.str();
  }
  out = "x";
  appendKey(rt, out, key);
  return out;
}

const Value *DictObject::find(std::string_view stringKey) const {
  std::string key = "s";
  key += stringKey;
  auto it = index.find(key);
  return it == index.end() ? nullptr : &entries[it->second].second;
}

const Value *DictObject::find(Runtime &rt, const Value &key) const {
  auto it = index.find(hashKey(rt, key));
  return it == index.end() ? nullptr : &entries[it->second].second;
}

std::string intText(Int value) {
  bool negative = value < 0;
  unsigned __int128 rest =
      negative ? -static_cast<unsigned __int128>(value) : value;
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + int(rest % 10)));
    rest /= 10;
  } while (rest);
  return negative ? "-" + out : out;
}

std::string floatRepr(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  // The shortest digits that read back, laid out as Python lays them out.
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                           std::chars_format::scientific)
                 .ptr;
  std::string_view text(buffer, end - buffer);
  std::string sign;
  if (text[0] == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  size_t e = text.find('e');
  int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(1, text[0]);
  if (e > 2)
    digits += text.substr(2, e - 2);
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (digits.size() > 1)
      out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    std::string magnitude = std::to_string(std::abs(exponent));
    return out + (magnitude.size() < 2 ? "0" : "") + magnitude;
  }
  if (exponent < 0)
    return sign + "0." + std::string(-exponent - 1, '0') + digits;
  if (digits.size() <= size_t(exponent) + 1)
    return sign + digits + std::string(exponent + 1 - digits.size(), '0') +
           ".0";
  return sign + digits.substr(0, exponent + 1) + "." +
         digits.substr(exponent + 1);
}

static void appendStringRepr(Text &out, const Text &text) {
  const std::string &s = text.str();
  bool doubled =
      s.find('\'') != std::string::npos && s.find('"') == std::string::npos;
  char quote = doubled ? '"' : '\'';
  out.append(std::string(1, quote), Origin::Template);
  for (size_t i = 0; i < s.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(s, i);
    Origin origin = text.originAt(begin);
    char buffer[16];
    if (c == char32_t(quote) || c == '\\') {
      out.append("\\", origin);
      out.append(std::string(1, char(c)), origin);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", origin);
    } else if (isPrintable(c)) {
      out.append(text, begin, i);
    } else {
      std::snprintf(buffer, sizeof buffer,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    unsigned(c));
      out.append(buffer, origin);
    }
  }
  out.append(std::string(1, quote), Origin::Template);
}

static void appendItems(Runtime &rt, Text &out, const SequenceObject &s,
                        int depth) {
  bool first = true;
  for (auto &item : s.items) {
    if (!first)
      out.append(", ", Origin::Template);
    first = false;
    appendRepr(rt, out, item, depth + 1);
  }
}

void appendRepr(Runtime &rt, Text &out, const Value &value, int depth) {
  rt.step();
  if (depth > 300)
    fail("a value is nested too deeply to be printed");
  auto plain = [&](std::string_view text) {
    out.append(text, Origin::Template);
  };
  if (out.size() > rt.limits().outputBytes)
    fail("a printed value exceeds the output limit of " +
         std::to_string(rt.limits().outputBytes) + " bytes");
  if (auto *s = value.string()) {
    rt.touch(s->text.size());
    if (s->markup)
      plain("Markup(");
    appendStringRepr(out, s->text);
    return s->markup ? plain(")") : void();
  }
  if (value.isUndefined())
    return plain("Undefined");
  if (value.isNone())
    return plain("None");
  if (auto *b = value.as<bool>())
    return plain(*b ? "True" : "False");
  if (auto *i = value.as<Int>())
    return plain(intText(*i));
  if (auto *d = value.as<double>())
    return plain(floatRepr(*d));
  if (auto *d = value.dict()) {
    plain("{");
    bool first = true;
    for (auto &[key, item] : d->entries) {
      if (!first)
        plain(", ");
      first = false;
      appendRepr(rt, out, key, depth + 1);
      plain(": ");
      appendRepr(rt, out, item, depth + 1);
    }
    return plain("}");
  }
  if (auto *ns = value.as<NamespaceObject *>()) {
    plain("<Namespace {");
    bool first = true;
    for (auto &[key, item] : (*ns)->attributes) {
      if (!first)
        plain(", ");
      first = false;
      appendStringRepr(out, Text(key, Origin::Template));
      plain(": ");
      appendRepr(rt, out, item, depth + 1);
    }
    return plain("}>");
  }
  if (auto *loop = value.as<LoopObject *>())
    return plain("<LoopContext " +
                 std::to_string((*loop)->index0 - (*loop)->first + 1) + "/" +
                 std::to_string(length(rt, value)) + ">");
  if (auto *macro = value.as<MacroObject *>())
    return plain("<Macro '" + (*macro)->node->text + "'>");
  if (auto *s = value.sequence()) {
    switch (s->kind) {
    case SequenceKind::List:
      plain("[");
      appendItems(rt, out, *s, depth);
      return plain("]");
    case SequenceKind::Tuple:
    case SequenceKind::Group:
      plain("(");
      appendItems(rt, out, *s, depth);
      return plain(s->items.size() == 1 ? ",)" : ")");
    case SequenceKind::DictKeys:
    case SequenceKind::DictValues:
    case SequenceKind::DictItems:
      plain(std::string(kindName(s->kind)) + "([");
      appendItems(rt, out, *s, depth);
      return plain("])");
    case SequenceKind::Range:
    case SequenceKind::Generator:
      break;
    }
  }
  // Python prints a memory address or an internal name here.
  failUnsupported("a value of type " + quoted(typeName(value)) +
                  " cannot be printed");
}

Text str(Runtime &rt, const Value &value) {
  if (auto *s = value.string()) {
    rt.touch(s->text.size());
    return s->text;
  }
  if (value.isUndefined())
    return Text();
  Text out;
  appendRepr(rt, out, value);
  return out;
}

std::vector<Value> iterate(Runtime &rt, const Value &value) {
  std::vector<Value> out;
  if (auto *s = value.string()) {
    rt.step(s->text.size());
    const std::string &bytes = s->text.str();
    for (size_t i = 0; i < bytes.size();) {
      size_t begin = i;
      nextCodePoint(bytes, i);
      out.push_back(rt.string(s->text.slice(begin, i)));
    }
    return out;
  }
  if (auto *s = value.sequence()) {
    rt.step(s->remaining() / 8);
    out.assign(s->items.begin() + s->consumed, s->items.end());
    if (s->kind == SequenceKind::Generator)
      s->consumed = s->items.size();
    return out;
  }
  if (auto *d = value.dict()) {
    rt.step(d->entries.size() / 8);
    for (auto &entry : d->entries)
      out.push_back(entry.first);
    return out;
  }
  if (value.isUndefined())
    return out;
  fail(quoted(typeName(value)) + " object is not iterable");
}

} // namespace ingot::jinja
