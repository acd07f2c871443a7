#include "case/packed_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "printable.hpp"

namespace ptxsim {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The whole text as an unsigned number.
std::optional<uint64_t> whole_number(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

struct Integer {
  bool negative = false;
  uint64_t magnitude = 0;

  uint64_t pattern() const { return negative ? ~magnitude + 1 : magnitude; }
};

// One word of the text, which may stand for many values.
class Word {
 public:
  Word(std::string_view text, const PackedFormat& format, Patterns& values)
      : text_(text), format_(format), values_(values), bits_(8 * bytes_of(format.type)) {}

  // The reason why it is refused; empty: its values are appended.
  std::string read() const {
    if (const size_t star = text_.find('*'); star != text_.npos)
      return repeat(text_.substr(0, star), text_.substr(star + 1));
    if (const size_t dots = text_.find(".."); dots != text_.npos)
      return range(text_.substr(0, dots), text_.substr(dots + 2));
    return repeat(text_, "1");
  }

 private:
  bool is_float() const {
    return format_.type == ElementType::kF32 || format_.type == ElementType::kF64;
  }
  uint64_t mask() const { return ~uint64_t{0} >> (64 - bits_); }
  std::string too_many() const { return fmt::format("more than {} values", format_.most); }
  std::string no_value(std::string_view text) const {
    return fmt::format("'{}' is no {} of {} bits", printable(text, kLongestName),
                       format_.hex ? "pattern" : "number or pattern", bits_);
  }

  // As JSON has numbers: no leading plus, no names of infinities.
  static std::optional<double> real(std::string_view text) {
    const size_t first = text.starts_with('-') ? 1 : 0;
    double value = 0;
    const char* end = text.data() + text.size();
    if (first == text.size() || !is_digit(text[first])) return std::nullopt;
    const auto [last, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || last != end) return std::nullopt;
    return value;
  }
  uint64_t float_pattern(double value) const {
    return format_.type == ElementType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                             : std::bit_cast<uint64_t>(value);
  }

  bool fits(const Integer& value) const {
    if (!value.negative || value.magnitude == 0) return (value.magnitude & ~mask()) == 0;
    return (value.pattern() | mask() >> 1) == ~uint64_t{0};
  }
  std::optional<Integer> integer(std::string_view text) const {
    Integer value;
    value.negative = !format_.hex && text.starts_with('-');
    const auto magnitude = whole_number(text.substr(value.negative ? 1 : 0), format_.hex ? 16 : 10);
    if (!magnitude) return std::nullopt;
    value.magnitude = *magnitude;
    return value;
  }

  // The pattern of one value.
  std::optional<uint64_t> pattern(std::string_view text) const {
    const bool marked = !format_.hex && text.starts_with("0x");
    if (marked || format_.hex) {
      const auto value = whole_number(text.substr(marked ? 2 : 0), 16);
      return value && (*value & ~mask()) == 0 ? value : std::nullopt;
    }
    if (is_float()) {
      const auto value = real(text);
      return value ? std::optional(float_pattern(*value)) : std::nullopt;
    }
    const auto value = integer(text);
    return value && fits(*value) ? std::optional(value->pattern() & mask()) : std::nullopt;
  }

  std::string repeat(std::string_view value, std::string_view times) const {
    const auto count = whole_number(times, 10);
    if (!count || *count == 0)
      return fmt::format("'{}' is no count; 'value*count' has one of 1 or more",
                         printable(times, kLongestName));
    const bool is_any = value == "-";
    const auto bits = is_any ? std::nullopt : pattern(value);
    if (!is_any && !bits) return no_value(value);
    if (*count > format_.most - values_.size()) return too_many();
    values_.insert(values_.end(), *count, bits);
    return {};
  }

  // "first..last", up or down by one, or "first..last/step".
  std::string range(std::string_view first_text, std::string_view rest) const {
    const size_t slash = rest.find('/');
    const std::string_view last_text = rest.substr(0, slash);
    const auto step = slash == rest.npos
                          ? std::optional<uint64_t>(1)
                          : whole_number(rest.substr(slash + 1), format_.hex ? 16 : 10);
    const auto first = integer(first_text), last = integer(last_text);
    if (!first || !in_range(*first)) return no_value(first_text);
    if (!last || !in_range(*last)) return no_value(last_text);
    // Shifted so that an order of signed numbers is one of unsigned ones.
    const uint64_t shift = format_.hex ? 0 : uint64_t{1} << 63;
    const uint64_t from = first->pattern() + shift, to = last->pattern() + shift;
    const uint64_t distance = from < to ? to - from : from - to;
    if (!step || *step == 0 || distance % *step != 0)
      return fmt::format("'{}': steps from the first value do not end at the last",
                         printable(text_, kLongestName));
    if (distance / *step >= format_.most - values_.size()) return too_many();
    for (uint64_t i = 0; i <= distance / *step; ++i) {
      const uint64_t value = first->pattern() + (from < to ? i * *step : ~(i * *step) + 1);
      values_.emplace_back(is_float() && !format_.hex
                               ? float_pattern(static_cast<double>(static_cast<int64_t>(value)))
                               : value & mask());
    }
    return {};
  }
  // A number that a range may begin or end with.
  bool in_range(const Integer& value) const {
    if (format_.hex) return fits(value);
    const uint64_t most = (uint64_t{1} << 63) - (value.negative ? 0 : 1);
    return value.magnitude <= most && (is_float() || fits(value));
  }

  std::string_view text_;
  const PackedFormat& format_;
  Patterns& values_;
  unsigned bits_;
};

}  // namespace

std::optional<PackedError> read_packed(std::string_view text, const PackedFormat& format,
                                       Patterns& values) {
  constexpr std::string_view kBlanks = " \t\r\n";
  for (size_t at = text.find_first_not_of(kBlanks); at != text.npos;
       at = text.find_first_not_of(kBlanks, at)) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::string reason = Word(word, format, values).read();
    if (!reason.empty()) return PackedError{word, std::move(reason)};
    at = end;
  }
  return std::nullopt;
}

}  // namespace ptxsim
