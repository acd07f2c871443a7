// Values of a buffer as text that is denser than JSON: numbers with blanks between them, runs and
// ranges as one word each. docs/ptxsim.md has the notation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/case/case.hpp"

namespace ptxsim {

using Patterns = std::vector<std::optional<uint64_t>>;  // nothing: any value

// Values of one list: a short text can stand for many.
inline constexpr uint64_t kMostPackedValues = uint64_t{1} << 22;

struct PackedFormat {
  ElementType type = ElementType::kU8;
  bool hex = false;  // patterns without "0x"; otherwise numbers, or patterns with it
  uint64_t most = kMostPackedValues;
};

struct PackedError {
  std::string_view word;  // a part of the text that was read
  std::string reason;     // with the word
};

// Appends the values of the text.
std::optional<PackedError> read_packed(std::string_view text, const PackedFormat& format,
                                       Patterns& values);

}  // namespace ptxsim
