#include "core/printable.hpp"

#include <cstdint>
#include <vector>

namespace dualgemm::core {
namespace {

constexpr char kGap[] = "...";
constexpr size_t kGapBytes = sizeof(kGap) - 1;
constexpr char kHexDigits[] = "0123456789abcdef";

// A code point and how many bytes spell it; 0 bytes: no UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;
};

CodePoint code_point_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes > text.size()) return {};
  uint32_t value = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kLeast[bytes] || value > 0x10FFFF || surrogate ? CodePoint{}
                                                                : CodePoint{value, bytes};
}

// Moves the cursor, starts another line or turns the direction in which what follows is shown.
bool acts_on_terminals(uint32_t value) {
  const auto within = [value](uint32_t first, uint32_t last) {
    return value >= first && value <= last;
  };
  return value < 0x20 || within(0x7F, 0x9F) || within(0x2028, 0x202E) || within(0x2066, 0x2069) ||
         within(0x200E, 0x200F) || value == 0x61C || value == 0xFEFF;
}

std::string escaped_byte(uint8_t byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  return {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
}

std::string escaped_code_point(uint32_t value) {
  std::string out = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHexDigits[value >> shift & 15];
  return out;
}

// The first unit of `text`, as it is shown; `taken`: how many bytes it is in `text`.
std::string unit_of(std::string_view text, LineBreaks breaks, size_t& taken) {
  const CodePoint point = code_point_at(text);
  taken = point.bytes == 0 ? 1 : point.bytes;
  if (point.bytes == 0) return escaped_byte(static_cast<uint8_t>(text[0]));
  const bool kept = breaks == LineBreaks::kKept && (text[0] == '\n' || text[0] == '\t');
  if (kept || !acts_on_terminals(point.value)) return std::string(text.substr(0, taken));
  return point.value < 0x7F ? escaped_byte(static_cast<uint8_t>(point.value))
                            : escaped_code_point(point.value);
}

// Units from the beginning, as many as fit in `room` bytes. `text` is left with the others.
std::string beginning_of(std::string_view& text, size_t room, LineBreaks breaks) {
  std::string out;
  while (!text.empty()) {
    size_t taken = 0;
    const std::string unit = unit_of(text, breaks, taken);
    if (unit.size() > room - out.size()) break;
    out += unit;
    text.remove_prefix(taken);
  }
  return out;
}

// Units up to the end, as many as fit in `room` bytes.
std::string end_of(std::string_view text, size_t room, LineBreaks breaks) {
  if (text.size() > room) text.remove_prefix(text.size() - room);
  while (!text.empty() && (static_cast<uint8_t>(text[0]) & 0xC0) == 0x80) text.remove_prefix(1);
  std::vector<std::string> units;
  size_t bytes = 0, first = 0;
  while (!text.empty()) {
    size_t taken = 0;
    units.push_back(unit_of(text, breaks, taken));
    bytes += units.back().size();
    text.remove_prefix(taken);
  }
  for (; bytes > room; ++first) bytes -= units[first].size();
  std::string out;
  for (; first < units.size(); ++first) out += units[first];
  return out;
}

}  // namespace

std::string printable(std::string_view text, size_t longest, LineBreaks breaks) {
  std::string_view rest = text;
  std::string whole = beginning_of(rest, longest, breaks);
  if (rest.empty()) return whole;
  const size_t end_bytes = (longest - kGapBytes) / 3;
  rest = text;
  const std::string begin = beginning_of(rest, longest - kGapBytes - end_bytes, breaks);
  return begin + kGap + end_of(rest, end_bytes, breaks);
}

bool is_printable(std::string_view text) { return printable(text) == text; }

}  // namespace dualgemm::core
