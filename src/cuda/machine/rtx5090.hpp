// NVIDIA GeForce RTX 5090. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kRtx5090{
    .name = "rtx5090",
    .compute_capability = 120,
    .sms = {170, Kind::kPublished, "NVIDIA RTX Blackwell GPU Architecture (white paper)"},
    .l2_bytes = {100'663'296, Kind::kDataSheet, "white paper: 96 MiB"},
    .memory_bytes = {32e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {2870, Kind::kPublished,
                      "Neroued/ninfer, issue 160: 2870 to 2880 inside a kernel of these "
                      "multiplications; boost clock 2410"},
    .sheet_bytes_per_us = {1.792e6, Kind::kPublished,
                           "NVIDIA RTX Blackwell GPU Architecture (white paper)"},
    .hbm_bytes_per_us = {1.56e6, Kind::kFitted,
                         "Neroued/ninfer, issue 264, 8 rows (ptxsim/docs/clock.md); a "
                         "sustained read reaches 1.6745e6"},
    .l2_bytes_per_us = {6.6e6, Kind::kDerived,
                        "Neroued/ninfer, issue 160: TMA alone fills stages at 6.977e6, on a card "
                        "with 2117 instead of 2010 TFLOP/s"},
    .ingest_bytes_per_us = {184e3, Kind::kAssumed, "64 B a clock"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "32 banks of 4 bytes"},
    .half_macs_per_us =
        {100e6, Kind::kDerived,
         "NVIDIA RTX Blackwell GPU Architecture (white paper): 209.5 TFLOP/s with sums in FP32"},
};

}  // namespace dualgemm::cuda::machine
