// What can be chosen about groups of experts on pairs of CTAs: the type of D. The rest is that of
// persistent pairs, sm100a_pair/config.hpp.
#pragma once

#include "cuda/kernels/sm100a_pair/config.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

using blackwell::kCtaRows;
using blackwell::kPairCtas;
using sm100a_pair::Budget;
using sm100a_pair::Config;
using sm100a_pair::kMmaSteps;
using sm100a_pair::kRowBytes;
using sm100a_pair::kRowScaleBytes;
using sm100a_pair::kScaleTileCols;
using sm100a_pair::kScaleTileRows;
using sm100a_pair::kTileK;
using sm100a_pair::kTileM;

inline constexpr int kTileN = 128;                   // columns of D
inline constexpr int kBoxCols = kTileN / kPairCtas;  // a CTA's rows of Gate and of Up in a stage

// Prepared weights lie in a stage as unpacked ones do.
DUALGEMM_HOST_DEVICE constexpr Config config_of(OutputType output) {
  return {.tile_n = kTileN, .output = output, .persistent = true, .grouped = true};
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
