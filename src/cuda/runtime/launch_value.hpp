// One kernel launch as a value: made without a GPU, run on one, or handed to an interpreter. Apart
// from kernel_launch.hpp, whose enqueue() a file made by scripts/make_submission may not spell.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dualgemm::cuda {

// A compiled kernel, under the names by which a device and an interpreter know it.
struct Kernel {
  const char* module;  // the .ptx file that holds it, without its ending
  const char* entry;
  const void* handle;  // what the CUDA runtime launches
};

// Every kernel of this library takes one struct by value and has a grid along x.
struct KernelLaunch {
  static constexpr size_t kMaxParamBytes = 1536;

  Kernel kernel;
  uint32_t ctas = 0;
  uint32_t threads = 0;
  uint32_t dynamic_smem_bytes = 0;
  uint32_t cluster_ctas = 1;  // of a cluster; divides ctas
  // The kernel waits for the one before it by itself (griddepcontrol.wait) and may begin earlier.
  bool overlaps_previous = false;
  uint32_t param_bytes = 0;
  alignas(128) std::array<uint8_t, kMaxParamBytes> params{};

  template <class Params>
  void set_params(const Params& value) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxParamBytes);
    param_bytes = sizeof(Params);
    std::memcpy(params.data(), &value, sizeof(Params));
  }
};

}  // namespace dualgemm::cuda
