// The parts of a case's reader: case.hpp has what they make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "case/json_node.hpp"
#include "case/value_file.hpp"
#include "ptxsim/case/case.hpp"

namespace ptxsim {

// All buffers, parameters and files of a case together: what fits into memory twice, as a run works
// on a copy.
inline constexpr uint64_t kMostCaseBytes = uint64_t{1} << 30;

// Files of a case, and how many bytes it may still ask for.
struct CaseSource {
  std::string folder;
  const CaseTarget* target = nullptr;
  uint64_t bytes_left = kMostCaseBytes;
  std::map<std::string, ValueFile> value_files = {};  // by path: each is read once

  void claim(const JsonNode& node, uint64_t bytes);  // refuses what is more than is left
  std::vector<std::byte> read_file(const JsonNode& name);
  std::vector<std::byte> read_file(const JsonNode& node, const std::string& name);
  // An array of a file of values: "file#name".
  const NamedValues& read_values(const JsonNode& reference);
};

inline constexpr std::string_view kElementTypes = "u8 .. s64, b8 .. b64, f16, bf16, f32 or f64";
std::optional<ElementType> element_type_named(std::string_view name);
ElementType read_element_type(const JsonNode& node);
int read_rule(const JsonNode& node);  // "R17"
// The pattern of one value: "0x..." is the pattern itself, a number is converted to the type.
uint64_t read_pattern(const JsonNode& value, ElementType type);
void append(std::vector<std::byte>& data, uint64_t pattern, unsigned bytes);

CaseBuffer read_buffer(const JsonNode& node, size_t index, CaseSource& source);
void append_parameter(Case& c, const JsonNode& node, CaseSource& source);

}  // namespace ptxsim
