// Rows copied by index.
#pragma once

#include <cstdint>

namespace dualgemm::core {

struct Gather {
  const uint8_t* from = nullptr;
  int64_t from_row_bytes = 0;  // from row to row
  int64_t row_bytes = 0;       // that are copied of each
  int64_t from_rows = 0;
  const int32_t* index = nullptr;  // [rows], on a GPU cut to 0 .. from_rows - 1
  int64_t rows = 0;
  uint8_t* to = nullptr;  // tight
};

}  // namespace dualgemm::core
