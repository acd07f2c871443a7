// The JSON part of a safetensors file, before anything is compared with the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

struct HeaderEntry {
  std::string name;
  ElementType dtype = ElementType::kU8;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // relative to the data
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> entries;  // names are unique
  std::map<std::string, std::string> metadata;
};

Expected<SafetensorsHeader> parse_header_json(std::string_view json, const std::string& origin);

}  // namespace dualgemm::checkpoint
