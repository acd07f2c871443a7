// How wide and how colourful output may be, and the breaking of lines that follows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dualgemm::cli {

enum class ColourChoice { kAuto, kAlways, kNever };

struct Style {
  int width = 80;       // columns that a line may take
  bool colour = false;  // ANSI sequences
};

// What the environment says of a stream; a value, so that the rules below can be tested.
struct StreamFacts {
  bool is_terminal = false;
  int terminal_columns = 0;      // 0: unknown
  std::string columns = {};      // $COLUMNS
  bool no_colour = false;        // $NO_COLOR is set and not empty
  bool is_dumb_terminal = true;  // $TERM is empty or "dumb"
};

// $COLUMNS if it is a number, else the terminal's width, else 80. Colour: `choice` if it decides,
// else only on a terminal that can show it, and without NO_COLOR.
Style style_for(const StreamFacts& facts, ColourChoice choice);

StreamFacts facts_of(int file_descriptor);

// Whether a line can be wiped and drawn again: a terminal that knows control sequences.
bool can_redraw(const StreamFacts& facts);

// `--color` counts for the rest of the process.
void set_colour_choice(ColourChoice choice);
Style stdout_style();
Style stderr_style();

enum class Paint { kBold, kRed, kGreen, kDim };
std::string painted(std::string_view text, Paint paint, bool colour);

// `text` in lines of at most `width` bytes (a longer word stays whole); no trailing newline.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// Breaks every line that is too long. What follows a gap of two blanks (a second column) continues
// below its start, another line two columns in from its own start.
std::string with_long_lines_broken(std::string_view text, int width);

// For prose written in lines: neighbouring lines without indentation are one paragraph, which is
// set anew; indented ones (examples, tables) keep their breaks.
std::string reflowed(std::string_view text, int width);

}  // namespace dualgemm::cli
