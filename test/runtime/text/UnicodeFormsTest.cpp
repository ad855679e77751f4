// Normal forms, with characters that stand apart from their neighbours.
#include "runtime/text/UnicodeForms.h"

#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

namespace ingot {
namespace {

std::string form(std::string text, UnicodeForm form,
                 std::vector<uint32_t> apart = {}) {
  EXPECT_TRUE(applyUnicodeForm(text, form, apart).isOk());
  return text;
}

TEST(UnicodeForms, ComposeAndDecompose) {
  EXPECT_EQ(form("e\xCC\x81", UnicodeForm::Nfc), "\xC3\xA9");
  EXPECT_EQ(form("\xC3\xA9", UnicodeForm::Nfd), "e\xCC\x81");
  EXPECT_EQ(form("\xEF\xAC\x81", UnicodeForm::Nfc), "\xEF\xAC\x81");
  EXPECT_EQ(form("\xEF\xAC\x81", UnicodeForm::Nfkc), "fi");
  EXPECT_EQ(form("\xEF\xAC\x81\xC3\xA9", UnicodeForm::Nfkd), "fie\xCC\x81");
  EXPECT_EQ(form("", UnicodeForm::Nfc), "");
  EXPECT_EQ(form("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", UnicodeForm::Nfc),
            "\xED\x95\x9C");
}

std::string fromLibrary(const std::string &text, int options) {
  utf8proc_uint8_t *mapped = nullptr;
  utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  EXPECT_GE(size, 0);
  std::string out(reinterpret_cast<char *>(mapped),
                  static_cast<size_t>(std::max<utf8proc_ssize_t>(size, 0)));
  std::free(mapped);
  return out;
}

// Marks of all classes in any order, with letters, syllables and characters of
// many parts among them, become what the library's own sorting makes of them.
TEST(UnicodeForms, AreThoseOfTheLibrary) {
  const std::pair<UnicodeForm, int> forms[] = {
      {UnicodeForm::Nfc, UTF8PROC_COMPOSE},
      {UnicodeForm::Nfd, UTF8PROC_DECOMPOSE},
      {UnicodeForm::Nfkc, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
      {UnicodeForm::Nfkd, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
  const uint32_t some[] = {0x301,  0x316,  0x327,  0x345,  0x344,  0x5B0,
                           0x5BC,  0x64B,  0x651,  0xF71,  0xF73,  0xF75,
                           0xF81,  0x3099, 0x94D,  0x93C,  0x1DF6, 'e',
                           'o',    0xE9,   0x1EC7, 0xAC01, 0x1100, 0x1161,
                           0x11A8, 0xFDFA, 0x212B, 0x1F71, 0x1D15E};
  std::mt19937 random(5);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 24; n > 0; --n)
      appendUtf8(text, some[random() % std::size(some)]);
    for (auto [one, options] : forms)
      EXPECT_EQ(form(text, one), fromLibrary(text, options)) << text;
  }
}

// Marks whose classes alternate: sorted by swaps of neighbours these would take
// a day, and a server that prepares requests one by one would stand still.
TEST(UnicodeForms, MillionsOfMarksAreNoWork) {
  constexpr size_t kPairs = 1000000;
  std::string text = "e", above, below;
  for (size_t i = 0; i < kPairs; ++i) {
    text += "\xCC\x81\xCC\x96";
    above += "\xCC\x81";
    below += "\xCC\x96";
  }
  EXPECT_EQ(form(text, UnicodeForm::Nfd), "e" + below + above);
  EXPECT_EQ(form(text, UnicodeForm::Nfc), "\xC3\xA9" + below + above.substr(2));
}

// Long stretches of characters that never change are copied; the last of them
// still takes the mark that follows.
TEST(UnicodeForms, PlainStretches) {
  for (size_t n = 0; n < 40; ++n) {
    std::string plain(n, 'x'), latin;
    for (size_t i = 0; i < n; ++i)
      latin += "\xC3\xBC";
    EXPECT_EQ(form(plain + "e\xCC\x81" + plain + "e\xCC\x81" + plain,
                   UnicodeForm::Nfc),
              plain + "\xC3\xA9" + plain + "\xC3\xA9" + plain);
    EXPECT_EQ(form(latin + "e\xCC\x81" + latin, UnicodeForm::Nfc),
              latin + "\xC3\xA9" + latin);
    EXPECT_EQ(form(plain + "\xC3\xA9" + plain, UnicodeForm::Nfd),
              plain + "e\xCC\x81" + plain);
  }
}

// U+0315 and U+0300 would change places; apart, they do not, and what is apart
// neither decomposes nor composes.
TEST(UnicodeForms, Apart) {
  EXPECT_EQ(form("a\xCC\x95\xCC\x80", UnicodeForm::Nfd), "a\xCC\x80\xCC\x95");
  EXPECT_EQ(form("a\xCC\x95\xCC\x80", UnicodeForm::Nfd, {0x315, 0x315}),
            "a\xCC\x95\xCC\x80");
  EXPECT_EQ(form("e\xCC\x81", UnicodeForm::Nfc, {0x300, 0x310}), "e\xCC\x81");
  EXPECT_EQ(
      form("\xEF\xAC\x81x\xEF\xAC\x82", UnicodeForm::Nfkc, {0xFB00, 0xFB01}),
      "\xEF\xAC\x81xfl");
}

} // namespace
} // namespace ingot
