// NVIDIA B200. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kB200{
    .name = "b200",
    .compute_capability = 100,
    .sms = {148, Kind::kMeasured, "CUDA device properties"},
    .l2_bytes = {132'120'576, Kind::kDataSheet, "data sheet"},
    .memory_bytes = {192e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {1600, Kind::kFitted,
                      "eight published times, ptxsim/docs/clock.md; 1965 is the highest, 1500 to "
                      "1650 in loaded GEMMs of public traces"},
    .sheet_bytes_per_us = {8e6, Kind::kDataSheet, "NVIDIA DGX B200 data sheet"},
    .hbm_bytes_per_us = {6.0e6, Kind::kMeasured,
                         "SemiAnalysisAI/microbench-blackwell tma2d (7.1e6 to 7.3e6) and "
                         "tile-ai/TileSight (6.95e6); 5.9e6 is reported of the contest's machines"},
    .l2_bytes_per_us = {20.2e6, Kind::kMeasured,
                        "tile-ai/TileSight, architecture description of B200"},
    .ingest_bytes_per_us = {0.18e6, Kind::kFitted,
                            "eight published times, ptxsim/docs/clock.md; a lower bound of 0.158e6 "
                            "is measured (SemiAnalysisAI/microbench-blackwell)"},
    .shared_bytes_per_clock = {128, Kind::kMeasured,
                               "SemiAnalysisAI/microbench-blackwell and tile-ai/TileSight, "
                               "architecture description of B200"},
    .half_macs_per_us = {860e6, Kind::kAssumed,
                         "1.72 PFLOP/s of dense bf16, about what GEMMs of libraries are reported "
                         "to reach at 1000 W; not measured here"},
};

}  // namespace dualgemm::cuda::machine
