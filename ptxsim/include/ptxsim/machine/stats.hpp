// Counters of one run.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxsim {

struct Stats {
  uint64_t clusters_left_out = 0;  // Options::sample
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  std::vector<uint64_t>
      by_warp;  // by index of the warp in its CTA, summed over CTAs: what each role executed
  uint64_t mma_instructions = 0;
  uint64_t mma_multiply_adds = 0;
  uint64_t tma_load_bytes = 0;  // written to shared memory, each multicast destination counted
  uint64_t tma_store_bytes = 0;
  uint64_t l2_read_bytes =
      0;  // read from global memory by TMA and bulk copies (a multicast counts once) and ld
  uint64_t l2_write_bytes = 0;
  uint64_t barrier_waits = 0;          // mbarrier waits that were satisfied
  uint64_t barrier_waits_blocked = 0;  // of them, those that had to wait
  uint64_t async_operations = 0;
  std::vector<uint64_t> by_statement;  // how often each was executed (blocked tries not counted)
};

}  // namespace ptxsim
