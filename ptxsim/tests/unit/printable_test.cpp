// Foreign text in messages: nothing that steers a terminal, nothing without an end.
#include "printable.hpp"

#include <gtest/gtest.h>

#include "ptxsim/report.hpp"

namespace ptxsim {
namespace {

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string("\0\t\r\n\x7f", 5)), "\\x00\\x09\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");                                      // C1: CSI
  EXPECT_EQ(printable("\xe2\x80\xae\xe2\x81\xa6"), "\\xe2\\x80\\xae\\xe2\\x81\\xa6");  // direction
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");                             // a line end
}

TEST(Printable, KeepsText) {
  EXPECT_EQ(printable("k\xc3\xa4se \xe6\xbc\xa2 \xf0\x9f\x99\x82 'x' \\x1b"),
            "k\xc3\xa4se \xe6\xbc\xa2 \xf0\x9f\x99\x82 'x' \\x1b");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // longer than need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xef\xbf\xbe"), "\\xef\\xbf\\xbe");           // no character, nor XML's
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last
  EXPECT_EQ(printable("\xe6z"), "\\xe6z");
}

TEST(Printable, ALongTextKeepsItsEnds) {
  const std::string text = "begin " + std::string(1 << 20, 'x') + " end";
  const std::string shown = printable(text, 100);
  EXPECT_LE(shown.size(), 100u);
  EXPECT_TRUE(shown.starts_with("begin x")) << shown;
  EXPECT_TRUE(shown.ends_with("x end")) << shown;
  EXPECT_NE(shown.find("x...x"), std::string::npos) << shown;
  EXPECT_EQ(printable(std::string(100, 'x'), 100), std::string(100, 'x'));
}

TEST(Printable, IsBoundedWithItsEscapesAndCutsNoCharacter) {
  for (size_t longest = 16; longest < 48; ++longest) {
    EXPECT_LE(printable(std::string(60, '\x1b'), longest).size(), longest);
    std::string text;
    for (int i = 0; i < 40; ++i) text += "\xe6\xbc\xa2";
    const std::string shown = printable(text, longest);
    EXPECT_LE(shown.size(), longest);
    EXPECT_EQ(printable(shown), shown) << longest;
  }
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(printable_lines("a\n\x1b\nb"), "a\n\\x1b\nb");
  EXPECT_EQ(printable_lines(""), "");
  EXPECT_EQ(printable_lines("a\n"), "a\n");
  EXPECT_LE(printable_lines(std::string(5000, 'x') + "\n" + std::string(5000, 'y')).size(),
            2 * kLongestLine + 1);
}

TEST(Printable, PlacesAndReportsAre) {
  Place place{"k\x1b.ptx", 3, 0, "s\x1b.cu", 7, "f\x1b"};
  EXPECT_EQ(to_string(place), "k\\x1b.ptx:3 (s\\x1b.cu:7) in f\\x1b");
  place.ptx_name = std::string(100000, 'p');
  Report report{1, Severity::kError, std::string(100000, 'm') + "\x1b", place, "a\x1b", "", "", ""};
  const std::string text = to_string(report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LE(text.size(), 4 * kLongestLine);
}

}  // namespace
}  // namespace ptxsim
