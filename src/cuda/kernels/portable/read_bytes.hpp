// Reads memory and does next to nothing with it: what reading costs at least.
#pragma once

#include <cstdint>

#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::cuda {

struct ReadBytesParams {
  const uint8_t* data;  // aligned to 16 bytes
  int64_t bytes;        // a multiple of 16
  uint32_t* sum;        // one word, added to: so that no read can be left out
};

KernelLaunch read_bytes_launch(const ReadBytesParams& params, int num_sms);

}  // namespace dualgemm::cuda
