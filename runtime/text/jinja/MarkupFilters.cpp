// Filters that know markup: striptags, urlize and xmlattr. What they write of
// their own is the template's; what they take over keeps its origin, and so does
// a character that an entity stood for.
#include "runtime/text/jinja/TextFilters.h"

#include <algorithm>
#include <set>

namespace ingot::jinja {
namespace {

struct Entity {
  std::string_view name; // without "&", with ";" where it belongs to it
  const char *text;
};
struct Replacement {
  uint32_t number;
  const char *text;
};
struct Span { // closed
  uint32_t first, last;
};

#include "runtime/text/jinja/HtmlEntities.inc"

const char *findEntity(std::string_view name) {
  auto it = std::lower_bound(std::begin(entities), std::end(entities), name,
                             [](const Entity &entity, std::string_view key) {
                               return entity.name < key;
                             });
  return it != std::end(entities) && it->name == name ? it->text : nullptr;
}

// What &#N; stands for; `digits` are not empty.
std::string numbered(std::string_view digits, uint32_t base) {
  uint32_t number = 0;
  for (char c : digits) {
    uint32_t digit =
        c <= '9' ? uint32_t(c - '0') : uint32_t((c | 0x20) - 'a') + 10;
    number = std::min<uint32_t>(number * base + digit, 0x110000);
  }
  for (const Replacement &one : replacements)
    if (one.number == number)
      return one.text;
  if ((number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF)
    return "\xEF\xBF\xBD";
  for (const Span &span : dropped)
    if (number >= span.first && number <= span.last)
      return "";
  std::string out;
  appendUtf8(out, number);
  return out;
}

// The entity behind the "&" at `at`: how many bytes it takes and what it stands
// for; no bytes where it is none.
std::pair<size_t, std::string> entityAt(std::string_view text, size_t at) {
  std::string_view rest = text.substr(at + 1);
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isHex = [&](char c) {
    return isDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
  };
  auto withEnd = [&](size_t size) {
    return 1 + size + (size < rest.size() && rest[size] == ';');
  };
  if (rest.starts_with('#')) {
    size_t end = 1;
    while (end < rest.size() && isDigit(rest[end]))
      ++end;
    if (end > 1)
      return {withEnd(end), numbered(rest.substr(1, end - 1), 10)};
    if (rest.size() < 3 || (rest[1] | 0x20) != 'x' || !isHex(rest[2]))
      return {};
    for (end = 3; end < rest.size() && isHex(rest[end]);)
      ++end;
    return {withEnd(end), numbered(rest.substr(2, end - 2), 16)};
  }
  // Up to 32 characters that may be a name, and its end.
  size_t end = 0;
  for (int i = 0; i < 32 && end < rest.size() &&
                  std::string_view("\t\n\f <&#;").find(rest[end]) ==
                      std::string_view::npos;
       ++i)
    nextCodePoint(rest, end);
  if (end == 0)
    return {};
  size_t size = withEnd(end) - 1;
  if (const char *found = findEntity(rest.substr(0, size)))
    return {1 + size, found};
  // The longest name that the rest begins with, of two characters or more.
  for (size_t some = size - 1; some > 1; --some)
    if (const char *found = findEntity(rest.substr(0, some)))
      return {1 + some, found};
  return {};
}

Text unescape(Runtime &rt, const Text &text) {
  Text out;
  std::string_view view = text.view();
  for (size_t i = 0; i < text.size();) {
    size_t ampersand = std::min(view.find('&', i), text.size());
    out.append(text, i, ampersand);
    i = ampersand;
    if (i == text.size())
      break;
    rt.step();
    auto [size, stands] = entityAt(view, i);
    if (size == 0) {
      out.append(text, i, i + 1);
      ++i;
    } else {
      out.append(stands, text.originAt(i));
      i += size;
    }
  }
  return out;
}

// A single space for each run of blanks, and none at the ends.
Text collapseBlanks(const Text &text) {
  Text out;
  bool gap = false;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    if (isSpace(nextCodePoint(text.view(), i))) {
      gap = true;
      continue;
    }
    if (gap && !out.empty())
      out.append(" ", Origin::Template);
    gap = false;
    out.append(text, begin, i);
  }
  return out;
}

bool isMarkup(const Value &value) {
  return value.string() && value.string()->markup;
}

Text escaped(Runtime &rt, const Value &value) {
  Text text = str(rt, value);
  return isMarkup(value) ? text : escapeHtml(text);
}

// --- urlize

constexpr const char *Link =
    R"(((https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59}))"
    R"(|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil))"
    R"(|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3}))"
    R"(|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}]))))"
    R"((?::[\d]{1,5})?(?:[/?#].*)?)";
constexpr const char *Email = R"(.+@\w[\w.-]*\.\w+)";
constexpr const char *Scheme = R"([\w.+-]{2,}:/{0,2})";

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

struct LinkForm {
  std::string attributes; // of the tag, behind href
  std::optional<Int> limit;
  std::vector<std::string> schemes;
};

// As Python's text[:limit] with "..." behind it, where that is shorter.
Text trimmed(const Text &text, const LinkForm &form) {
  if (!form.limit)
    return text;
  Int length = Int(countCodePoints(text.view()));
  if (length <= *form.limit)
    return text;
  Int kept =
      *form.limit < 0 ? std::max<Int>(length + *form.limit, 0) : *form.limit;
  Text out = text.slice(0, byteOffset(text.view(), size_t(kept)));
  out.append("...", Origin::Template);
  return out;
}

Text linked(std::string_view prefix, const Text &target,
            std::string_view attributes, const Text &shown) {
  Text out;
  out.append("<a href=\"" + std::string(prefix), Origin::Template);
  out.append(target);
  out.append("\"" + std::string(attributes) + ">", Origin::Template);
  out.append(shown);
  out.append("</a>", Origin::Template);
  return out;
}

// What stands in brackets or before punctuation, without those.
struct Word {
  Text head, middle, tail;
};

Word takeApart(const Text &word) {
  std::string_view text = word.view();
  size_t begin = 0, end = text.size();
  while (begin < end) {
    if (text[begin] == '(' || text[begin] == '<')
      ++begin;
    else if (text.substr(begin).starts_with("&lt;"))
      begin += 4;
    else
      break;
  }
  while (end > begin) {
    if (std::string_view(")>.,\n").find(text[end - 1]) !=
        std::string_view::npos)
      --end;
    else if (text.substr(begin, end - begin).ends_with("&gt;"))
      end -= 4;
    else
      break;
  }
  // Brackets that the middle opens close in the middle, if the tail has them.
  const std::pair<std::string_view, std::string_view> brackets[] = {
      {"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
  for (auto [open, close] : brackets) {
    std::string_view middle = text.substr(begin, end - begin);
    size_t opened = count(middle, open);
    if (opened <= count(middle, close))
      continue;
    size_t moves = std::min(opened, count(text.substr(end), close));
    for (size_t i = 0; i < moves; ++i)
      end = text.find(close, end) + close.size();
  }
  return {word.slice(0, begin), word.slice(begin, end),
          word.slice(end, word.size())};
}

Text linkMiddle(Runtime &rt, const Text &middle, const LinkForm &form) {
  std::string_view text = middle.view();
  if (matchesWhole(rt, Link, text, true)) {
    bool whole = text.starts_with("https://") || text.starts_with("http://");
    return linked(whole ? "" : "https://", middle, form.attributes,
                  trimmed(middle, form));
  }
  const std::string_view mail = "mailto:";
  if (text.starts_with(mail) && matchesWhole(rt, Email, text.substr(7)))
    return linked("", middle, "", middle.slice(mail.size(), middle.size()));
  if (text.find('@') != text.npos && !text.starts_with("www.") &&
      !text.starts_with('@') && text.find(':') == text.npos &&
      matchesWhole(rt, Email, text))
    return linked(mail, middle, "", middle);
  Text out = middle;
  for (const std::string &scheme : form.schemes)
    if (out.str() != scheme && out.view().starts_with(scheme))
      out = linked("", out, form.attributes, out);
  return out;
}

LinkForm readLinkForm(Runtime &rt, const Bound &bound) {
  LinkForm form;
  if (bound.has(0) && !bound[0].isNone())
    form.limit = bound.integer(0, 0);
  std::set<std::string> relations = {"noopener"};
  if (bound.flag(1, false))
    relations.insert("nofollow");
  if (bound.has(3) && truthy(bound[3])) {
    const std::string &given = bound.text(3).str();
    std::string part;
    for (size_t i = 0; i < given.size();) {
      size_t begin = i;
      bool blank = isSpace(nextCodePoint(given, i));
      if (!blank)
        part += given.substr(begin, i - begin);
      if ((blank || i >= given.size()) && !part.empty()) {
        relations.insert(part);
        part.clear();
      }
    }
  }
  std::string joined;
  for (const std::string &relation : relations)
    joined += (joined.empty() ? "" : " ") + relation;
  auto quote = [](const std::string &text) {
    return escapeHtml(Text(text, Origin::Template)).str();
  };
  form.attributes = " rel=\"" + quote(joined) + "\"";
  if (bound.has(2) && truthy(bound[2]))
    form.attributes += " target=\"" + escaped(rt, bound[2]).str() + "\"";
  if (bound.has(4) && !bound[4].isNone())
    for (const Value &value : iterate(rt, bound[4])) {
      auto *scheme = value.string();
      if (!scheme)
        fail("urlize: a scheme is a string, not " + typeName(value));
      if (!matchesWhole(rt, Scheme, scheme->text.view())) {
        Text shown;
        appendRepr(rt, shown, value);
        fail(shown.str() + " is not a valid URI scheme prefix.");
      }
      form.schemes.push_back(scheme->text.str());
    }
  return form;
}

} // namespace

Value stripTags(Runtime &rt, const Value &value, const Arguments &arguments) {
  Bound bound("striptags", arguments, {});
  Text text = str(rt, value);
  rt.touch(text.size());
  std::string_view view = text.view();
  Text kept;
  size_t at = 0;
  for (size_t start = view.find('<'); start != view.npos;
       start = view.find('<', at)) {
    bool comment = view.substr(start).starts_with("<!--");
    size_t end = comment ? view.find("-->", start + 4) : view.find('>', start);
    if (end == view.npos)
      break;
    kept.append(text, at, start);
    at = end + (comment ? 3 : 1);
  }
  kept.append(text, at, text.size());
  return rt.string(unescape(rt, collapseBlanks(kept)));
}

Value urlize(Runtime &rt, const Value &value, const Arguments &arguments) {
  Bound bound("urlize", arguments,
              {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"});
  LinkForm form = readLinkForm(rt, bound);
  Text text = escaped(rt, value);
  Text out;
  auto addWord = [&](size_t begin, size_t end) {
    if (begin == end)
      return;
    Word word = takeApart(text.slice(begin, end));
    out.append(word.head);
    out.append(linkMiddle(rt, word.middle, form));
    out.append(word.tail);
    if (out.size() > rt.limits().outputBytes)
      fail("a string with links exceeds the output limit");
  };
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    size_t at = i;
    if (!isSpace(nextCodePoint(text.view(), i)))
      continue;
    addWord(begin, at);
    out.append(text, at, i);
    begin = i;
  }
  addWord(begin, text.size());
  return rt.string(std::move(out));
}

Value xmlAttributes(Runtime &rt, const Value &value,
                    const Arguments &arguments) {
  Bound bound("xmlattr", arguments, {"autospace"});
  if (value.isUndefined())
    failUndefined(value);
  auto *dict = value.dict();
  if (!dict)
    fail("xmlattr expects a mapping, not " + typeName(value));
  Text out;
  for (const auto &[key, item] : dict->entries) {
    if (item.isNone() || item.isUndefined())
      continue;
    auto *name = key.string();
    if (!name)
      fail("xmlattr expects names of attributes that are strings, not " +
           typeName(key));
    if (name->text.view().find_first_of(" \t\n\r\f\v/>=") !=
        std::string_view::npos) {
      Text shown;
      appendRepr(rt, shown, key);
      fail("Invalid character in attribute name: " + shown.str());
    }
    if (!out.empty() || bound.flag(0, true))
      out.append(" ", Origin::Template);
    out.append(escaped(rt, key));
    out.append("=\"", Origin::Template);
    out.append(escaped(rt, item));
    out.append("\"", Origin::Template);
    rt.touch(out.size());
    if (out.size() > rt.limits().outputBytes)
      fail("a string of attributes exceeds the output limit");
  }
  return rt.string(std::move(out));
}

} // namespace ingot::jinja
