// The `tojson` filter as Hugging Face overrides it: json.dumps without HTML
// escaping. Quotes, commas and the like are the template's; what stands inside
// strings keeps its origin, escapes included.
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot::jinja {
namespace {

class Dumper {
public:
  Dumper(Runtime &rt, const Arguments &options);
  Text run(const Value &value) {
    dump(value, 0);
    return std::move(out_);
  }

private:
  void plain(std::string_view text) { out_.append(text, Origin::Template); }
  void newline(int level) {
    if (!indented_)
      return;
    plain("\n");
    for (int i = 0; i < level; ++i)
      out_.append(indent_);
  }
  void dump(const Value &value, int level);
  void dumpString(const Text &text);
  std::string number(const Value &value);

  Runtime &rt_;
  Text out_;
  bool ascii_, sortKeys_, indented_ = false;
  Text indent_, itemSeparator_, keySeparator_;
};

Dumper::Dumper(Runtime &rt, const Arguments &options) : rt_(rt) {
  Bound bound("tojson", options,
              {"ensure_ascii", "indent", "separators", "sort_keys"});
  ascii_ = bound.flag(0, false);
  sortKeys_ = bound.flag(3, false);
  if (bound.has(1) && !bound[1].isNone()) {
    indented_ = true;
    if (bound[1].string()) {
      indent_ = bound.text(1);
    } else {
      Int width = bound.integer(1, 0);
      if (width > 1000)
        fail("tojson() argument 'indent' is out of range");
      indent_ = Text(std::string(size_t(std::max<Int>(0, width)), ' '),
                     Origin::Template);
    }
  }
  itemSeparator_ = Text(indented_ ? "," : ", ", Origin::Template);
  keySeparator_ = Text(": ", Origin::Template);
  if (bound.has(2) && !bound[2].isNone()) {
    std::vector<Value> parts = iterate(rt, bound[2]);
    if (parts.size() != 2 || !parts[0].string() || !parts[1].string())
      fail("tojson() argument 'separators' must be two strings");
    itemSeparator_ = parts[0].string()->text;
    keySeparator_ = parts[1].string()->text;
  }
}

std::string Dumper::number(const Value &value) {
  if (auto *i = value.as<Int>())
    return intText(*i);
  double d = value.toDouble();
  if (std::isnan(d))
    return "NaN";
  if (std::isinf(d))
    return d < 0 ? "-Infinity" : "Infinity";
  return floatRepr(d);
}

void Dumper::dumpString(const Text &text) {
  rt_.touch(text.size());
  const std::string &s = text.str();
  plain("\"");
  size_t copied = 0; // bytes before this are in the output
  for (size_t i = 0; i < s.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(s, i);
    char escape[16] = {};
    switch (c) {
    case '"':
      std::snprintf(escape, sizeof escape, "\\\"");
      break;
    case '\\':
      std::snprintf(escape, sizeof escape, "\\\\");
      break;
    case '\n':
      std::snprintf(escape, sizeof escape, "\\n");
      break;
    case '\r':
      std::snprintf(escape, sizeof escape, "\\r");
      break;
    case '\t':
      std::snprintf(escape, sizeof escape, "\\t");
      break;
    case '\f':
      std::snprintf(escape, sizeof escape, "\\f");
      break;
    case '\b':
      std::snprintf(escape, sizeof escape, "\\b");
      break;
    default:
      if (c < 0x20 || (ascii_ && c > 0x7E && c < 0x10000))
        std::snprintf(escape, sizeof escape, "\\u%04x", unsigned(c));
      else if (ascii_ && c >= 0x10000)
        std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                      unsigned(0xD800 + ((c - 0x10000) >> 10)),
                      unsigned(0xDC00 + ((c - 0x10000) & 0x3FF)));
    }
    if (!escape[0])
      continue;
    out_.append(text, copied, begin);
    out_.append(escape, text.originAt(begin));
    copied = i;
  }
  out_.append(text, copied, s.size());
  plain("\"");
}

void Dumper::dump(const Value &value, int level) {
  rt_.step();
  if (out_.size() > rt_.limits().outputBytes)
    fail("the result of tojson exceeds the output limit");
  if (auto *s = value.string())
    return dumpString(s->text);
  if (value.isNone())
    return plain("null");
  if (auto *b = value.as<bool>())
    return plain(*b ? "true" : "false");
  if (value.isNumber())
    return plain(number(value));
  if (auto *s = value.sequence();
      s && (s->kind == SequenceKind::List || s->kind == SequenceKind::Tuple ||
            s->kind == SequenceKind::Group)) {
    if (s->items.empty())
      return plain("[]");
    plain("[");
    for (size_t i = 0; i < s->items.size(); ++i) {
      if (i)
        out_.append(itemSeparator_);
      newline(level + 1);
      dump(s->items[i], level + 1);
    }
    newline(level);
    return plain("]");
  }
  if (auto *d = value.dict()) {
    if (d->entries.empty())
      return plain("{}");
    std::vector<size_t> order(d->entries.size());
    std::iota(order.begin(), order.end(), size_t(0));
    if (sortKeys_) {
      std::vector<Value> keys;
      for (auto &entry : d->entries)
        keys.push_back(entry.first);
      order = sortedOrder(rt_, keys, false);
    }
    plain("{");
    for (size_t i = 0; i < order.size(); ++i) {
      auto &[key, item] = d->entries[order[i]];
      if (i)
        out_.append(itemSeparator_);
      newline(level + 1);
      if (auto *s = key.string()) {
        dumpString(s->text);
      } else if (key.isNone()) {
        plain("\"null\"");
      } else if (auto *b = key.as<bool>()) {
        plain(*b ? "\"true\"" : "\"false\"");
      } else if (key.isNumber()) {
        plain("\"" + number(key) + "\"");
      } else {
        fail("keys must be str, int, float, bool or None, not " +
             typeName(key));
      }
      out_.append(keySeparator_);
      dump(item, level + 1);
    }
    newline(level);
    return plain("}");
  }
  fail("Object of type " + typeName(value) + " is not JSON serializable");
}

} // namespace

Text toJson(Runtime &rt, const Value &value, const Arguments &options) {
  return Dumper(rt, options).run(value);
}

} // namespace ingot::jinja
