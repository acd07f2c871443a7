// A file with the values of a case's buffers, which leaves the case and its program on one page:
// arrays with a name, each below a line "name: type count" or "name: type count hex".
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "case/packed_values.hpp"

namespace ptxsim {

inline constexpr size_t kMostValueFileBytes = size_t{64} << 20;

struct NamedValues {
  std::string type_name;  // as the file has it
  ElementType type = ElementType::kU8;
  uint64_t count = 0;  // that the heading says, and the number of patterns
  Patterns patterns;
};

using ValueFile = std::map<std::string, NamedValues, std::less<>>;

// Throws Fault (kInput) with the place in the file. `path`: its name for messages.
ValueFile read_value_file(std::string_view text, const std::string& path);

}  // namespace ptxsim
