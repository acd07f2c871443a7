// Tensor maps (ptxsim/tensor_map.hpp).
#include "tensor_map_encoder/bits.hpp"

#include <cstring>

#include "fake_cuda/driver/call.hpp"

namespace ptxsim::cuda::driver {
namespace {

Status report(Session& session, const char* function, int status) {
  if (status != kSuccess) session.recorder.refused(function, status, last_encode_error());
  return static_cast<Status>(status);
}

}  // namespace

PTXSIM_CUDA_API int cuTensorMapEncodeTiled(void* map, uint32_t type, uint32_t rank, void* address,
                                           const uint64_t* extents, const uint64_t* stride_bytes,
                                           const uint32_t* box, const uint32_t* element_strides,
                                           uint32_t interleave, uint32_t swizzle,
                                           uint32_t l2_promotion, uint32_t fill) {
  return call([&](Session& session) {
    return report(session, "cuTensorMapEncodeTiled",
                  encode_tiled_abi(map, type, rank, address, extents, stride_bytes, box,
                                   element_strides, interleave, swizzle, l2_promotion, fill));
  });
}

PTXSIM_CUDA_API int cuTensorMapReplaceAddress(void* map, void* address) {
  return call([&](Session&) {
    TensorMapRecord record;
    std::memcpy(&record, map, sizeof record);
    if (!decode_record(record).ok() || reinterpret_cast<uint64_t>(address) % 16 != 0)
      return kInvalidValue;
    set_address(record, reinterpret_cast<uint64_t>(address));
    std::memcpy(map, &record, sizeof record);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cuTensorMapEncodeIm2col(void* map, uint32_t type, uint32_t rank, void* address,
                                            const uint64_t* extents, const uint64_t* stride_bytes,
                                            const int* lower_corner, const int* upper_corner,
                                            uint32_t channels, uint32_t pixels,
                                            const uint32_t* element_strides, uint32_t interleave,
                                            uint32_t swizzle, uint32_t l2_promotion,
                                            uint32_t fill) {
  return call([&](Session& session) {
    return report(session, "cuTensorMapEncodeIm2col",
                  encode_im2col_abi(map, type, rank, address, extents, stride_bytes, lower_corner,
                                    upper_corner, channels, pixels, element_strides, interleave,
                                    swizzle, l2_promotion, fill));
  });
}

// "Only supported on devices of compute capability 10.0 or higher."
PTXSIM_CUDA_API int cuTensorMapEncodeIm2colWide(
    void* map, uint32_t type, uint32_t rank, void* address, const uint64_t* extents,
    const uint64_t* stride_bytes, int lower_corner, int upper_corner, uint32_t channels,
    uint32_t pixels, const uint32_t* element_strides, uint32_t interleave, uint32_t mode,
    uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
  return call([&](Session& session) {
    constexpr const char* kName = "cuTensorMapEncodeIm2colWide";
    if (session.device.major < 10) {
      session.recorder.refused(kName, kNotSupported, "needs compute capability 10.0");
      return kNotSupported;
    }
    return report(
        session, kName,
        encode_im2col_wide_abi(map, type, rank, address, extents, stride_bytes, lower_corner,
                               upper_corner, channels, pixels, element_strides, interleave, mode,
                               swizzle, l2_promotion, fill));
  });
}

}  // namespace ptxsim::cuda::driver
