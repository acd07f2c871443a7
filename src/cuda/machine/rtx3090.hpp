// NVIDIA GeForce RTX 3090. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kRtx3090{
    .name = "rtx3090",
    .compute_capability = 86,
    .sms = {82, Kind::kPublished, "NVIDIA Ampere GA102 GPU Architecture (white paper)"},
    .l2_bytes = {6291456, Kind::kDataSheet, "data sheet"},
    .memory_bytes = {24e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {1695, Kind::kPublished,
                      "NVIDIA Ampere GA102 GPU Architecture (white paper): boost clock"},
    .sheet_bytes_per_us = {0.936e6, Kind::kPublished,
                           "NVIDIA Ampere GA102 GPU Architecture (white paper)"},
    .hbm_bytes_per_us = {0.86e6, Kind::kDerived,
                         "NVIDIA Ampere GA102 GPU Architecture (white paper): 936 GB/s, of which "
                         "about 0.92 is reached"},
    .l2_bytes_per_us = {2e6, Kind::kAssumed, "not published"},
    .ingest_bytes_per_us = {108e3, Kind::kAssumed, "64 B a clk"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "CUDA programming guide, 32 banks of 4 bytes"},
    .half_macs_per_us =
        {34.5e6, Kind::kDerived,
         "NVIDIA Ampere GA102 GPU Architecture (white paper): 71 TFLOP/s with sums in FP32"},
};

}  // namespace dualgemm::cuda::machine
