#include "printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace ptxsim {
namespace {

struct Character {
  size_t bytes = 1;
  bool is_shown = false;
};

bool is_shown(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_line_end = code == 0x2028 || code == 0x2029;
  const bool turns_direction = code == 0x200e || code == 0x200f ||
                               (code >= 0x202a && code <= 0x202e) ||
                               (code >= 0x2066 && code <= 0x2069);
  const bool is_none = (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe;
  return !is_control && !is_line_end && !turns_direction && !is_none && code <= 0x10ffff;
}

// The character at the beginning of a text that is not empty; a byte that begins none is one of its
// own.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, is_shown(lead)};
  const size_t bytes = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};  // a shorter form is not UTF-8
  if (code < kLeast[bytes - 2]) return {};
  return {bytes, is_shown(code)};
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_of(text);
    if (c.is_shown)
      out += text.substr(0, c.bytes);
    else
      for (size_t i = 0; i < c.bytes; ++i)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
    text.remove_prefix(c.bytes);
  }
  return out;
}

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string printable(std::string_view text, size_t longest) {
  constexpr std::string_view kGap = "...";
  if (text.size() <= longest) {
    std::string whole = escaped(text);
    if (whole.size() <= longest) return whole;
  }
  // An escaped text is no shorter than the text: its two ends are enough.
  const size_t half = (std::max(longest, kGap.size()) - kGap.size()) / 2;
  const size_t taken = std::min(text.size(), half + 4);
  std::string begin = escaped(text.substr(0, taken));
  std::string end = escaped(text.substr(text.size() - taken));
  begin.resize(std::min(begin.size(), half));
  while (!begin.empty() && static_cast<unsigned char>(begin.back()) >= 0x80) begin.pop_back();
  size_t from = end.size() - std::min(end.size(), half);
  while (from < end.size() && is_inside_character(end[from])) ++from;
  return begin + std::string(kGap) + end.substr(from);
}

std::string printable_lines(std::string_view text, size_t longest) {
  std::string out;
  for (;;) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += printable(text.substr(0, end), longest);
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace ptxsim
