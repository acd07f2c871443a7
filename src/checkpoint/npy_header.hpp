// The header of a .npy file: a Python dict literal of three known keys, read without evaluating
// anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

struct NpyHeader {
  std::string descr;  // e.g. "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

Expected<NpyHeader> parse_npy_header(std::string_view text, const std::string& origin);

}  // namespace dualgemm::checkpoint
