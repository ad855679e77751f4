// One walk serves both directions: measure a sequence, telling apart complete,
// broken and cut off at the end.
#include "runtime/text/Utf8.h"

#include <cstring>

namespace ingot {
namespace {

struct Sequence {
  enum Kind { Complete, Broken, Cut } kind;
  size_t length; // bytes that belong to it; at least 1
};

Sequence measure(const uint8_t *p, size_t left) {
  uint8_t lead = p[0];
  if (lead < 0x80)
    return {Sequence::Complete, 1};
  if (lead < 0xC2 || lead > 0xF4)
    return {Sequence::Broken, 1};
  size_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has a range of its own.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < need; ++i) {
    if (i == left)
      return {Sequence::Cut, i};
    if (p[i] < low || p[i] > high)
      return {Sequence::Broken, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Sequence::Complete, need};
}

size_t asciiPrefix(const uint8_t *p, size_t left) {
  size_t i = 0;
  for (; i + 8 <= left; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    if (word & 0x8080808080808080ull)
      break;
  }
  while (i < left && p[i] < 0x80)
    ++i;
  return i;
}

} // namespace

size_t findInvalidUtf8(std::string_view text) {
  const uint8_t *p = reinterpret_cast<const uint8_t *>(text.data());
  for (size_t i = 0; i < text.size();) {
    i += asciiPrefix(p + i, text.size() - i);
    if (i == text.size())
      break;
    Sequence s = measure(p + i, text.size() - i);
    if (s.kind != Sequence::Complete)
      return i;
    i += s.length;
  }
  return std::string_view::npos;
}

uint32_t decodeUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  switch (utf8Length(text[0])) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  case 3:
    return (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  default:
    return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 |
           (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  }
}

void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

size_t appendValidUtf8(std::string &out, std::string_view bytes) {
  const uint8_t *p = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t i = 0, copied = 0;
  while (i < bytes.size()) {
    i += asciiPrefix(p + i, bytes.size() - i);
    if (i == bytes.size())
      break;
    Sequence s = measure(p + i, bytes.size() - i);
    if (s.kind == Sequence::Complete) {
      i += s.length;
      continue;
    }
    out.append(bytes.substr(copied, i - copied));
    if (s.kind == Sequence::Cut)
      return bytes.size() - i;
    out.append(ReplacementCharacter);
    i += s.length;
    copied = i;
  }
  out.append(bytes.substr(copied));
  return 0;
}

} // namespace ingot
