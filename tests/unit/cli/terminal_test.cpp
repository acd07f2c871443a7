// What lines may hold: width, colour, wrapping, and the guess behind "did you mean".
#include "tools/cli/print/terminal.hpp"

#include <gtest/gtest.h>

#include "tools/cli/parse/suggest.hpp"

namespace dualgemm::cli {
namespace {

TEST(Style, WidthIsColumnsElseTheTerminalElse80) {
  EXPECT_EQ(style_for({}, ColourChoice::kAuto).width, 80);
  EXPECT_EQ(style_for({.terminal_columns = 132}, ColourChoice::kAuto).width, 132);
  EXPECT_EQ(style_for({.terminal_columns = 132, .columns = "60"}, ColourChoice::kAuto).width, 60);
  for (const char* nonsense : {"", "x", "0", "-5", "60x", "99999999999999999999"})
    EXPECT_EQ(style_for({.columns = nonsense}, ColourChoice::kAuto).width, 80) << nonsense;
  EXPECT_EQ(style_for({.columns = "1"}, ColourChoice::kAuto).width, 20);
}

TEST(Style, ColourOnATerminalOnly) {
  const StreamFacts terminal{.is_terminal = true, .is_dumb_terminal = false};
  StreamFacts plain = terminal, dumb = terminal;
  plain.no_colour = true;
  dumb.is_dumb_terminal = true;
  EXPECT_TRUE(style_for(terminal, ColourChoice::kAuto).colour);
  EXPECT_FALSE(style_for(plain, ColourChoice::kAuto).colour);
  EXPECT_FALSE(style_for(dumb, ColourChoice::kAuto).colour);
  EXPECT_FALSE(style_for({}, ColourChoice::kAuto).colour);
  EXPECT_FALSE(style_for(terminal, ColourChoice::kNever).colour);
  EXPECT_TRUE(style_for(plain, ColourChoice::kAlways).colour);  // what was asked for counts
  EXPECT_TRUE(style_for({}, ColourChoice::kAlways).colour);
}

TEST(Redrawing, NeedsATerminalThatKnowsControlSequences) {
  EXPECT_TRUE(can_redraw({.is_terminal = true, .no_colour = true, .is_dumb_terminal = false}));
  EXPECT_FALSE(can_redraw({.is_terminal = true, .is_dumb_terminal = true}));
  EXPECT_FALSE(can_redraw({.is_terminal = false, .is_dumb_terminal = false}));
}

TEST(Wrapping, KeepsWordsAndSecondColumns) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("extraordinarily", 5), (std::vector<std::string>{"extraordinarily"}));
  EXPECT_EQ(wrapped("", 5), (std::vector<std::string>{""}));
  EXPECT_EQ(with_long_lines_broken("key  one two three\nshort\n", 14),
            "key  one two\n     three\nshort\n");
  EXPECT_EQ(with_long_lines_broken("one two three", 9), "one two\n  three\n");
}

TEST(Wrapping, ParagraphsAreSetAnewAndExamplesStay) {
  EXPECT_EQ(reflowed("one two\nthree four\n\nExamples:\n  dualgemm a\n  dualgemm b", 14),
            "one two three\nfour\n\nExamples:\n  dualgemm a\n  dualgemm b\n");
}

TEST(Suggest, NearNamesOnly) {
  const std::vector<std::string> names = {"fused", "fused_epilogue", "two_pass", "fp8", "m"};
  EXPECT_EQ(nearest("fusde", names), "fused");
  EXPECT_EQ(nearest("twopass", names), "two_pass");
  EXPECT_EQ(nearest("TWO-PASS", names), "two_pass");
  EXPECT_EQ(nearest("fused_epi", names), "fused_epilogue");
  EXPECT_EQ(nearest("zzz", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest(std::string(100000, 'f'), names), "");
  EXPECT_EQ(did_you_mean("fusde", names), "; did you mean fused?");
  EXPECT_EQ(did_you_mean("zzz", names), "");
  EXPECT_EQ(did_you_mean("fused", names), "") << "it is one of them: something else was wrong";
}

TEST(Suggest, MisspeltBeginningsAndWhatOthersSay) {
  const std::vector<std::string> names = {"silu",           "gelu_erf", "gelu_tanh", "linear",
                                          "swizzled_128x4", "cpu",      "cuda",      "e2m1"};
  EXPECT_EQ(nearest("gleu", names), "gelu_erf");
  EXPECT_EQ(nearest("swizled", names), "swizzled_128x4");
  EXPECT_EQ(nearest("swizled_128x4", names), "swizzled_128x4");
  EXPECT_EQ(nearest("gpu", names), "cuda");
  EXPECT_EQ(nearest("GPU", {"cpu"}), "cpu") << "only what there is";
  EXPECT_EQ(nearest("swiglu", names), "silu");
  EXPECT_EQ(nearest("nvfp4", names), "e2m1");
}

TEST(Suggest, DistanceCountsASwapOnce) {
  EXPECT_EQ(edit_distance("abc", "acb"), 1);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

}  // namespace
}  // namespace dualgemm::cli
