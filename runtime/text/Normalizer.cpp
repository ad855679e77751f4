// One function a step. What a step knows of characters is in its tables; only
// the Unicode forms and grapheme boundaries come from utf8proc.
#include "runtime/text/Normalizer.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/UnicodeForms.h"
#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <string>

namespace ingot {
namespace {

constexpr std::string_view SpaceMark = "\xE2\x96\x81";

size_t previousCharacter(std::string_view text, size_t end) {
  do
    --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

// What these make longer than `longest` is cut short; the caller refuses it.
void replaceString(std::string &text, const std::string &pattern,
                   const std::string &content, size_t longest) {
  size_t at = text.find(pattern);
  if (at == std::string::npos)
    return;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t copied = 0;
  for (; at != std::string::npos && out.size() <= longest;
       at = text.find(pattern, copied)) {
    out.append(text, copied, at - copied).append(content);
    copied = at + pattern.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

Status replaceRegex(std::string &text, const SplitRegex &regex,
                    const std::string &content, size_t longest,
                    RegexScratch &scratch) {
  std::vector<TextRange> matches;
  INGOT_RETURN_IF_ERROR(regex.findAll(text, scratch, matches));
  if (matches.empty())
    return Status::ok();
  std::string out;
  size_t copied = 0;
  for (TextRange match : matches) {
    if (out.size() > longest)
      break;
    out.append(text, copied, match.begin - copied).append(content);
    copied = match.end;
  }
  out.append(text, copied);
  text = std::move(out);
  return Status::ok();
}

void mapCharacters(std::string &text, const NormalizerStep &step,
                   size_t longest) {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0; // text before this is in out
  for (size_t i = 0; i < text.size() && out.size() <= longest;) {
    size_t length = utf8Length(text[i]);
    uint16_t entry =
        step.characters[decodeUtf8(std::string_view(text).substr(i))];
    if (entry) {
      out.append(text, copied, i - copied).append(step.texts[entry - 1u]);
      copied = i + length;
    }
    i += length;
  }
  if (copied == 0)
    return;
  out.append(text, copied);
  text = std::move(out);
}

void strip(std::string &text, uint32_t options) {
  size_t begin = 0, end = text.size();
  if (options & StripLeft)
    while (begin < end &&
           isWhiteSpace(decodeUtf8(std::string_view(text).substr(begin))))
      begin += utf8Length(text[begin]);
  if (options & StripRight)
    while (end > begin) {
      size_t last = previousCharacter(text, end);
      if (!isWhiteSpace(decodeUtf8(std::string_view(text).substr(last))))
        break;
      end = last;
    }
  text = text.substr(begin, end - begin);
}

// The value of the shortest key that begins `text`, or -1.
int32_t shortestKey(const Trie &trie, std::string_view text) {
  int32_t node = Trie::Root;
  for (char b : text) {
    node = trie.step(node, b);
    if (node == Trie::None)
      return -1;
    if (trie.value(node) >= 0)
      return trie.value(node);
  }
  return -1;
}

// End of the grapheme that begins at `begin`.
size_t graphemeEnd(std::string_view text, size_t begin) {
  auto character = [&](size_t at) {
    return static_cast<utf8proc_int32_t>(decodeUtf8(text.substr(at)));
  };
  utf8proc_int32_t state = 0, before = character(begin);
  size_t end = begin + utf8Length(text[begin]);
  while (end < text.size()) {
    // Between ASCII characters only CR LF stays together.
    if (before < 0x80 && static_cast<uint8_t>(text[end]) < 0x80 &&
        before != '\r')
      break;
    utf8proc_int32_t next = character(end);
    if (utf8proc_grapheme_break_stateful(before, next, &state))
      break;
    before = next;
    end += utf8Length(text[end]);
  }
  return end;
}

void mapGraphemes(std::string &text, const NormalizerStep &step,
                  size_t longest) {
  constexpr size_t LongestWhole = 5;
  const Trie trie(step.trie);
  const std::string_view view = text;
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < view.size() && out.size() <= longest;) {
    size_t end = graphemeEnd(view, i);
    if (end - i <= LongestWhole)
      if (int32_t key = shortestKey(trie, view.substr(i, end - i)); key >= 0) {
        out += step.texts[static_cast<size_t>(key)];
        i = end;
        continue;
      }
    while (i < end && out.size() <= longest) {
      std::string_view character = view.substr(i, utf8Length(view[i]));
      int32_t key = shortestKey(trie, character);
      out += key >= 0 ? std::string_view(step.texts[static_cast<size_t>(key)])
                      : character;
      i += character.size();
    }
  }
  text = std::move(out);
}

void mapLongest(std::string &text, const NormalizerStep &step, size_t longest) {
  const Trie trie(step.trie);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size() && out.size() <= longest;) {
    int32_t node = Trie::Root, best = -1;
    size_t bestEnd = i;
    for (size_t end = i; end < text.size();) {
      node = trie.step(node, text[end++]);
      if (node == Trie::None)
        break;
      if (trie.value(node) >= 0) {
        best = trie.value(node);
        bestEnd = end;
      }
    }
    if (best >= 0) {
      out += step.texts[static_cast<size_t>(best)];
      i = bestEnd;
    } else {
      size_t length = utf8Length(text[i]);
      out.append(text, i, length);
      i += length;
    }
  }
  text = std::move(out);
}

void markSpaces(std::string &text, uint32_t options, bool prefixAllowed) {
  const bool removeExtra = options & RemoveExtraSpaces;
  const bool prefix = (options & DummyPrefix) && prefixAllowed;
  size_t begin = 0;
  if (removeExtra)
    while (begin < text.size() && text[begin] == ' ')
      ++begin;
  if (begin == text.size()) {
    text.clear();
    return;
  }
  std::string out;
  out.reserve(text.size() + text.size() / 4 + 3);
  if (prefix && !(options & PrefixAtEnd))
    out += SpaceMark;
  bool afterSpace = removeExtra;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] != ' ')
      out.push_back(text[i]);
    else if (!afterSpace)
      out += SpaceMark;
    afterSpace = removeExtra && text[i] == ' ';
  }
  if (removeExtra)
    while (out.ends_with(SpaceMark))
      out.resize(out.size() - SpaceMark.size());
  if (prefix && (options & PrefixAtEnd))
    out += SpaceMark;
  text = std::move(out);
}

} // namespace

Status Normalizer::check(const NormalizerStep &step) {
  auto bad = [](const std::string &what) {
    return Status::invalid("normalizer: " + what);
  };
  bool replaces = step.kind == NormalizerKind::ReplaceString ||
                  step.kind == NormalizerKind::ReplaceRegex;
  if (replaces && step.pattern.empty())
    return bad("Replace with an empty pattern");
  if (findInvalidUtf8(step.content) != std::string_view::npos ||
      findInvalidUtf8(step.pattern) != std::string_view::npos)
    return bad("a step's text is not valid UTF-8");
  for (const std::string &text : step.texts)
    if (findInvalidUtf8(text) != std::string_view::npos)
      return bad("a step's text is not valid UTF-8");
  if (step.kind == NormalizerKind::MapCharacters)
    return step.characters.verify(step.texts.size() + 1);
  if (step.kind == NormalizerKind::Precompiled) {
    if (step.trie.empty())
      return bad("Precompiled without its trie");
    return Trie(step.trie).verify(static_cast<int64_t>(step.texts.size()));
  }
  for (size_t i = 0; i < step.apart.size(); ++i)
    if (step.apart.size() % 2 != 0 ||
        (i > 0 && step.apart[i] < step.apart[i - 1] + (i % 2 == 0)))
      return bad("the ranges of characters that stand apart are not ascending");
  return Status::ok();
}

Result<Normalizer> Normalizer::create(std::vector<NormalizerStep> steps) {
  Normalizer normalizer;
  for (NormalizerStep &what : steps) {
    INGOT_RETURN_IF_ERROR(check(what));
    Step step{std::move(what), std::nullopt};
    if (step.what.kind == NormalizerKind::ReplaceRegex) {
      INGOT_ASSIGN_OR_RETURN(step.regex,
                             SplitRegex::compile(step.what.pattern));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply(std::string &text, RegexScratch &scratch,
                         Place place) const {
  const size_t size = text.size(), longest = longestRewritten(size);
  for (const Step &step : steps_) {
    if (text.empty())
      break;
    const NormalizerStep &what = step.what;
    const bool prefixAllowed =
        place == Place::Start ||
        (place == Place::Later && !(what.options & PrefixOnce));
    switch (what.kind) {
    case NormalizerKind::Nfc:
    case NormalizerKind::Nfd:
    case NormalizerKind::Nfkc:
    case NormalizerKind::Nfkd:
      INGOT_RETURN_IF_ERROR(applyUnicodeForm(
          text, static_cast<UnicodeForm>(what.kind), what.apart));
      break;
    case NormalizerKind::Prepend:
      if (prefixAllowed)
        text.insert(0, what.content);
      break;
    case NormalizerKind::ReplaceString:
      replaceString(text, what.pattern, what.content, longest);
      break;
    case NormalizerKind::ReplaceRegex:
      INGOT_RETURN_IF_ERROR(
          replaceRegex(text, *step.regex, what.content, longest, scratch));
      break;
    case NormalizerKind::MapCharacters:
      mapCharacters(text, what, longest);
      break;
    case NormalizerKind::Strip:
      strip(text, what.options);
      break;
    case NormalizerKind::Precompiled:
      if (what.options & WholeGraphemes)
        mapGraphemes(text, what, longest);
      else
        mapLongest(text, what, longest);
      break;
    case NormalizerKind::SpellBytes:
      text = bytesToAlphabet(text);
      break;
    case NormalizerKind::MarkSpaces:
      markSpaces(text, what.options, prefixAllowed);
      break;
    }
    if (text.size() > longest)
      return Status::invalid("normalising text: " + std::to_string(size) +
                             " bytes become more than " +
                             std::to_string(longest));
  }
  return Status::ok();
}

} // namespace ingot
