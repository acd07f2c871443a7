// What the kernels around the experts' products are told.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/divisor.hpp"
#include "cuda/device/row_index.hpp"

namespace dualgemm::cuda {

// RoutingBuffers; ids are numbered token * top_k + place.
struct RouteParams {
  const void* ids;
  const int32_t* expert_map;
  const void* weights;
  const float* token_scale;
  int32_t* offsets;
  int32_t* row_tokens;
  int32_t* places;
  float* row_scale;
  uint32_t count;  // of ids
  uint32_t experts;
  uint32_t expert_bits;    // that tell 0 .. experts
  uint32_t named_experts;  // 0: no map
  Divisor top_k;
  // Warps of a CTA that have ids; shared memory holds `experts` + 1 counts of each, and with more
  // than one CTA those of the ids before and behind the CTA's: `counters` of them in all.
  uint32_t warps, counters;
  uint32_t ids_a_warp;  // a multiple of 32
  OutputType weight_type;
  bool wide_ids;
};

struct CombineRowsParams {
  const uint8_t* rows;  // at an element's alignment, as y and the residual
  int64_t row_bytes;
  const int32_t* places;
  const void* weights;      // or null
  const uint8_t* residual;  // or null; as y
  uint8_t* y;
  int64_t y_bytes;  // from row to row
  uint32_t count;   // of rows
  uint32_t tokens, top_k;
  Divisor blocks;  // of 16 columns
  OutputType weight_type, y_type;
};

struct GatherParams {
  const uint8_t* from;
  int64_t from_row_bytes;
  RowIndex index;
  uint8_t* to;
  uint32_t rows, row_bytes;
  uint32_t unit;  // of a lane's copy: 16, 4 or 1, which divides all addresses and sizes
};

}  // namespace dualgemm::cuda
