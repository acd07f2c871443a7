// Tensor maps (ptxsim/driver/tensor_map.hpp).
#include "ptxsim/driver/tensor_map_bits.hpp"

#include <cstring>

#include "ptxsim/cuda/driver/call.hpp"

namespace ptxsim::cuda::driver {

PTXSIM_CUDA_API int cuTensorMapEncodeTiled(void* map, uint32_t type, uint32_t rank, void* address,
                                           const uint64_t* extents, const uint64_t* stride_bytes,
                                           const uint32_t* box, const uint32_t* element_strides,
                                           uint32_t interleave, uint32_t swizzle,
                                           uint32_t l2_promotion, uint32_t fill) {
  return call([&](Session& session) {
    const int status = encode_tiled_abi(map, type, rank, address, extents, stride_bytes, box,
                                        element_strides, interleave, swizzle, l2_promotion, fill);
    if (status != kSuccess)
      session.recorder.refused("cuTensorMapEncodeTiled", status, last_encode_error());
    return static_cast<Status>(status);
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

PTXSIM_CUDA_API int cuTensorMapEncodeIm2col() { return not_modelled("cuTensorMapEncodeIm2col"); }

}  // namespace ptxsim::cuda::driver
