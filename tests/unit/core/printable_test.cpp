#include "core/printable.hpp"

#include <gtest/gtest.h>

#include "dualgemm/status.hpp"

namespace dualgemm::core {
namespace {

TEST(Printable, KeepsWhatCanBeSeen) {
  for (const char* text : {"", "plain", "Grüße, 日本語, 🙂", "back\\slash", "'quotes'"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text));
  }
}

TEST(Printable, EscapesWhatActsOnATerminal) {
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(printable("\x7f"), "\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // CSI of C1
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202eabc");                          // right to left
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");  // a line's end
  EXPECT_EQ(printable("a\nb\tc\x1b", std::string::npos, LineBreaks::kKept), "a\nb\tc\\x1b");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x80"), "\\x80");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // longer than need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

// For every pair of bytes: visible, and the same once more.
TEST(Printable, IsIdempotentAndHoldsNoControl) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b)};
      const std::string shown = printable(text);
      EXPECT_EQ(printable(shown), shown);
      for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    }
  }
}

TEST(Printable, LongTextsLoseTheirMiddle) {
  const std::string text = "begin" + std::string(1'000'000, 'x') + "end";
  const std::string shown = printable(text, 60);
  EXPECT_LE(shown.size(), 60u);
  EXPECT_TRUE(shown.starts_with("begin"));
  EXPECT_TRUE(shown.ends_with("end"));
  EXPECT_NE(shown.find("..."), std::string::npos);
  EXPECT_EQ(printable(std::string(60, 'x'), 60), std::string(60, 'x'));
  for (size_t longest = 16; longest < 40; ++longest) {
    for (const char* unit : {"\x1b", "ü", "🙂", "\xff"}) {
      std::string many;
      for (int i = 0; i < 100; ++i) many += unit;
      const std::string cut = printable(many, longest);
      EXPECT_LE(cut.size(), longest);
      EXPECT_TRUE(is_printable(cut)) << cut;
    }
  }
}

TEST(Printable, MessagesOfAStatus) {
  std::string path(5000, 'p');
  path += ".npy";
  const std::string rule = "must\nbe\x07 " + std::string(100'000, 'r');
  const Status status = Status::invalid(path, "\x1b[2J", rule);
  EXPECT_LE(status.message().size(), kLongestMessage + 4);
  EXPECT_TRUE(is_printable(status.message()));
  EXPECT_TRUE(status.argument().ends_with(".npy"));
  EXPECT_EQ(status.observed(), "\\x1b[2J");
  EXPECT_TRUE(status.rule().starts_with("must\\nbe\\x07 rrr"));
}

}  // namespace
}  // namespace dualgemm::core
