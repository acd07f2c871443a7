// The compiled CUTLASS kernels: stock SM100 NVFP4 mainloops with an epilogue for two products.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/cutlass/params.hpp"
#include "cuda/runtime/grid_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "plan/kernel_id.hpp"

namespace dualgemm::cuda::gated {

// Codes in rows whose distance is a multiple of 16 bytes, scales in tiles of 128 x 4, as CUTLASS
// and cuBLASLt have them; batches any multiple of 16 bytes apart.
struct Operand {
  const uint8_t* codes;
  int64_t row_bytes, batch_bytes;
  const uint8_t* scales;
  int64_t scale_batch_bytes;
};

struct Gemm {
  int32_t m, k, l;  // k: a multiple of 32; what is beyond the problem's k is zero in one operand
  int32_t weight_rows;  // of Gate and Up, 128 of each by turns: a multiple of 256
  Operand a, weights;
  EpilogueParams epilogue;
};

struct Instance {
  KernelId kernel;
  const char* entry;
  bool any_epilogue;  // else SiLU, D fp16, no biases, no row scales
  int tile_m;         // rows of D a tile: 128, or 256 by two CTAs
  int stages;
  Expected<GridLaunch> (*launch)(const Gemm& gemm, EncodeTiled encode_tiled);
};

// With our store collective: any activation, biases, row scales; D fp16, bf16 or FP32.
const Instance& instance_1sm();
const Instance& instance_2sm();
// With CUTLASS's visitor tree multiplies(SiLU(alpha_gate*acc0), alpha_up*acc1): D fp16, no bias, no
// row scales.
const Instance& visitor_1sm();

// All of them, or none in a build without CUTLASS.
std::span<const Instance* const> instances();

}  // namespace dualgemm::cuda::gated
