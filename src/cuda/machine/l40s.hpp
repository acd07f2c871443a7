// NVIDIA L40S. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kL40s{
    .name = "l40s",
    .compute_capability = 89,
    .sms = {142, Kind::kPublished, "NVIDIA Ada GPU Architecture (white paper)"},
    .l2_bytes = {100663296, Kind::kDataSheet, "data sheet"},
    .memory_bytes = {48e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {2520, Kind::kPublished,
                      "NVIDIA Ada GPU Architecture (white paper): boost clock"},
    .sheet_bytes_per_us = {0.864e6, Kind::kDataSheet, "NVIDIA L40S data sheet"},
    .hbm_bytes_per_us = {0.76e6, Kind::kDerived,
                         "NVIDIA L40S data sheet: 864 GB/s, of which about 0.88 is reached"},
    .l2_bytes_per_us = {4e6, Kind::kAssumed, "not published"},
    .ingest_bytes_per_us = {161e3, Kind::kAssumed, "64 B a clk"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "CUDA programming guide, 32 banks of 4 bytes"},
    .half_macs_per_us = {150e6, Kind::kDerived, "NVIDIA L40S data sheet: 362 TFLOP/s; 350 W"},
};

}  // namespace dualgemm::cuda::machine
