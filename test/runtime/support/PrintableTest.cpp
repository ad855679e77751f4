// What a stranger wrote cannot command the terminal that shows it.
#include "runtime/support/Printable.h"

#include <gtest/gtest.h>

using ingot::printable;
using ingot::printableLines;

TEST(PrintableTest, ordinaryTextStays) {
  for (const char *text : {"", "layer.3.qkv", "Grüße, 世界 🙂",
                           "back\\slash \"quote\"", "\u00a0"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printableLines(text), text);
  }
}

TEST(PrintableTest, everyControlCharacterIsSpelledOut) {
  for (int code = 0; code < 0xa0; ++code) {
    if (code == ' ')
      code = 0x7f;
    std::string text = code < 0x80 ? std::string(1, char(code))
                                   : std::string("\xc2") + char(code);
    char expected[8];
    std::snprintf(expected, sizeof expected, "\\x%02x", code);
    EXPECT_EQ(printable(text), expected);
    EXPECT_EQ(printableLines(text),
              code == '\n' || code == '\t' ? text : expected);
  }
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("\u202eexe.txt"), "\\u202eexe.txt");
  EXPECT_EQ(printable("\u2066\u2028\u200f"), "\\u2066\\u2028\\u200f");
}

TEST(PrintableTest, bytesThatAreNotUtf8AreSpelledOut) {
  EXPECT_EQ(printable("\x9b[2J"), "\\x9b[2J");             // C1 as a bare byte
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");          // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // surrogate
  EXPECT_EQ(printable("\xe4\xb8"), "\\xe4\\xb8");          // cut off
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}
