// The driver's own symbols, for host code that calls them directly (CUTLASS with
// CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL). A library of its own, ptxsim_driver: nothing that may
// also meet the real libcuda links it. Types are those of the calling convention, since ptxsim
// needs no CUDA headers to build.
#include <cstdint>

#include "ptxsim/driver/tensor_map.hpp"

extern "C" int cuTensorMapEncodeTiled(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                                      const uint64_t* extents, const uint64_t* stride_bytes,
                                      const uint32_t* box, const uint32_t* element_strides,
                                      uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion,
                                      uint32_t fill) {
  return ptxsim::encode_tiled_abi(tensor_map, type, rank, address, extents, stride_bytes, box,
                                  element_strides, interleave, swizzle, l2_promotion, fill);
}

// Im2col maps are not modelled; host code that only names the symbol still links.
extern "C" int cuTensorMapEncodeIm2col(void*, uint32_t, uint32_t, void*, const uint64_t*,
                                       const uint64_t*, const int*, const int*, uint32_t, uint32_t,
                                       const uint32_t*, uint32_t, uint32_t, uint32_t, uint32_t) {
  constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
  return kNotSupported;
}
