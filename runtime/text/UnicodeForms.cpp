// utf8proc does the work, on the stretches between characters that stand apart.
#include "runtime/text/UnicodeForms.h"

#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

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

// Puts each run of combining marks in canonical order: by class, marks of one
// class as they stood. utf8proc_map sorts them too, but by swaps of neighbours,
// which for a text of nothing but marks takes hours.
void orderMarks(std::vector<utf8proc_int32_t> &characters) {
  auto classOf = [](utf8proc_int32_t c) {
    return static_cast<uint64_t>(utf8proc_get_property(c)->combining_class);
  };
  auto byClass = [&](utf8proc_int32_t a, utf8proc_int32_t b) {
    return classOf(a) < classOf(b);
  };
  constexpr int CharacterBits = 21, ClassAt = 56;
  std::vector<uint64_t> keys; // class, place, character
  for (auto begin = characters.begin(); begin != characters.end();) {
    if (classOf(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = std::find_if(begin, characters.end(),
                            [&](auto c) { return classOf(c) == 0; });
    if (!std::is_sorted(begin, end, byClass)) {
      keys.clear();
      for (auto it = begin; it != end; ++it)
        keys.push_back(classOf(*it) << ClassAt |
                       static_cast<uint64_t>(it - begin) << CharacterBits |
                       static_cast<uint64_t>(*it));
      std::sort(keys.begin(), keys.end());
      std::transform(keys.begin(), keys.end(), begin, [](uint64_t key) {
        return static_cast<utf8proc_int32_t>(
            key & ((uint64_t(1) << CharacterBits) - 1));
      });
    }
    begin = end;
  }
}

// 1. decompose each character; 2. order the marks; 3. compose where the form
// does, and encode again.
Status appendForm(std::string &out, std::string_view text, int options) {
  if (text.empty())
    return Status::ok();
  auto flags = static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE);
  auto failed = [](utf8proc_ssize_t error) {
    return Status::invalid(std::string("normalising text: ") +
                           utf8proc_errmsg(error));
  };
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  for (size_t i = 0; i < text.size(); i += utf8Length(text[i])) {
    utf8proc_int32_t parts[32];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(decodeUtf8(text.substr(i))), parts,
        std::size(parts), flags, &boundary);
    if (count < 0)
      return failed(count);
    if (static_cast<size_t>(count) > std::size(parts))
      return Status::internal("normalising text: a character has " +
                              std::to_string(count) + " parts");
    characters.insert(characters.end(), parts, parts + count);
  }
  orderMarks(characters);
  const auto count = static_cast<utf8proc_ssize_t>(characters.size());
  characters.push_back(0); // where the end of the encoded text is marked
  utf8proc_ssize_t size = utf8proc_reencode(characters.data(), count, flags);
  if (size < 0)
    return failed(size);
  out.append(reinterpret_cast<char *>(characters.data()),
             static_cast<size_t>(size));
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
