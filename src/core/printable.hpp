// Text from outside (files, names, options, the environment) for messages and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dualgemm::core {

// Characters of a message, at most: long enough for every path, short enough for a screen.
inline constexpr size_t kLongestMessage = 1440;

// What may stand unescaped besides what can be seen: nothing, or ends of lines and tabs.
enum class LineBreaks { kEscaped, kKept };

// `text` as visible UTF-8 of at most `longest` bytes. Control characters (C0, DEL, C1), marks that
// turn the direction of writing, and bytes that are no UTF-8 become "\n", "\x1b", "\u202e"; a
// longer text loses its middle to "...". What is printable already comes back unchanged, so that
// nothing is escaped twice. Precondition: longest >= 16.
std::string printable(std::string_view text, size_t longest = std::string::npos,
                      LineBreaks breaks = LineBreaks::kEscaped);

// Does `text` stay as it is, whatever its length?
bool is_printable(std::string_view text);

}  // namespace dualgemm::core
