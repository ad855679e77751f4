// Normal forms, with characters that stand apart from their neighbours.
#include "runtime/text/UnicodeForms.h"

#include <gtest/gtest.h>

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
