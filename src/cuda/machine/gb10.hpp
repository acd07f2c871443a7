// NVIDIA GB10, of DGX Spark. Nothing here was measured by this project.
#pragma once

#include "cuda/machine/gpu.hpp"

namespace dualgemm::cuda::machine {

inline constexpr Gpu kGb10{
    .name = "dgx_spark",
    .compute_capability = 121,
    .sms = {48, Kind::kPublished, "NVIDIA RTX Blackwell GPU Architecture (white paper)"},
    .l2_bytes = {25'165'824, Kind::kDataSheet, "white paper: 24 MiB"},
    .memory_bytes = {128e9, Kind::kDataSheet, "data sheet"},
    .clocks_per_us = {2420, Kind::kPublished, "white paper: boost clock"},
    .sheet_bytes_per_us = {0.273e6, Kind::kDataSheet, "NVIDIA DGX Spark data sheet"},
    .hbm_bytes_per_us = {0.232e6, Kind::kPublished,
                         "antirez/ds4, issue 773: 0.231e6 to 0.234e6 at most"},
    .l2_bytes_per_us = {1.7e6, Kind::kAssumed, "not published"},
    .ingest_bytes_per_us = {155e3, Kind::kAssumed, "64 B a clock"},
    .shared_bytes_per_clock = {128, Kind::kAssumed, "32 banks of 4 bytes"},
    .half_macs_per_us = {28e6, Kind::kAssumed, "a half of its 4-bit rate's quarter"},
};

}  // namespace dualgemm::cuda::machine
