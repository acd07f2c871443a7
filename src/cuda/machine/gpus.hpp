// Every GPU that is described.
#pragma once

#include <array>

#include "cuda/machine/a100.hpp"
#include "cuda/machine/b200.hpp"
#include "cuda/machine/gb10.hpp"
#include "cuda/machine/l40s.hpp"
#include "cuda/machine/rtx3090.hpp"
#include "cuda/machine/rtx4090.hpp"
#include "cuda/machine/rtx5090.hpp"

namespace dualgemm::cuda::machine {

inline constexpr std::array kGpus{&kB200, &kA100, &kRtx3090, &kRtx4090, &kL40s, &kRtx5090, &kGb10};

// The one of this compute capability and so many SMs; null: it is not described.
inline const Gpu* find(int compute_capability, int sms) {
  for (const Gpu* const gpu : kGpus) {
    if (gpu->compute_capability == compute_capability && gpu->sms.value == sms) return gpu;
  }
  return nullptr;
}

}  // namespace dualgemm::cuda::machine
