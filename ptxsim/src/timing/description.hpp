// A launch described by its structure instead of by a kernel: a pipeline of stages that TMA fills
// and tensor cores read, an epilogue, tiles one after the other. For kernels whose code is not at
// hand; docs/clock.md has the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/error.hpp"
#include "timing/estimate.hpp"

namespace ptxsim::timing {

struct Description {
  std::string name;
  uint32_t clusters = 1, ctas_per_cluster = 1, ctas_per_sm = 1;
  uint32_t tiles = 1;  // that a cluster does, one after the other
  bool dependent_launch = false;
  double other_us = 0;        // of the operation besides: kernels in front, exchanges behind
  double setup_extra_us = 0;  // before the first load, besides Parameter::kSetup
  // The pipeline.
  uint32_t stages = 1;           // buffers
  uint32_t stages_per_tile = 1;  // times that one is filled
  uint32_t loads_per_stage = 1;  // TMA instructions of a CTA
  double stage_bytes = 0;        // that a CTA takes in
  double l2_bytes = 0;           // of them, delivered by L2: multicast counts once
  double unique_bytes = 0;       // of the whole launch, from memory
  // Tensor cores.
  uint32_t mmas_per_stage = 1;
  double mma_m = 128, mma_n = 128, mma_k = 64, bits = 4;
  bool shares_a = false;          // every second MMA finds A in the collector
  uint32_t copies_per_stage = 0;  // tcgen05.cp of 512 bytes
  // Who issues the MMAs, 0: a warp of its own. Warpgroups (wgmma) that decode operands, too, and
  // take turns with the stages; or warps (mma.sync) that have a part of every stage and of the
  // epilogue. A stage takes `consumer_slots` instructions of every scheduler, and of mma.sync
  // `fragment_bytes` that the warps read from shared memory.
  uint32_t consumers = 0;
  bool mma_sync = false;
  double consumer_slots = 0, fragment_bytes = 0;
  // The epilogue, of each CTA.
  uint32_t epilogue_warps = 4;
  uint32_t epilogue_steps = 8;  // pieces that a warp divides its part into
  double elements = 0;          // of D
  uint32_t accumulators = 1;    // columns of tensor memory for each of D
  double mufu_per_element = 0, slots_per_element = 0;
  double epilogue_scale = 1;  // times Parameter::kEpilogueFactor
};

// One launch, {"launches": [...]} or a list of them.
Result<std::vector<Description>> parse_descriptions(std::string_view json, const std::string& file);

LaunchWork work_of(const Description& description);

}  // namespace ptxsim::timing
