// Operands that are never read, and what a tensor map's encoder was asked for: launches that are
// built without a GPU.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dualgemm/types.hpp"

namespace dualgemm::test {

// One call of the encoder, as it was made.
struct RecordedView {
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  uint64_t address;
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box;
};
inline std::vector<RecordedView> views;  // record_view() appends; a test clears them
inline CUresult encoder_answer = CUDA_SUCCESS;

// An encoder that numbers its maps: every byte of the first is 1.
inline CUresult record_view(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                            void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                            const cuuint32_t* box, const cuuint32_t* element_strides,
                            CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  EXPECT_TRUE(std::all_of(element_strides, element_strides + rank, [](auto s) { return s == 1; }));
  std::memset(map, static_cast<int>(views.size()) + 1, sizeof *map);
  views.push_back({type,
                   swizzle,
                   reinterpret_cast<uint64_t>(address),
                   {dims, dims + rank},
                   {strides, strides + rank - 1},
                   {box, box + rank}});
  return encoder_answer;
}

inline std::vector<std::vector<uint32_t>> boxes() {
  std::vector<std::vector<uint32_t>> all;
  for (const RecordedView& view : views) all.push_back(view.box);
  return all;
}

// Addresses that are never read, 2^40 bytes apart.
inline Buffers far_buffers() {
  const auto at = [](uint64_t number) { return number << 40; };
  Buffers buffers;
  buffers.a = reinterpret_cast<void*>(at(1));
  buffers.a_scales = reinterpret_cast<uint8_t*>(at(2));
  buffers.gate = reinterpret_cast<void*>(at(3));
  buffers.gate_scales = reinterpret_cast<uint8_t*>(at(4));
  buffers.up = reinterpret_cast<void*>(at(5));
  buffers.up_scales = reinterpret_cast<uint8_t*>(at(6));
  buffers.d = reinterpret_cast<void*>(at(7));
  return buffers;
}

}  // namespace dualgemm::test
