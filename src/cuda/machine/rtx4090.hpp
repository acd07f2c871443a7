// NVIDIA GeForce RTX 4090. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kRtx4090{
    .name = "rtx4090",
    .compute_capability = 89,
    .sms = {128, Kind::kPublished, "NVIDIA Ada GPU Architecture (white paper)"},
    .l2_bytes = {75497472, Kind::kDataSheet, "data sheet"},
    .memory_bytes = {24e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {2520, Kind::kPublished,
                      "NVIDIA Ada GPU Architecture (white paper): boost clock"},
    .sheet_bytes_per_us = {1.008e6, Kind::kPublished, "NVIDIA Ada GPU Architecture (white paper)"},
    .hbm_bytes_per_us =
        {0.92e6, Kind::kDerived,
         "NVIDIA Ada GPU Architecture (white paper): 1008 GB/s, of which about 0.92 is reached"},
    .l2_bytes_per_us = {4e6, Kind::kAssumed, "not published"},
    .ingest_bytes_per_us = {161e3, Kind::kAssumed, "64 B a clk"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "CUDA programming guide, 32 banks of 4 bytes"},
    .half_macs_per_us =
        {80e6, Kind::kDerived,
         "NVIDIA Ada GPU Architecture (white paper): 165 TFLOP/s with sums in FP32"},
};

}  // namespace dualgemm::cuda::machine
