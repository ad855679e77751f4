// utf8proc does the work, on the stretches between characters that stand apart.
#include "runtime/text/UnicodeForms.h"

#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ingot {
namespace {

int optionsOf(UnicodeForm form) {
  switch (form) {
  case UnicodeForm::Nfc:
    return UTF8PROC_COMPOSE;
  case UnicodeForm::Nfd:
    return UTF8PROC_DECOMPOSE;
  case UnicodeForm::Nfkc:
    return UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
  case UnicodeForm::Nfkd:
    break;
  }
  return UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
}

// Lead bytes below this begin characters that the form leaves alone: ASCII for
// all; for NFC up to U+02FF, behind which the combining marks begin.
uint8_t firstLeadThatMatters(UnicodeForm form) {
  return form == UnicodeForm::Nfc ? 0xCC : 0x80;
}

bool isApart(std::span<const uint32_t> apart, uint32_t c) {
  // Of the last range that begins at or before c.
  auto it = std::upper_bound(apart.begin(), apart.end(), c);
  size_t n = static_cast<size_t>(it - apart.begin());
  return n % 2 == 1 || (n > 0 && apart[n - 1] == c);
}

Status appendForm(std::string &out, std::string_view text, int options) {
  if (text.empty())
    return Status::ok();
  utf8proc_uint8_t *mapped = nullptr;
  utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (size < 0)
    return Status::invalid(std::string("normalising text: ") +
                           utf8proc_errmsg(size));
  out.append(reinterpret_cast<char *>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return Status::ok();
}

} // namespace

Status applyUnicodeForm(std::string &text, UnicodeForm form,
                        std::span<const uint32_t> apart) {
  const uint8_t matters = firstLeadThatMatters(form);
  size_t first = 0;
  while (first < text.size() && static_cast<uint8_t>(text[first]) < matters)
    ++first; // a lead byte comes before its continuation bytes
  if (first == text.size())
    return Status::ok();

  const int options = optionsOf(form);
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  // Stretches that matter, with the character before, which marks may join.
  // A run of bytes that do not is copied as it is.
  size_t open = 0; // start of what is not yet in out
  const std::string_view view = text;
  auto flush = [&](size_t end) {
    Status status = appendForm(out, view.substr(open, end - open), options);
    open = end;
    return status;
  };
  size_t plainFrom = 0; // characters from here to i do not matter
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8Length(text[i]);
    if (static_cast<uint8_t>(text[i]) < matters) {
      i += length;
      continue;
    }
    // Plain characters before this one, but for the last, need no work.
    size_t last = i;
    if (last > plainFrom) {
      --last;
      while (last > plainFrom &&
             (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80)
        --last;
    }
    if (last > plainFrom + 16) {
      INGOT_RETURN_IF_ERROR(flush(plainFrom));
      out.append(view.substr(plainFrom, last - plainFrom));
      open = last;
    }
    uint32_t c = decodeUtf8(view.substr(i));
    if (isApart(apart, c)) {
      INGOT_RETURN_IF_ERROR(flush(i));
      out.append(view.substr(i, length));
      open = i + length;
    }
    i += length;
    plainFrom = i;
  }
  if (text.size() > plainFrom + 16) {
    INGOT_RETURN_IF_ERROR(flush(plainFrom));
    out.append(view.substr(plainFrom));
  } else {
    INGOT_RETURN_IF_ERROR(flush(text.size()));
  }
  text = std::move(out);
  return Status::ok();
}

} // namespace ingot
