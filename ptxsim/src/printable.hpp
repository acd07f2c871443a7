// Foreign text in messages: of files, options, the environment and programs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ptxsim {

// Bytes of a name or value within a message, of a path, and of a whole line.
inline constexpr size_t kLongestName = 200, kLongestPath = 400, kLongestLine = 1500;

// The text as a terminal may have it: control characters (C1 and those that turn the direction of
// writing among them), what is not UTF-8, and what XML 1.0 has no place for come as \x1b, byte by
// byte. A longer text loses its middle to "...", so that what a message ends with, its rule, stays.
std::string printable(std::string_view text, size_t longest = std::string_view::npos);

// The same of each line of a text of several lines, each bounded by itself.
std::string printable_lines(std::string_view text, size_t longest = kLongestLine);

}  // namespace ptxsim
