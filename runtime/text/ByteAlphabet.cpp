// Printable Latin-1 bytes stand for themselves; the other 68, in order, are
// written with the characters from U+0100 on.
#include "runtime/text/ByteAlphabet.h"

#include "runtime/text/Utf8.h"

#include <array>

namespace ingot {
namespace {

struct Alphabet {
  std::array<uint16_t, 256> toCharacter{};
  std::array<int16_t, 0x100 + 68> toByte{};

  Alphabet() {
    toByte.fill(-1);
    uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      bool printable =
          (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      toCharacter[b] = printable ? static_cast<uint16_t>(b) : next++;
      toByte[toCharacter[b]] = static_cast<int16_t>(b);
    }
  }
};

const Alphabet &alphabet() {
  static const Alphabet table;
  return table;
}

} // namespace

uint32_t byteToAlphabet(uint8_t byte) { return alphabet().toCharacter[byte]; }

std::optional<std::string> alphabetToBytes(std::string_view spelling) {
  if (findInvalidUtf8(spelling) != std::string_view::npos)
    return std::nullopt;
  const Alphabet &table = alphabet();
  std::string bytes;
  for (size_t i = 0; i < spelling.size(); i += utf8Length(spelling[i])) {
    uint32_t c = decodeUtf8(spelling.substr(i));
    if (c >= table.toByte.size() || table.toByte[c] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(table.toByte[c]));
  }
  return bytes;
}

std::string bytesToAlphabet(std::string_view bytes) {
  std::string spelling;
  for (char b : bytes)
    appendUtf8(spelling, byteToAlphabet(static_cast<uint8_t>(b)));
  return spelling;
}

} // namespace ingot
