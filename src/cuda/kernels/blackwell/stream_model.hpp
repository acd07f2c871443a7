// How long a Blackwell kernel whose CTAs stream their operands through a ring of stages should
// take, from bytes and what carries them. A means to rank tiles, not a promise: nothing here was
// measured on a GPU by this project.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/rates.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda::blackwell {

// What of a machine counts for such a kernel.
struct StreamRates {
  double hbm_bytes_per_us = machine::kB200.hbm_bytes_per_us.value;        // cold
  double l2_bytes_per_us = machine::kB200.l2_bytes_per_us.value;          // delivered to all SMs
  double ingest_bytes_per_us = machine::kB200.ingest_bytes_per_us.value;  // delivered to one SM
  double turn_us = kTurnUs;
  double clocks_per_us = machine::kB200.clocks_per_us.value;
  // A CTA's own, assumed: 0.75 before its first load, 1.3 until its first byte, 0.15 at its end.
  // More of what ptxsim's clock has there comes with the launch, whatever its tiles are.
  double fixed_us = 0.75 + (1.3 + 0.15);
};

// One launch.
struct StreamedWork {
  int64_t ctas;
  int64_t stages_per_cta;  // steps along K = 256
  int64_t stage_bytes;     // delivered to the SM
  int64_t weight_bytes;    // of a stage: from HBM, where no other CTA reads them
  int64_t ring_stages;
  double mma_clocks;       // of a stage
  double epilogue_us = 0;  // of a CTA, behind fixed_us
};

// A stage on one SM: no faster than it can be taken in, than the ring turns, than the tensor core
// multiplies.
constexpr double stage_us(const StreamedWork& work, const StreamRates& rates = {}) {
  return std::max({static_cast<double>(work.stage_bytes) / rates.ingest_bytes_per_us,
                   rates.turn_us / static_cast<double>(work.ring_stages),
                   work.mma_clocks / rates.clocks_per_us});
}

// HBM and L2 serve all CTAs together.
constexpr double shared_us(const StreamedWork& work, const StreamRates& rates = {}) {
  const auto stages = static_cast<double>(work.ctas * work.stages_per_cta);
  return std::max(stages * static_cast<double>(work.weight_bytes) / rates.hbm_bytes_per_us,
                  stages * static_cast<double>(work.stage_bytes) / rates.l2_bytes_per_us);
}

// An SM does its CTAs one after another; while it begins or ends
// one nothing is loaded for it, nor for the others, which do so at the same time.
constexpr double modelled_us(const StreamedWork& work, int num_sms, const StreamRates& rates = {}) {
  const auto waves = static_cast<double>(core::ceil_div(work.ctas, std::max(num_sms, 1)));
  const double sm = waves * static_cast<double>(work.stages_per_cta) * stage_us(work, rates);
  return waves * (rates.fixed_us + work.epilogue_us) + std::max(sm, shared_us(work, rates));
}

// The same by persistent CTAs, one for each SM, to which `ctas` are tiles: loads go on from tile to
// tile, and an epilogue runs beside the next tile's.
constexpr double modelled_persistent_us(const StreamedWork& work, int num_sms,
                                        const StreamRates& rates = {}) {
  const auto turns = static_cast<double>(core::ceil_div(work.ctas, std::max(num_sms, 1)));
  const double sm =
      turns *
      std::max(static_cast<double>(work.stages_per_cta) * stage_us(work, rates), work.epilogue_us);
  return rates.fixed_us + work.epilogue_us + std::max(sm, shared_us(work, rates));
}

// What a launch in front costs that copies scales, or rows, of all operands: what is left of the
// gap when it overlaps, set-up, a load and a store; and the rate at which it copies. By ptxsim's
// clock, which has 2.6 us for the scales of (256, 4096, 7168), 9.3 for its rows, 29 MB.
inline constexpr double kCopyUs = 2.6, kCopyBytesPerUs = 4.5e6;

// Tiles of an expert that has rows. For contiguous experts only the mean is known: numbers are
// taken to fall off geometrically, since routers make them unequal. Masked ones may all be full.
inline double usual_group_tiles(const Problem& problem, int tile_m) {
  if (problem.grouping == Grouping::kMasked)
    return static_cast<double>(core::ceil_div(problem.m, tile_m));
  const double mean = static_cast<double>(problem.m) / static_cast<double>(problem.l);
  return 1 / (1 - std::exp(-tile_m / mean));
}

// Clocks of an MMA with M = 128 and K = 64 whose A is used for `uses` MMAs of N columns: the tensor
// core multiplies 2 columns a clock, and reads operands from shared memory at 128 bytes a clock
// (measured: 48 for N = 64, 64 for 128).
constexpr double mma_clocks(int n, int uses) {
  constexpr double kReadA = kMmaReadBytes / kSharedBytesPerClock;
  return std::max(0.5 * n * uses, kReadA + 0.25 * n * uses);
}

}  // namespace dualgemm::cuda::blackwell
