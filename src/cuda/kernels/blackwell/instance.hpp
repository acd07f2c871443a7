// A compiled kernel of this architecture, as its choice, its launch and its tests know it.
#pragma once

#include <cstdint>

namespace dualgemm::cuda::blackwell {

template <class Config>
struct InstanceOf {
  Config config;
  int stages;
  int stage_bytes;
  uint32_t threads;             // of a CTA
  uint32_t dynamic_smem_bytes;  // of a CTA
  const char* entry;            // name of the kernel's entry point
  const void* kernel;           // its host handle
};

}  // namespace dualgemm::cuda::blackwell
