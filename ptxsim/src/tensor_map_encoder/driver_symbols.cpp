// The driver's own symbols, for host code that calls them directly (CUTLASS with
// CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL). A library of its own, ptxsim_driver: nothing that may
// also meet the real libcuda links it. Types are those of the calling convention, since ptxsim
// needs no CUDA headers to build.
#include <cstdint>

#include "ptxsim/tensor_map.hpp"

extern "C" int cuTensorMapEncodeTiled(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                                      const uint64_t* extents, const uint64_t* stride_bytes,
                                      const uint32_t* box, const uint32_t* element_strides,
                                      uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion,
                                      uint32_t fill) {
  return ptxsim::encode_tiled_abi(tensor_map, type, rank, address, extents, stride_bytes, box,
                                  element_strides, interleave, swizzle, l2_promotion, fill);
}

extern "C" int cuTensorMapEncodeIm2col(void* tensor_map, uint32_t type, uint32_t rank,
                                       void* address, const uint64_t* extents,
                                       const uint64_t* stride_bytes, const int* lower_corner,
                                       const int* upper_corner, uint32_t channels, uint32_t pixels,
                                       const uint32_t* element_strides, uint32_t interleave,
                                       uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
  return ptxsim::encode_im2col_abi(tensor_map, type, rank, address, extents, stride_bytes,
                                   lower_corner, upper_corner, channels, pixels, element_strides,
                                   interleave, swizzle, l2_promotion, fill);
}

extern "C" int cuTensorMapEncodeIm2colWide(void* tensor_map, uint32_t type, uint32_t rank,
                                           void* address, const uint64_t* extents,
                                           const uint64_t* stride_bytes, int lower_corner,
                                           int upper_corner, uint32_t channels, uint32_t pixels,
                                           const uint32_t* element_strides, uint32_t interleave,
                                           uint32_t mode, uint32_t swizzle, uint32_t l2_promotion,
                                           uint32_t fill) {
  return ptxsim::encode_im2col_wide_abi(
      tensor_map, type, rank, address, extents, stride_bytes, lower_corner, upper_corner, channels,
      pixels, element_strides, interleave, mode, swizzle, l2_promotion, fill);
}
