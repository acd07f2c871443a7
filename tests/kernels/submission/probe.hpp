// What a test asks a submission's CUDA text. It sees KernelLaunch before: in the text, or in
// cuda/runtime/launch_value.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualgemm::test {

struct ProbeCall {
  int64_t m, n, k, l;
  const uint8_t *a, *gate, *up, *a_scales, *gate_scales, *up_scales;
  uint8_t* d;
  uint8_t* workspace;
  int num_sms;
  void* encode_tiled;
};

struct ProbeAnswer {
  const char* error = nullptr;
  int64_t workspace_bytes = 0;
  size_t count = 0;
  cuda::KernelLaunch launches[2];
};

using Probe = void (*)(const ProbeCall&, ProbeAnswer&);

}  // namespace dualgemm::test
