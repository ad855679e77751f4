// Unicode forms come from utf8proc; pure ASCII is in every form already.
#include "runtime/text/Normalizer.h"

#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace ingot {
namespace {

bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

Status unicodeForm(std::string &text, int options) {
  if (isAscii(text))
    return Status::ok();
  utf8proc_uint8_t *mapped = nullptr;
  utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (size < 0)
    return Status::invalid(std::string("normalising text: ") +
                           utf8proc_errmsg(size));
  text.assign(reinterpret_cast<char *>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return Status::ok();
}

void lowercase(std::string &text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); i += utf8Length(text[i])) {
    uint32_t c = decodeUtf8(std::string_view(text).substr(i));
    // The one character whose lower case is two.
    if (c == 0x130)
      out += "i\xCC\x87";
    else
      appendUtf8(out, static_cast<uint32_t>(
                          utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
  text = std::move(out);
}

void replaceString(std::string &text, const std::string &pattern,
                   const std::string &content) {
  size_t at = text.find(pattern);
  if (at == std::string::npos)
    return;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(pattern, copied)) {
    out.append(text, copied, at - copied).append(content);
    copied = at + pattern.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

} // namespace

Result<Normalizer> Normalizer::create(std::vector<NormalizerStep> steps) {
  Normalizer normalizer;
  for (NormalizerStep &what : steps) {
    Step step{std::move(what), std::nullopt};
    bool replaces = step.what.kind == NormalizerKind::ReplaceString ||
                    step.what.kind == NormalizerKind::ReplaceRegex;
    if (replaces && step.what.pattern.empty())
      return Status::invalid("normalizer: Replace with an empty pattern");
    if (findInvalidUtf8(step.what.content) != std::string_view::npos ||
        findInvalidUtf8(step.what.pattern) != std::string_view::npos)
      return Status::invalid("normalizer: a step's text is not valid UTF-8");
    if (step.what.kind == NormalizerKind::ReplaceRegex) {
      INGOT_ASSIGN_OR_RETURN(step.regex,
                             SplitRegex::compile(step.what.pattern));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply(std::string &text, RegexScratch &scratch,
                         bool continued) const {
  for (const Step &step : steps_) {
    if (text.empty())
      break;
    switch (step.what.kind) {
    case NormalizerKind::Nfc:
      INGOT_RETURN_IF_ERROR(unicodeForm(text, UTF8PROC_COMPOSE));
      break;
    case NormalizerKind::Nfd:
      INGOT_RETURN_IF_ERROR(unicodeForm(text, UTF8PROC_DECOMPOSE));
      break;
    case NormalizerKind::Nfkc:
      INGOT_RETURN_IF_ERROR(
          unicodeForm(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
      break;
    case NormalizerKind::Nfkd:
      INGOT_RETURN_IF_ERROR(
          unicodeForm(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
      break;
    case NormalizerKind::Lowercase:
      lowercase(text);
      break;
    case NormalizerKind::Prepend:
      if (!continued)
        text.insert(0, step.what.content);
      break;
    case NormalizerKind::ReplaceString:
      replaceString(text, step.what.pattern, step.what.content);
      break;
    case NormalizerKind::ReplaceRegex: {
      std::vector<TextRange> matches;
      INGOT_RETURN_IF_ERROR(step.regex->findAll(text, scratch, matches));
      std::string out;
      size_t copied = 0;
      for (TextRange match : matches) {
        out.append(text, copied, match.begin - copied)
            .append(step.what.content);
        copied = match.end;
      }
      out.append(text, copied);
      text = std::move(out);
      break;
    }
    }
  }
  return Status::ok();
}

} // namespace ingot
