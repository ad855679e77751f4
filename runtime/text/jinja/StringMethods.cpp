// The methods of Python's str.
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ingot::jinja {
namespace {

using Method = Value (*)(Runtime &, const Text &, const Arguments &);

Value textList(Runtime &rt, std::vector<Text> parts) {
  std::vector<Value> items;
  for (Text &part : parts)
    items.push_back(rt.string(std::move(part)));
  return rt.list(std::move(items));
}

size_t findFrom(std::string_view s, std::string_view needle, size_t from) {
  auto *found = static_cast<const char *>(
      memmem(s.data() + from, s.size() - from, needle.data(), needle.size()));
  return found ? size_t(found - s.data()) : std::string_view::npos;
}

// The last occurrence that ends at or before `end`.
size_t findLast(Runtime &rt, std::string_view s, std::string_view needle,
                size_t end) {
  if (needle.size() > end)
    return std::string_view::npos;
  for (size_t i = end - needle.size() + 1; i-- > 0;) {
    size_t k = 0;
    while (k < needle.size() && s[i + k] == needle[k])
      ++k;
    rt.step(k / 64 + (i % 64 == 0));
    if (k == needle.size())
      return i;
  }
  return std::string_view::npos;
}

std::vector<Text> splitSpace(const Text &text, Int limit) {
  std::vector<Text> out;
  size_t i = 0;
  const std::string &s = text.str();
  auto skip = [&](bool space) {
    while (i < s.size()) {
      size_t next = i;
      if (isSpace(nextCodePoint(s, next)) != space)
        break;
      i = next;
    }
  };
  for (;;) {
    skip(true);
    if (i >= s.size())
      return out;
    if (limit-- == 0) {
      out.push_back(text.slice(i, s.size()));
      return out;
    }
    size_t begin = i;
    skip(false);
    out.push_back(text.slice(begin, i));
  }
}

std::vector<Text> rsplitSpace(const Text &text, Int limit) {
  std::vector<Text> words = splitSpace(text, -1);
  if (limit < 0 || Int(words.size()) <= limit)
    return words;
  // Walk back over `limit` words; what stands before them stays whole.
  Text rest = strip(text, nullptr, true, true);
  std::vector<Text> tail;
  size_t end = rest.size();
  for (Int n = 0; n < limit; ++n) {
    const Text &word = words[words.size() - 1 - size_t(n)];
    tail.push_back(word);
    end -= word.size();
    rest = strip(rest.slice(0, end), nullptr, false, true);
    end = rest.size();
  }
  tail.push_back(rest);
  std::reverse(tail.begin(), tail.end());
  return tail;
}

Value split(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("split", arguments, {"sep", "maxsplit"});
  Int limit = bound.integer(1, -1);
  rt.touch(text.size());
  if (!bound.has(0) || bound[0].isNone())
    return textList(rt, splitSpace(text, limit));
  const Text &separator = bound.text(0);
  if (separator.empty())
    fail("empty separator");
  std::vector<Text> out;
  size_t pos = 0;
  for (; limit != 0; --limit) {
    size_t at = findFrom(text.view(), separator.view(), pos);
    if (at == std::string_view::npos)
      break;
    rt.step();
    out.push_back(text.slice(pos, at));
    pos = at + separator.size();
  }
  out.push_back(text.slice(pos, text.size()));
  return textList(rt, std::move(out));
}

Value rsplit(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("rsplit", arguments, {"sep", "maxsplit"});
  Int limit = bound.integer(1, -1);
  rt.touch(text.size());
  if (!bound.has(0) || bound[0].isNone())
    return textList(rt, rsplitSpace(text, limit));
  const Text &separator = bound.text(0);
  if (separator.empty())
    fail("empty separator");
  std::vector<Text> out;
  size_t end = text.size();
  for (; limit != 0; --limit) {
    size_t at = findLast(rt, text.view(), separator.view(), end);
    if (at == std::string_view::npos)
      break;
    out.push_back(text.slice(at + separator.size(), end));
    end = at;
  }
  out.push_back(text.slice(0, end));
  std::reverse(out.begin(), out.end());
  return textList(rt, std::move(out));
}

Value partition(Runtime &rt, const Text &text, const Arguments &arguments,
                bool last) {
  Bound bound(last ? "rpartition" : "partition", arguments, {"sep"}, 1, 1);
  const Text &separator = bound.text(0);
  if (separator.empty())
    fail("empty separator");
  rt.touch(text.size());
  size_t at = last ? findLast(rt, text.view(), separator.view(), text.size())
                   : findFrom(text.view(), separator.view(), 0);
  Text parts[3];
  if (at == std::string_view::npos) {
    parts[last ? 2 : 0] = text;
  } else {
    parts[0] = text.slice(0, at);
    parts[1] = text.slice(at, at + separator.size());
    parts[2] = text.slice(at + separator.size(), text.size());
  }
  return rt.tuple(
      {rt.string(parts[0]), rt.string(parts[1]), rt.string(parts[2])});
}

// The part [start, end) of the text in bytes, from optional code point bounds.
struct Part {
  size_t begin, end;
  bool valid; // start <= length
};
Part partOf(const Text &text, const Bound &bound, size_t first) {
  Int count = Int(countCodePoints(text.view()));
  auto clamp = [&](size_t i, Int fallback) {
    if (!bound.has(i) || bound[i].isNone())
      return fallback;
    Int value = bound.integer(i, 0);
    if (value < 0)
      value = std::max<Int>(0, value + count);
    return value;
  };
  Int begin = clamp(first, 0);
  Int end = std::min(clamp(first + 1, count), count);
  if (begin > end)
    return {0, 0, false};
  return {byteOffset(text.view(), size_t(begin)),
          byteOffset(text.view(), size_t(end)), true};
}

Value startsOrEnds(Runtime &rt, const Text &text, const Arguments &arguments,
                   bool ends) {
  const char *name = ends ? "endswith" : "startswith";
  Bound bound(name, arguments, {"prefix", "start", "end"}, 1, 3);
  rt.touch(text.size());
  Part part = partOf(text, bound, 1);
  std::string_view s = text.view().substr(part.begin, part.end - part.begin);
  auto matches = [&](const Value &value) {
    auto *t = value.string();
    if (!t)
      fail(std::string(name) +
           " first arg must be str or a tuple of str, not " + typeName(value));
    return part.valid &&
           (ends ? s.ends_with(t->text.view()) : s.starts_with(t->text.view()));
  };
  auto *options = bound[0].sequence();
  if (!options || options->kind != SequenceKind::Tuple)
    return Value::boolean(matches(bound[0]));
  bool any = false;
  for (auto &option : options->items)
    any = matches(option) || any;
  return Value::boolean(any);
}

Value findMethod(Runtime &rt, const Text &text, const Arguments &arguments,
                 const char *name, bool last, bool mustFind) {
  Bound bound(name, arguments, {"sub", "start", "end"}, 1, 3);
  const Text &needle = bound.text(0);
  rt.touch(text.size());
  Part part = partOf(text, bound, 1);
  size_t at = std::string_view::npos;
  std::string_view s = text.view().substr(0, part.end);
  if (part.valid) {
    at = last ? findLast(rt, s, needle.view(), part.end)
              : findFrom(s, needle.view(), part.begin);
    if (at != std::string_view::npos && at < part.begin)
      at = std::string_view::npos;
  }
  if (at == std::string_view::npos) {
    if (mustFind)
      fail("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(Int(countCodePoints(text.view().substr(0, at))));
}

Value count(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("count", arguments, {"sub", "start", "end"}, 1, 3);
  const Text &needle = bound.text(0);
  rt.touch(text.size());
  Part part = partOf(text, bound, 1);
  if (!part.valid)
    return Value::integer(0);
  std::string_view s = text.view().substr(part.begin, part.end - part.begin);
  if (needle.empty())
    return Value::integer(Int(countCodePoints(s)) + 1);
  Int found = 0;
  for (size_t pos = 0;
       (pos = findFrom(s, needle.view(), pos)) != std::string_view::npos;
       pos += needle.size())
    ++found;
  return Value::integer(found);
}

Value stripMethod(Runtime &rt, const Text &text, const Arguments &arguments,
                  const char *name, bool left, bool right) {
  Bound bound(name, arguments, {"chars"}, 0, 1);
  rt.touch(text.size());
  bool some = bound.has(0) && !bound[0].isNone();
  return rt.string(strip(text, some ? &bound.text(0) : nullptr, left, right));
}

Value join(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("join", arguments, {"iterable"}, 1, 1);
  Text out;
  size_t i = 0;
  for (auto &item : iterate(rt, bound[0])) {
    auto *s = item.string();
    if (!s)
      fail("sequence item " + std::to_string(i) + ": expected str instance, " +
           typeName(item) + " found");
    if (i++)
      out.append(text);
    out.append(s->text);
    rt.touch(text.size());
    if (out.size() > rt.limits().outputBytes)
      fail("a joined string exceeds the output limit");
  }
  return rt.string(std::move(out));
}

Value pad(Runtime &rt, const Text &text, const Arguments &arguments,
          const char *name, int side) {
  Bound bound(name, arguments, {"width", "fillchar"}, 1, 2);
  Int width = bound.integer(0, 0);
  Text fill(" ", Origin::Template);
  if (bound.has(1)) {
    fill = bound.text(1);
    if (countCodePoints(fill.view()) != 1)
      fail("The fill character must be exactly one character long");
  }
  Int size = Int(countCodePoints(text.view()));
  if (width <= size)
    return rt.string(text);
  if (width > Int(rt.limits().outputBytes))
    fail("a padded string exceeds the output limit");
  Int total = width - size;
  // Python's own rounding for center: odd padding and odd width lean left.
  Int left = side < 0 ? 0 : side > 0 ? total : total / 2 + (total & width & 1);
  rt.step(uint64_t(total));
  Text out;
  for (Int i = 0; i < left; ++i)
    out.append(fill);
  out.append(text);
  for (Int i = left; i < total; ++i)
    out.append(fill);
  return rt.string(std::move(out));
}

Value zfill(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("zfill", arguments, {"width"}, 1, 1);
  Int width = bound.integer(0, 0);
  Int size = Int(countCodePoints(text.view()));
  if (width <= size)
    return rt.string(text);
  if (width > Int(rt.limits().outputBytes))
    fail("a padded string exceeds the output limit");
  size_t sign = !text.empty() && (text.str()[0] == '+' || text.str()[0] == '-');
  Text out = text.slice(0, sign);
  out.append(std::string(size_t(width - size), '0'), Origin::Template);
  out.append(text, sign, text.size());
  return rt.string(std::move(out));
}

Value expandTabs(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("expandtabs", arguments, {"tabsize"});
  Int size = bound.integer(0, 8);
  if (size > 1000)
    fail("expandtabs() argument 'tabsize' is out of range");
  rt.step(text.size());
  Text out;
  Int column = 0;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    if (c == '\t') {
      if (size > 0) {
        Int spaces = size - column % size;
        rt.step(uint64_t(spaces));
        out.append(std::string(size_t(spaces), ' '), text.originAt(begin));
        column += spaces;
      }
      continue;
    }
    out.append(text, begin, i);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return rt.string(std::move(out));
}

Value swapCase(Runtime &rt, const Text &text, const Arguments &arguments) {
  Bound bound("swapcase", arguments, {});
  Text out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = nextCodePoint(text.view(), i);
    Text one = text.slice(begin, i);
    out.append(isUpper(c)   ? mapCase(one, CaseMap::Lower)
               : isLower(c) ? mapCase(one, CaseMap::Upper)
                            : one);
  }
  return rt.string(std::move(out));
}

Value removeAffix(Runtime &rt, const Text &text, const Arguments &arguments,
                  bool suffix) {
  Bound bound(suffix ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1,
              1);
  const Text &affix = bound.text(0);
  if (suffix && !affix.empty() && text.view().ends_with(affix.view()))
    return rt.string(text.slice(0, text.size() - affix.size()));
  if (!suffix && text.view().starts_with(affix.view()))
    return rt.string(text.slice(affix.size(), text.size()));
  return rt.string(text);
}

template <typename Predicate>
Value all(const Text &text, const Arguments &arguments, const char *name,
          Predicate predicate, bool ifEmpty = false) {
  Bound bound(name, arguments, {});
  if (text.empty())
    return Value::boolean(ifEmpty);
  for (size_t i = 0; i < text.size();)
    if (!predicate(nextCodePoint(text.view(), i)))
      return Value::boolean(false);
  return Value::boolean(true);
}

bool isTitleText(const Text &text) {
  bool any = false, previous = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text.view(), i);
    if (isUpper(c) || isTitle(c)) {
      if (previous)
        return false;
      any = previous = true;
    } else if (isLower(c)) {
      if (!previous)
        return false;
      any = true;
    } else {
      previous = false;
    }
  }
  return any;
}

bool isIdentifier(const Text &text) {
  for (size_t i = 0; i < text.size();) {
    bool first = i == 0;
    char32_t c = nextCodePoint(text.view(), i);
    if (c != '_' && !isAlpha(c) && (first || !isDecimal(c)))
      return false;
  }
  return !text.empty();
}

using A = const Arguments &;
using T = const Text &;

Value noArguments(const char *name, A a, Value value) {
  Bound bound(name, a, {});
  return value;
}

const std::map<std::string_view, Method> &methods() {
  static const std::map<std::string_view, Method> table = {
      {"capitalize",
       [](Runtime &rt, T t, A a) {
         return noArguments("capitalize", a, rt.string(capitalize(t)));
       }},
      {"casefold",
       [](Runtime &rt, T t, A a) {
         return noArguments("casefold", a,
                            rt.string(mapCase(t, CaseMap::Fold)));
       }},
      {"center",
       [](Runtime &rt, T t, A a) { return pad(rt, t, a, "center", 0); }},
      {"count", count},
      {"endswith",
       [](Runtime &rt, T t, A a) { return startsOrEnds(rt, t, a, true); }},
      {"expandtabs", expandTabs},
      {"find", [](Runtime &rt, T t,
                  A a) { return findMethod(rt, t, a, "find", false, false); }},
      {"format",
       [](Runtime &rt, T t, A a) { return rt.string(braceFormat(rt, t, a)); }},
      {"format_map",
       [](Runtime &rt, T t, A a) {
         Bound bound("format_map", a, {"mapping"}, 1, 1);
         auto *dict = bound[0].dict();
         if (!dict)
           fail("format_map() argument must be a mapping, not " +
                typeName(bound[0]));
         Arguments named;
         for (auto &[key, value] : dict->entries)
           if (key.string())
             named.named.emplace_back(key.string()->text.str(), value);
         return rt.string(braceFormat(rt, t, named));
       }},
      {"index", [](Runtime &rt, T t,
                   A a) { return findMethod(rt, t, a, "index", false, true); }},
      {"isalnum",
       [](Runtime &, T t, A a) {
         return all(t, a, "isalnum", [](char32_t c) {
           return isAlpha(c) || isDecimal(c) || isDigit(c) || isNumeric(c);
         });
       }},
      {"isalpha",
       [](Runtime &, T t, A a) { return all(t, a, "isalpha", isAlpha); }},
      {"isascii",
       [](Runtime &, T t, A a) {
         return all(t, a, "isascii", [](char32_t c) { return c < 0x80; }, true);
       }},
      {"isdecimal",
       [](Runtime &, T t, A a) { return all(t, a, "isdecimal", isDecimal); }},
      {"isdigit",
       [](Runtime &, T t, A a) { return all(t, a, "isdigit", isDigit); }},
      {"isidentifier",
       [](Runtime &, T t, A a) {
         return noArguments("isidentifier", a, Value::boolean(isIdentifier(t)));
       }},
      {"islower",
       [](Runtime &, T t, A a) {
         return noArguments("islower", a, Value::boolean(isLowerText(t)));
       }},
      {"isnumeric",
       [](Runtime &, T t, A a) { return all(t, a, "isnumeric", isNumeric); }},
      {"isprintable",
       [](Runtime &, T t, A a) {
         return all(t, a, "isprintable", isPrintable, true);
       }},
      {"isspace",
       [](Runtime &, T t, A a) { return all(t, a, "isspace", isSpace); }},
      {"istitle",
       [](Runtime &, T t, A a) {
         return noArguments("istitle", a, Value::boolean(isTitleText(t)));
       }},
      {"isupper",
       [](Runtime &, T t, A a) {
         return noArguments("isupper", a, Value::boolean(isUpperText(t)));
       }},
      {"join", join},
      {"ljust",
       [](Runtime &rt, T t, A a) { return pad(rt, t, a, "ljust", -1); }},
      {"lower",
       [](Runtime &rt, T t, A a) {
         return noArguments("lower", a, rt.string(mapCase(t, CaseMap::Lower)));
       }},
      {"lstrip",
       [](Runtime &rt, T t, A a) {
         return stripMethod(rt, t, a, "lstrip", true, false);
       }},
      {"partition",
       [](Runtime &rt, T t, A a) { return partition(rt, t, a, false); }},
      {"removeprefix",
       [](Runtime &rt, T t, A a) { return removeAffix(rt, t, a, false); }},
      {"removesuffix",
       [](Runtime &rt, T t, A a) { return removeAffix(rt, t, a, true); }},
      {"replace",
       [](Runtime &rt, T t, A a) {
         Bound bound("replace", a, {"old", "new", "count"}, 2, 3);
         return rt.string(replace(rt, t, bound.text(0), bound.text(1),
                                  bound.integer(2, -1)));
       }},
      {"rfind", [](Runtime &rt, T t,
                   A a) { return findMethod(rt, t, a, "rfind", true, false); }},
      {"rindex",
       [](Runtime &rt, T t, A a) {
         return findMethod(rt, t, a, "rindex", true, true);
       }},
      {"rjust",
       [](Runtime &rt, T t, A a) { return pad(rt, t, a, "rjust", 1); }},
      {"rpartition",
       [](Runtime &rt, T t, A a) { return partition(rt, t, a, true); }},
      {"rsplit", rsplit},
      {"rstrip",
       [](Runtime &rt, T t, A a) {
         return stripMethod(rt, t, a, "rstrip", false, true);
       }},
      {"split", split},
      {"splitlines",
       [](Runtime &rt, T t, A a) {
         Bound bound("splitlines", a, {"keepends"});
         rt.touch(t.size());
         return textList(rt, splitLines(t, bound.flag(0, false)));
       }},
      {"startswith",
       [](Runtime &rt, T t, A a) { return startsOrEnds(rt, t, a, false); }},
      {"strip", [](Runtime &rt, T t,
                   A a) { return stripMethod(rt, t, a, "strip", true, true); }},
      {"swapcase", swapCase},
      {"title",
       [](Runtime &rt, T t, A a) {
         return noArguments("title", a, rt.string(titleCase(t)));
       }},
      {"upper",
       [](Runtime &rt, T t, A a) {
         return noArguments("upper", a, rt.string(mapCase(t, CaseMap::Upper)));
       }},
      {"zfill", zfill},
  };
  return table;
}

// Methods of a string marked safe that give a plain result or only cut it.
bool keepsMarkup(std::string_view name) {
  for (std::string_view cuts :
       {"capitalize", "lower", "lstrip", "rstrip", "strip", "title", "upper",
        "swapcase", "casefold"})
    if (name == cuts)
      return true;
  return false;
}
bool refusesMarkup(std::string_view name) {
  for (std::string_view mixes :
       {"join", "replace", "format", "format_map", "center", "ljust", "rjust",
        "partition", "rpartition", "split", "rsplit", "splitlines"})
    if (name == mixes)
      return true;
  return false;
}

} // namespace

bool isStringMethod(std::string_view name) { return methods().count(name); }

Value callStringMethod(Runtime &rt, const Value &self, const std::string &name,
                       const Arguments &arguments) {
  const StringObject &object = *self.string();
  if (object.markup && refusesMarkup(name))
    failUnsupported("the method " + quoted(name) +
                    " of a string marked safe is not supported");
  rt.touch(object.text.size());
  Value out = methods().find(name)->second(rt, object.text, arguments);
  if (object.markup && keepsMarkup(name) && out.string())
    return rt.string(out.string()->text, true);
  return out;
}

} // namespace ingot::jinja
