// NVIDIA A100. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kA100{
    .name = "a100",
    .compute_capability = 80,
    .sms = {108, Kind::kPublished, "NVIDIA A100 Tensor Core GPU Architecture (white paper)"},
    .l2_bytes = {41943040, Kind::kDataSheet, "data sheet"},
    .memory_bytes = {80e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {1410, Kind::kPublished,
                      "NVIDIA A100 Tensor Core GPU Architecture (white paper): boost clock"},
    .sheet_bytes_per_us = {2.039e6, Kind::kDataSheet, "NVIDIA A100 80GB SXM data sheet"},
    .hbm_bytes_per_us = {1.75e6, Kind::kDerived,
                         "NVIDIA A100 Tensor Core GPU Architecture (white paper): 2.039 TB/s, of "
                         "which copies reach about 0.86"},
    .l2_bytes_per_us = {4.5e6, Kind::kDerived,
                        "NVIDIA A100 Tensor Core GPU Architecture (white paper): 5120 B a clk, of "
                        "which about 0.65 is reached"},
    .ingest_bytes_per_us = {90e3, Kind::kDerived, "64 B a clk"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "CUDA programming guide, 32 banks of 4 bytes"},
    .half_macs_per_us = {135e6, Kind::kDerived,
                         "NVIDIA A100 Tensor Core GPU Architecture (white paper): 312 TFLOP/s, of "
                         "which GEMMs reach about 270"},
};

}  // namespace dualgemm::cuda::machine
