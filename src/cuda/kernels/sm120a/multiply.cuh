// The loop over k: sums of a warp's two units of weights with its groups of rows of A.
//
// Every product of an MMA is one of four exact sums of 16 products times both scales; steps of 64
// along k follow each other in ascending order in every tile, whatever its size, which rows it has
// and how weights lie: a row of D has the same bits in all of them.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/copy_stage.cuh"
#include "cuda/ptx/ldmatrix.cuh"
#include "cuda/ptx/mma_nvf4.cuh"

namespace dualgemm::cuda::sm120a {

// A warp's sums: [unit][group of 8 rows of A][mma's d].
template <Config kCfg>
using Sums = float[kWarpUnits][kCfg.groups][4];

// Two words of scales of a row, for both steps of a stage.
DUALGEMM_DEVICE uint2 load_scales(uint32_t row) {
  return *reinterpret_cast<const uint2*>(__cvta_shared_to_generic(row));
}

// Where a lane reads in a stage, from its beginning on. A step further is another piece of the same
// rows: its place differs in one bit.
template <Config kCfg>
struct Reads {
  uint32_t weights, a;  // of ldmatrix
  uint32_t weight_scales, a_scales;

  DUALGEMM_DEVICE explicit Reads(const Place& place) {
    const uint32_t lane = threadIdx.x % 32, scales = rows_of(kCfg) * kRowBytes;
    const uint32_t weight_row = place.warp_n * kWarpUnits * kMmaRows;
    const uint32_t a_row = kWeightRows + place.warp_m * kCfg.groups * kGroupRows;
    // mma's a: matrix 0 is Gate's first half of k, 1 Up's, 2 and 3 their second halves.
    weights = piece_place(weight_row + lane % 16, lane / 16);
    // mma's b of two groups: 0 and 1 are the halves of k of the first one.
    const uint32_t group = kCfg.groups == 1 ? 0 : lane / 16;
    a = piece_place(a_row + group * kGroupRows + lane % 8, lane / 8 % 2);
    // Lane 4g + t: row g + 8 (t % 2) of unit t / 2; of A row g of group t of four.
    weight_scales = scales + (weight_row + place.quarter * 8 + place.row) * kScaleBytes;
    const uint32_t scale_group = place.quarter % min(kCfg.groups, 4);
    a_scales = scales + (a_row + scale_group * kGroupRows + place.row) * kScaleBytes;
  }
};
inline constexpr uint32_t kStepPlace = 2 * kPieceBytes;  // to be XORed for the second step

// mma's b of all groups of a step: columns are rows of A.
template <Config kCfg>
DUALGEMM_DEVICE void load_groups(uint32_t rows, uint32_t (&b)[kCfg.groups][2]) {
  if constexpr (kCfg.groups == 1) {
    ptx::ldmatrix(rows, b[0]);
  } else {
#pragma unroll
    for (int group = 0; group < kCfg.groups; group += 2) {
      uint32_t words[4];
      ptx::ldmatrix(rows + group * kGroupRows * kRowBytes, words);
      b[group][0] = words[0], b[group][1] = words[1];
      b[group + 1][0] = words[2], b[group + 1][1] = words[3];
    }
  }
}

template <int kUnit, int kGroup, Config kCfg>
DUALGEMM_DEVICE void multiply_groups(Sums<kCfg>& sums, const uint32_t (&a)[4],
                                     const uint32_t (&b)[kCfg.groups][2], uint32_t sfa,
                                     const uint32_t (&sfb)[(kCfg.groups + 3) / 4]) {
  ptx::mma_nvf4<kUnit, kGroup % 4>(sums[kUnit][kGroup], a, b[kGroup], sfa, sfb[kGroup / 4]);
  if constexpr (kGroup + 1 < kCfg.groups)
    multiply_groups<kUnit, kGroup + 1, kCfg>(sums, a, b, sfa, sfb);
}

// Scales of a stage, one word a step.
template <Config kCfg>
struct Scales {
  static constexpr int kWords = (kCfg.groups + 3) / 4;
  uint2 weights, a[kWords];

  DUALGEMM_DEVICE void load(const Reads<kCfg>& reads, uint32_t stage) {
    weights = load_scales(stage + reads.weight_scales);
#pragma unroll
    for (int word = 0; word < kWords; ++word)
      a[word] = load_scales(stage + reads.a_scales + word * 4 * kGroupRows * kScaleBytes);
  }
};

template <Config kCfg, int kStep>
DUALGEMM_DEVICE void multiply_step(const Reads<kCfg>& reads, uint32_t stage,
                                   const Scales<kCfg>& scales, Sums<kCfg>& sums) {
  constexpr uint32_t kPlace = kStep * kStepPlace;
  uint32_t b[kCfg.groups][2], a[kWarpUnits][4], sfb[Scales<kCfg>::kWords];
#pragma unroll
  for (int unit = 0; unit < kWarpUnits; ++unit)
    ptx::ldmatrix(((stage + reads.weights) ^ kPlace) + unit * kMmaRows * kRowBytes, a[unit]);
  load_groups<kCfg>((stage + reads.a) ^ kPlace, b);
  const uint32_t sfa = kStep == 0 ? scales.weights.x : scales.weights.y;
#pragma unroll
  for (int word = 0; word < Scales<kCfg>::kWords; ++word)
    sfb[word] = kStep == 0 ? scales.a[word].x : scales.a[word].y;
  multiply_groups<0, 0, kCfg>(sums, a[0], b, sfa, sfb);
  multiply_groups<1, 0, kCfg>(sums, a[1], b, sfa, sfb);
}

// `place_in_ring`: the next to be filled, after the tiles before.
template <Config kCfg>
DUALGEMM_DEVICE void multiply(const Params& params, const Place& place, const Ring<kCfg>& ring,
                              RingPlace& place_in_ring, Sums<kCfg>& sums) {
  const Copies<kCfg> copies(params, place);
  const Reads<kCfg> reads(place);
  const uint32_t count = (params.k16 + kStageK16 - 1) / kStageK16, ahead = params.stages - 1;
  const bool has_rows = place.m_begin < place.m_end;
  RingPlace filled = place_in_ring;  // behind the last stage of k: what would be
  // One copy of the instructions that fill a stage, for those in front of the loop too. Between the
  // two steps of what is multiplied they find the tensor cores at work.
#pragma unroll 1
  for (uint32_t next = 0; next < count + ahead; ++next) {
    const bool reads_one = next >= ahead;
    const RingPlace read = filled.behind(params.stages);
    const uint32_t stage = ring.stage(read.slot);
    Scales<kCfg> scales;
    if (reads_one) ptx::mbarrier_wait_parity(ring.full(read.slot), read.parity);
    __syncwarp();  // waiting has branches, mma needs the whole warp
    if (reads_one && has_rows) {
      scales.load(reads, stage);
      multiply_step<kCfg, 0>(reads, stage, scales, sums);
    }
    if (next < count) {
      // The first round of all finds every stage empty: a wait for the phase before the first one.
      ptx::mbarrier_wait_parity(ring.empty(filled.slot), filled.parity ^ 1);
      copies.start(params, next, ring.stage(filled.slot), ring.full(filled.slot));
    }
    filled.advance(params.stages);
    __syncwarp();
    if (!reads_one) continue;
    if (has_rows) multiply_step<kCfg, 1>(reads, stage, scales, sums);
    __syncwarp();  // all lanes have read
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ring.empty(read.slot));
  }
  place_in_ring = filled.behind(params.stages);
}

}  // namespace dualgemm::cuda::sm120a
