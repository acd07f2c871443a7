// Reads memory and does next to nothing with it: what reading costs at least.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

struct ReadBytesParams {
  const uint8_t* data;  // aligned to 16 bytes
  int64_t bytes;        // a multiple of 16
  // One word, written by a thread whose words add up to one number of 2^32: so that no read can be
  // left out. Atomic sums of all warps, to one address, would come one after the other at the end.
  uint32_t* sum;
};

// Any shape reads all bytes; which is the fastest depends on their number.
struct ReadShape {
  int threads = 512;    // of a CTA: at most max_read_threads(loads)
  int loads = 8;        // of 16 bytes in a round of a thread's loop: one of read_loads()
  int ctas_per_sm = 4;  // of the grid; they need not all be resident at a time
};

std::span<const int> read_loads();
int max_read_threads(int loads);

// A shape that is not compiled gives the nearest thing: 8 loads, as many threads as there may be.
KernelLaunch read_bytes_launch(const ReadBytesParams& params, int num_sms,
                               const ReadShape& shape = {});

}  // namespace dualgemm::cuda
