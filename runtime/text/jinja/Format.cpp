// Python's two formatting languages: `format % values` and str.format. What
// the format itself says keeps the format's origin; inserted text keeps its
// own.
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <cmath>

namespace ingot::jinja {
namespace {

constexpr int maxWidth = 10000;
constexpr int maxPrecision = 500;

std::string formatDouble(double value, char kind, int precision, bool alt) {
  if (std::isnan(value) || std::isinf(value)) {
    std::string out = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    if (kind >= 'A' && kind <= 'Z')
      for (char &c : out)
        c = c == '-' ? c : char(c & ~0x20);
    return out;
  }
  std::string format = alt ? "%#.*" : "%.*";
  format += kind;
  int size = std::snprintf(nullptr, 0, format.c_str(), precision, value);
  std::string out(size_t(size) + 1, 0);
  std::snprintf(out.data(), out.size(), format.c_str(), precision, value);
  out.pop_back();
  return out;
}

std::string inBase(Int value, int base, bool upper) {
  bool negative = value < 0;
  unsigned __int128 rest =
      negative ? -static_cast<unsigned __int128>(value) : value;
  const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += digits[static_cast<unsigned>(rest % static_cast<unsigned>(base))];
    rest /= base;
  } while (rest);
  if (negative)
    out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

Int truncated(double value) {
  if (std::isnan(value))
    fail("cannot convert float NaN to integer");
  if (std::isinf(value))
    fail("cannot convert float infinity to integer");
  if (std::abs(value) > 0x1p110)
    fail("an integer result is out of range");
  return static_cast<Int>(value);
}

// How a formatted value is laid out in its field.
struct Layout {
  Text fill{" ", Origin::Template};
  char align = 0; // < > ^ =
  int width = 0;
};

Text lay(Text content, const Layout &layout, char defaultAlign) {
  size_t size = countCodePoints(content.view());
  if (size >= size_t(std::max(0, layout.width)))
    return content;
  size_t total = size_t(layout.width) - size;
  char align = layout.align ? layout.align : defaultAlign;
  Text out;
  auto pad = [&](size_t count) {
    for (size_t i = 0; i < count; ++i)
      out.append(layout.fill);
  };
  if (align == '=') {
    size_t sign =
        !content.empty() && std::string_view("+- ").find(content.str()[0]) !=
                                std::string_view::npos;
    if (content.view().substr(sign, 2) == "0x" ||
        content.view().substr(sign, 2) == "0o" ||
        content.view().substr(sign, 2) == "0b" ||
        content.view().substr(sign, 2) == "0X")
      sign += 2;
    out.append(content, 0, sign);
    pad(total);
    out.append(content, sign, content.size());
    return out;
  }
  size_t left = align == '<' ? 0 : align == '>' ? total : total / 2;
  pad(left);
  out.append(content);
  pad(total - left);
  return out;
}

Text firstCodePoints(const Text &text, size_t count) {
  return text.slice(0, byteOffset(text.view(), count));
}

// --- format % values

class Percent {
public:
  Percent(Runtime &rt, const Text &format, const Value &argument)
      : rt_(rt), format_(format), argument_(argument) {
    auto *sequence = argument.sequence();
    if (sequence && (sequence->kind == SequenceKind::Tuple ||
                     sequence->kind == SequenceKind::Group))
      values_ = sequence->items;
    else
      values_ = {argument};
    single_ = !sequence || sequence->kind != SequenceKind::Tuple;
  }
  Text run();

private:
  Value next() {
    if (used_ >= values_.size())
      fail("not enough arguments for format string");
    return values_[used_++];
  }
  int number(size_t &i, const char *what);
  Text convert(char kind, const Value &value, bool alt, char sign, bool zero,
               bool left, int width, int precision);

  Runtime &rt_;
  const Text &format_;
  const Value &argument_;
  std::vector<Value> values_;
  bool single_ = true;
  size_t used_ = 0;
};

int Percent::number(size_t &i, const char *what) {
  const std::string &f = format_.str();
  int out = 0;
  if (i < f.size() && f[i] == '*') {
    ++i;
    Value value = next();
    if (!value.isIntegral())
      fail("* wants int");
    if (value.toInt() > maxWidth || value.toInt() < -maxWidth)
      fail(std::string("a format's ") + what + " is too big");
    return int(value.toInt());
  }
  while (i < f.size() && f[i] >= '0' && f[i] <= '9') {
    out = out * 10 + (f[i++] - '0');
    if (out > maxWidth)
      fail(std::string("a format's ") + what + " is too big");
  }
  return out;
}

Text Percent::convert(char kind, const Value &value, bool alt, char sign,
                      bool zero, bool left, int width, int precision) {
  Layout layout;
  layout.width = width;
  layout.align = left ? '<' : '>';
  auto numeric = [&](std::string text) {
    if (sign && text[0] != '-')
      text.insert(text.begin(), sign);
    if (zero && !left) {
      layout.fill = Text("0", Origin::Template);
      layout.align = '=';
    }
    return lay(Text(std::move(text), Origin::Template), layout, '>');
  };
  switch (kind) {
  case 's':
  case 'r':
  case 'a': {
    if (kind == 'a')
      failUnsupported("the format %a is not supported");
    Text text;
    if (kind == 's')
      text = str(rt_, value);
    else
      appendRepr(rt_, text, value);
    if (precision >= 0)
      text = firstCodePoints(text, size_t(precision));
    return lay(std::move(text), layout, '>');
  }
  case 'c': {
    Text text;
    if (auto *s = value.string(); s && countCodePoints(s->text.view()) == 1) {
      text = s->text;
    } else if (value.isIntegral()) {
      Int code = value.toInt();
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        fail("%c arg not in range(0x110000)");
      std::string bytes;
      appendUtf8(bytes, char32_t(code));
      text = Text(bytes, Origin::Template);
    } else {
      fail("%c requires int or char");
    }
    return lay(std::move(text), layout, '>');
  }
  case 'd':
  case 'i':
  case 'u':
  case 'x':
  case 'X':
  case 'o': {
    bool decimal = kind == 'd' || kind == 'i' || kind == 'u';
    if (!value.isNumber() || (!decimal && !value.isIntegral()))
      fail(std::string("%") + kind +
           " format: " + (decimal ? "a real number" : "an integer") +
           " is required, not " + typeName(value));
    Int integer =
        value.isIntegral() ? value.toInt() : truncated(value.toDouble());
    int base = decimal ? 10 : kind == 'o' ? 8 : 16;
    std::string text = inBase(integer, base, kind == 'X');
    bool negative = text[0] == '-';
    std::string digits = text.substr(negative);
    if (precision > int(digits.size()))
      digits.insert(0, size_t(precision) - digits.size(), '0');
    if (alt && !decimal)
      digits.insert(0, kind == 'o' ? "0o" : kind == 'x' ? "0x" : "0X");
    return numeric((negative ? "-" : "") + digits);
  }
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G':
    if (!value.isNumber())
      fail("must be real number, not " + typeName(value));
    return numeric(formatDouble(value.toDouble(), kind,
                                precision < 0 ? 6 : precision, alt));
  default:
    fail("unsupported format character " + quoted(std::string(1, kind)));
  }
}

Text Percent::run() {
  const std::string &f = format_.str();
  Text out;
  bool named = false;
  for (size_t i = 0; i < f.size();) {
    if (f[i] != '%') {
      size_t begin = i;
      i = std::min(f.find('%', i), f.size());
      out.append(format_, begin, i);
      continue;
    }
    ++i;
    rt_.step();
    std::optional<Value> byName;
    if (i < f.size() && f[i] == '(') {
      size_t start = ++i;
      int nesting = 1;
      while (i < f.size() && nesting > 0) {
        nesting += f[i] == '(' ? 1 : f[i] == ')' ? -1 : 0;
        ++i;
      }
      if (nesting > 0)
        fail("incomplete format key");
      auto *dict = argument_.dict();
      if (!dict)
        fail("format requires a mapping");
      std::string key = f.substr(start, i - 1 - start);
      const Value *found = dict->find(key);
      if (!found)
        fail("the key " + quoted(key) + " of a format is missing");
      byName = *found;
      named = true;
    }
    bool left = false, zero = false, alt = false;
    char sign = 0;
    for (; i < f.size(); ++i) {
      if (f[i] == '-')
        left = true;
      else if (f[i] == '+')
        sign = '+';
      else if (f[i] == ' ')
        sign = sign ? sign : ' ';
      else if (f[i] == '#')
        alt = true;
      else if (f[i] == '0')
        zero = true;
      else
        break;
    }
    int width = number(i, "width");
    if (width < 0) {
      left = true;
      width = -width;
    }
    int precision = -1;
    if (i < f.size() && f[i] == '.') {
      ++i;
      precision = std::max(0, number(i, "precision"));
      if (precision > maxPrecision)
        fail("a format's precision is too big");
    }
    while (i < f.size() && (f[i] == 'l' || f[i] == 'h' || f[i] == 'L'))
      ++i;
    if (i >= f.size())
      fail("incomplete format");
    char kind = f[i++];
    if (kind == '%') {
      out.append(format_, i - 1, i);
      continue;
    }
    Value value = byName ? *byName : next();
    out.append(convert(kind, value, alt, sign, zero, left, width, precision));
    if (out.size() > rt_.limits().outputBytes)
      fail("a formatted string exceeds the output limit");
  }
  // A mapping or list may stay unused, a tuple or scalar may not.
  bool mayStay = argument_.dict() || (argument_.sequence() && single_) || named;
  if (used_ < values_.size() && !mayStay)
    fail("not all arguments converted during string formatting");
  return out;
}

// --- str.format

class Brace {
public:
  Brace(Runtime &rt, const Arguments &arguments)
      : rt_(rt), arguments_(arguments) {}
  Text run(const Text &format, int depth);

private:
  Value field(std::string_view name);
  Text convert(const Value &value, const Text &spec);

  Runtime &rt_;
  const Arguments &arguments_;
  size_t automatic_ = 0;
  bool usedAutomatic_ = false, usedManual_ = false;
};

bool allDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// "name", "0", "", each followed by .attribute and [item] parts.
Value Brace::field(std::string_view name) {
  size_t end = std::min(name.find_first_of(".["), name.size());
  std::string first(name.substr(0, end));
  Value value;
  if (first.empty() || allDigits(first)) {
    size_t index;
    if (first.empty()) {
      usedAutomatic_ = true;
      index = automatic_++;
    } else {
      usedManual_ = true;
      index = first.size() > 6 ? SIZE_MAX : std::stoul(first);
    }
    if (usedAutomatic_ && usedManual_)
      fail("cannot switch between manual field specification and automatic "
           "field numbering");
    if (index >= arguments_.positional.size())
      fail("Replacement index " +
           (first.empty() ? std::to_string(index) : first) +
           " out of range for positional args tuple");
    value = arguments_.positional[index];
  } else {
    auto it = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                           [&](auto &a) { return a.first == first; });
    if (it == arguments_.named.end())
      fail("the key " + quoted(first) + " of a format is missing");
    value = it->second;
  }
  while (end < name.size()) {
    if (name[end] == '.') {
      size_t next = std::min(name.find_first_of(".[", end + 1), name.size());
      std::string attribute(name.substr(end + 1, next - end - 1));
      if (attribute.empty())
        fail("Empty attribute in format string");
      value = getAttribute(rt_, value, attribute);
      end = next;
    } else if (name[end] == '[') {
      size_t close = name.find(']', end);
      if (close == std::string_view::npos)
        fail("Missing ']' in format string");
      std::string key(name.substr(end + 1, close - end - 1));
      if (key.empty())
        fail("Empty attribute in format string");
      Value item = allDigits(key) && key.size() < 10
                       ? Value::integer(std::stol(key))
                       : rt_.string(key);
      value = getItem(rt_, value, item);
      end = close + 1;
    } else {
      fail("Only '.' or '[' may follow ']' in format field specifier");
    }
  }
  return value;
}

std::string group(std::string digits, char separator, size_t every) {
  size_t end = digits.find_first_of(".eE");
  std::string tail = end == std::string::npos ? "" : digits.substr(end);
  std::string head = digits.substr(0, end);
  for (size_t i = head.size(); i > every;) {
    i -= every;
    head.insert(i, 1, separator);
  }
  return head + tail;
}

Text Brace::convert(const Value &value, const Text &specText) {
  const std::string &spec = specText.str();
  if (spec.empty())
    return str(rt_, value);
  if (!value.string() && !value.isNumber()) {
    fail("unsupported format string passed to " + typeName(value) +
         ".__format__");
  }
  Layout layout;
  size_t i = 0;
  {
    size_t after = 0;
    nextCodePoint(spec, after);
    auto isAlign = [&](size_t k) {
      return k < spec.size() &&
             std::string_view("<>=^").find(spec[k]) != std::string_view::npos;
    };
    if (isAlign(after)) {
      layout.fill = specText.slice(0, after);
      layout.align = spec[after];
      i = after + 1;
    } else if (isAlign(0)) {
      layout.align = spec[0];
      i = 1;
    }
  }
  char sign = 0, grouping = 0, kind = 0;
  bool alt = false;
  int precision = -1;
  auto at = [&](std::string_view set) {
    return i < spec.size() && set.find(spec[i]) != std::string_view::npos;
  };
  auto number = [&] {
    int out = 0;
    while (at("0123456789")) {
      out = out * 10 + (spec[i++] - '0');
      if (out > maxWidth)
        fail("Too many decimal digits in format string");
    }
    return out;
  };
  if (at("+- "))
    sign = spec[i++];
  if (at("#")) {
    alt = true;
    ++i;
  }
  if (at("0")) {
    ++i;
    if (!layout.align) {
      layout.fill = Text("0", Origin::Template);
      layout.align = value.string() ? '<' : '=';
    }
  }
  layout.width = number();
  if (at(",_"))
    grouping = spec[i++];
  if (at(".")) {
    ++i;
    if (!at("0123456789"))
      fail("Format specifier missing precision");
    precision = number();
    if (precision > maxPrecision)
      fail("a format's precision is too big");
  }
  if (i < spec.size())
    kind = spec[i++];
  if (i < spec.size())
    fail("Invalid format specifier " + quoted(spec));
  auto unknown = [&] {
    fail("Unknown format code " + quoted(std::string(1, kind)) +
         " for object of type " + quoted(typeName(value)));
  };
  if (auto *s = value.string()) {
    if (kind && kind != 's')
      unknown();
    if (sign)
      fail("Sign not allowed in string format specifier");
    if (layout.align == '=')
      fail("'=' alignment not allowed in string format specifier");
    if (alt)
      fail("Alternate form (#) not allowed in string format specifier");
    if (grouping)
      fail("Cannot specify ',' with 's'.");
    return lay(precision >= 0 ? firstCodePoints(s->text, size_t(precision))
                              : s->text,
               layout, '<');
  }
  if (value.is<bool>() && !kind && !sign && !grouping && precision < 0) {
    return lay(str(rt_, value), layout, '<');
  }
  std::string text;
  bool isInt = value.isIntegral();
  if (isInt && (!kind || std::string_view("dnxXob").find(kind) !=
                             std::string_view::npos)) {
    if (precision >= 0)
      fail("Precision not allowed in integer format specifier");
    int base = kind == 'x' || kind == 'X' ? 16
               : kind == 'o'              ? 8
               : kind == 'b'              ? 2
                                          : 10;
    text = inBase(value.toInt(), base, kind == 'X');
    bool negative = text[0] == '-';
    std::string digits = text.substr(negative);
    if (grouping)
      digits = group(digits, grouping, base == 10 ? 3 : 4);
    if (alt && base != 10)
      digits.insert(0, std::string("0") + kind);
    text = (negative ? "-" : "") + digits;
  } else if (isInt && kind == 'c') {
    Int code = value.toInt();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      fail("%c arg not in range(0x110000)");
    appendUtf8(text, char32_t(code));
    return lay(Text(text, Origin::Template), layout, '<');
  } else {
    double d = value.toDouble();
    if (kind == '%') {
      text =
          formatDouble(d * 100, 'f', precision < 0 ? 6 : precision, alt) + "%";
    } else if (!kind && precision < 0) {
      text = floatRepr(d);
    } else if (!kind) {
      // like 'g', but at least one digit after the point
      text = formatDouble(d, 'g', std::max(1, precision), alt);
      if (text.find_first_of(".en") == std::string::npos)
        text += ".0";
    } else if (std::string_view("eEfFgGn").find(kind) !=
               std::string_view::npos) {
      text = formatDouble(d, kind == 'n' ? 'g' : kind,
                          precision < 0 ? 6 : precision, alt);
    } else {
      unknown();
    }
    if (grouping) {
      bool negative = text[0] == '-';
      text = (negative ? "-" : "") + group(text.substr(negative), grouping, 3);
    }
  }
  if ((sign == '+' || sign == ' ') && text[0] != '-')
    text.insert(text.begin(), sign);
  return lay(Text(std::move(text), Origin::Template), layout, '>');
}

Text Brace::run(const Text &format, int depth) {
  if (depth > 2)
    fail("Max string recursion exceeded");
  const std::string &f = format.str();
  Text out;
  for (size_t i = 0; i < f.size();) {
    char c = f[i];
    if (c != '{' && c != '}') {
      size_t begin = i;
      i = std::min(f.find_first_of("{}", i), f.size());
      out.append(format, begin, i);
      continue;
    }
    if (i + 1 < f.size() && f[i + 1] == c) {
      out.append(format, i, i + 1);
      i += 2;
      continue;
    }
    if (c == '}')
      fail("Single '}' encountered in format string");
    rt_.step();
    size_t begin = ++i;
    int nesting = 1;
    bool bracket = false;
    while (i < f.size() && nesting > 0) {
      bracket = f[i] == '[' || (bracket && f[i] != ']');
      if (!bracket)
        nesting += f[i] == '{' ? 1 : f[i] == '}' ? -1 : 0;
      ++i;
    }
    if (nesting > 0)
      fail(begin == f.size() ? "Single '{' encountered in format string"
                             : "expected '}' before end of string");
    size_t end = i - 1;
    size_t nameEnd = begin;
    bracket = false;
    while (nameEnd < end &&
           (bracket || (f[nameEnd] != '!' && f[nameEnd] != ':'))) {
      bracket = f[nameEnd] == '[' || (bracket && f[nameEnd] != ']');
      ++nameEnd;
    }
    Value value = field(std::string_view(f).substr(begin, nameEnd - begin));
    size_t specBegin = nameEnd;
    char conversion = 0;
    if (specBegin < end && f[specBegin] == '!') {
      if (specBegin + 1 >= end)
        fail("end of string while looking for conversion specifier");
      conversion = f[specBegin + 1];
      specBegin += 2;
      if (specBegin < end && f[specBegin] != ':')
        fail("expected ':' after conversion specifier");
    }
    Text spec;
    if (specBegin < end)
      spec = run(format.slice(specBegin + 1, end), depth + 1);
    if (conversion == 'r') {
      Text repr;
      appendRepr(rt_, repr, value);
      value = rt_.string(std::move(repr));
    } else if (conversion == 's') {
      value = rt_.string(str(rt_, value));
    } else if (conversion) {
      failUnsupported("the conversion !" + std::string(1, conversion) +
                      " in a format string is not supported");
    }
    out.append(convert(value, spec));
    if (out.size() > rt_.limits().outputBytes)
      fail("a formatted string exceeds the output limit");
  }
  return out;
}

} // namespace

Text percentFormat(Runtime &rt, const Text &format, const Value &argument) {
  return Percent(rt, format, argument).run();
}

Text braceFormat(Runtime &rt, const Text &format, const Arguments &arguments) {
  return Brace(rt, arguments).run(format, 1);
}

} // namespace ingot::jinja
