// The dual GEMM for any GPU of compute capability 8.0 or later: mma.sync on operands that are
// decoded in registers. Simple where the kernels for one architecture are fast: no shared memory
// for operands, no asynchronous copies.
//
// kWarpsK warps divide the k of a tile (multiply.cuh); their sums are added in the order
// of k through shared memory. All of this is the same for every M and every Pass: the bits of a row
// of D depend neither on the other rows, nor on the tile, nor on the pass.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/epilogue.cuh"
#include "cuda/kernels/sm80/multiply.cuh"

namespace dualgemm::cuda::sm80 {

// The sums of one tile: [warp along n][group of rows][register][lane].
template <Config kCfg>
using TileSums = float[kCfg.warps_n][row_groups_of(kCfg)][4][32];

// This warp's part of a product to shared memory, where all parts are when it returns.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_to(const Params& params, const Place& place, const WeightRows& rows,
                                 TileSums<kCfg> (&parts)[kWarpsK]) {
  Accumulators<kCfg> sums{};
  multiply<kCfg>(params, place, rows, sums);
#pragma unroll
  for (int t = 0; t < row_groups_of(kCfg); ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      parts[place.warp_k][place.warp_n][t][i][threadIdx.x % 32] = sums[t][i];
  }
  __syncthreads();
}

// The parts of this thread's sums in group t, added in the order of k.
template <Config kCfg>
DUALGEMM_DEVICE void add_parts(const Place& place, const TileSums<kCfg> (&parts)[kWarpsK],
                               uint32_t t, float (&total)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) total[i] = 0.0f;
#pragma unroll
  for (int part = 0; part < kWarpsK; ++part) {
#pragma unroll
    for (int i = 0; i < 4; ++i) total[i] += parts[part][place.warp_n][t][i][threadIdx.x % 32];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) total[i] *= kSumUnit<kCfg>;
}

// Row group t of a product of one operand, complete: into R1 or D. gate: the other product's sums
// of the tile (kSequential).
template <Config kCfg>
DUALGEMM_DEVICE void finish_one(const Params& params, const Place& place, uint32_t t,
                                const float (&total)[4],
                                [[maybe_unused]] const TileSums<kCfg>* gate) {
  float outputs[2][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    __syncwarp();  // one half after the other: both at once take 30 registers more
    const uint32_t col = place.col + half * kHalfCols;
    float sums[2] = {total[2 * half], total[2 * half + 1]};
    if constexpr (kCfg.pass == Pass::kGate) {
      store_r1(params, place, t, col, sums);
    } else {
      float(&g)[2] = outputs[half];
      if constexpr (kCfg.pass == Pass::kUp) {
        load_r1(params, place, t, col, g);
      } else {
#pragma unroll
        for (int i = 0; i < 2; ++i) g[i] = (*gate)[place.warp_n][t][2 * half + i][threadIdx.x % 32];
      }
      apply_factors(params, place, t, col, g, sums);
      activate_all(params.act, g, sums);
      if (params.output != OutputType::kE2M1) store_column(params, place, t, 0, col, g);
    }
  }
  if constexpr (kCfg.pass != Pass::kGate) {
    if (params.output == OutputType::kE2M1)
      store_block<kCfg>(params, place, t, 0, place.col, outputs[0], outputs[1]);
  }
}

// Row group t of the columns of warp `place.warp_n`, in whichever warp calls it: as apply_factors()
// leaves them.
template <Config kCfg>
DUALGEMM_DEVICE void products_of_both(const Params& params, const Place& place,
                                      const TileSums<kCfg> (&parts)[kWarpsK], uint32_t t,
                                      float (&g)[2], float (&u)[2]) {
  float total[4];
  add_parts<kCfg>(place, parts, t, total);
  g[0] = total[0], g[1] = total[1];
  u[0] = total[2], u[1] = total[3];
  apply_factors(params, place, t, place.col, g, u);
}

// g becomes an output: of both products, or where they stand side by side of one, whose factor is
// act(g) * 1. One copy of the instructions for both cases, or the tiles of 64 rows spill.
DUALGEMM_DEVICE void activate_product(const Params& params, float (&g)[2], const float (&u)[2]) {
  const bool two = params.combine.side_by_side;
  if (two && !params.combine.activates_each) return;
  const float others[2] = {two ? 1.0f : u[0], two ? 1.0f : u[1]};
  activate_all(params.act, g, others);
}

// Both products. A block of 16 columns is two warps': one of them takes the outputs of both.
template <Config kCfg>
DUALGEMM_DEVICE void finish_both(const Params& params, const Place& place,
                                 const TileSums<kCfg> (&parts)[kWarpsK]) {
  const int products = params.combine.side_by_side ? 2 : 1;
  if (params.output != OutputType::kE2M1) {
#pragma unroll 1
    for (uint32_t t = place.warp_k; t < row_groups_of(kCfg); t += kWarpsK) {
      float g[2], u[2];
      products_of_both<kCfg>(params, place, parts, t, g, u);
#pragma unroll 1
      for (int product = 0; product < products; ++product) {
        activate_product(params, g, u);
        store_column(params, place, t, product, place.col, g);
        g[0] = u[0], g[1] = u[1];
      }
    }
    return;
  }
  if constexpr (writes_nvfp4(kCfg)) {
    static_assert(kCfg.warps_n == 2);
    Place low = place, high = place;
    low.col -= place.warp_n * kHalfCols, low.warp_n = 0;
    high.col = low.col + kHalfCols, high.warp_n = 1;
#pragma unroll 1
    for (uint32_t t = place.warp_k * kCfg.warps_n + place.warp_n; t < row_groups_of(kCfg);
         t += kWarpsK * kCfg.warps_n) {
#pragma unroll 1
      for (int product = 0; product < products; ++product) {
        float outputs[2][2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          __syncwarp();  // one half after the other: both at once take more registers
          float u[2];
          products_of_both<kCfg>(params, half == 0 ? low : high, parts, t, outputs[half], u);
          if (product == 1) outputs[half][0] = u[0], outputs[half][1] = u[1];
          activate_product(params, outputs[half], u);
        }
        store_block<kCfg>(params, low, t, product, low.col, outputs[0], outputs[1]);
      }
    }
  }
}

// Pass::kSequential. One copy of the loop over k for both products: with two the kernel for e2m1
// and 64 rows took 154 registers, and an SM held one CTA instead of two.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_in_turn(const Params& params, const Place& place,
                                      TileSums<kCfg> (&parts)[kWarpsK]) {
  __shared__ TileSums<kCfg> gate;  // an element is written and read by one thread
#pragma unroll 1
  for (int product = 0; product < 2; ++product) {
    if (product == 1) __syncthreads();  // the parts have been read
    multiply_to<kCfg>(params, place,
                      rows_of_one(params, place, product == 0 ? params.gate : params.up), parts);
    if (product == 1) break;
#pragma unroll 1
    for (uint32_t t = place.warp_k; t < row_groups_of(kCfg); t += kWarpsK) {
      float total[4];
      add_parts<kCfg>(place, parts, t, total);
#pragma unroll
      for (int i = 0; i < 4; ++i) gate[place.warp_n][t][i][threadIdx.x % 32] = total[i];
    }
  }
#pragma unroll 1
  for (uint32_t t = place.warp_k; t < row_groups_of(kCfg); t += kWarpsK) {
    float total[4];
    add_parts<kCfg>(place, parts, t, total);
    finish_one<kCfg>(params, place, t, total, &gate);
  }
}

// Each of the warps that shared k finishes its share of the row groups. tile: of CTAs'.
template <Config kCfg>
DUALGEMM_DEVICE void compute_tile(const Params& params, uint32_t tile,
                                  TileSums<kCfg> (&parts)[kWarpsK]) {
  const Place place = place_of_thread<kCfg>(params, tile);
  if constexpr (kCfg.pass == Pass::kGroups) find_rows<kCfg>(params, place);
  if constexpr (kCfg.pass == Pass::kSequential) {
    multiply_in_turn<kCfg>(params, place, parts);
  } else {
    const WeightRows rows =
        is_fused(kCfg.pass)
            ? rows_of_both(params, place)
            : rows_of_one(params, place, kCfg.pass == Pass::kGate ? params.gate : params.up);
    multiply_to<kCfg>(params, place, rows, parts);
    if constexpr (is_fused(kCfg.pass)) {
      finish_both<kCfg>(params, place, parts);
    } else {
#pragma unroll 1
      for (uint32_t t = place.warp_k; t < row_groups_of(kCfg); t += kWarpsK) {
        float total[4];
        add_parts<kCfg>(place, parts, t, total);
        finish_one<kCfg>(params, place, t, total, nullptr);
      }
    }
  }
}

// A CTA has one tile; with groups there may be fewer tiles than CTAs, or, where rows name their
// experts, more.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  __shared__ TileSums<kCfg> parts[kWarpsK];
  if constexpr (kCfg.pass == Pass::kGroups) {
#pragma unroll 1
    for (uint32_t tile = blockIdx.x; tile / params.tiles_n < number_of_tiles(params.groups);
         tile += gridDim.x) {
      compute_tile<kCfg>(params, tile, parts);
      __syncwarp();
      __syncthreads();  // the parts have been read
    }
  } else {
    compute_tile<kCfg>(params, blockIdx.x, parts);
  }
}

}  // namespace dualgemm::cuda::sm80
