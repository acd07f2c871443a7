// CUTLASS makes tensor maps in its own host code. Who builds a launch says which function encodes
// them, the driver's or a stand-in, as everywhere else in this library.
#pragma once

#include "cuda/runtime/tensor_map.hpp"

namespace dualgemm::cuda::gated {

// In force for this thread while it lives. Encoders that fail hand CUTLASS a map of zeros, since
// CUTLASS would print; status() says it.
class EncodeScope {
 public:
  explicit EncodeScope(EncodeTiled encode_tiled);
  ~EncodeScope();
  EncodeScope(const EncodeScope&) = delete;
  EncodeScope& operator=(const EncodeScope&) = delete;

  Status status() const;

 private:
  EncodeTiled encode_tiled_;
  EncodeScope* outer_;
  CUresult first_error_ = CUDA_SUCCESS;

  friend CUresult encode_in_scope(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                  const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                  const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                  CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
};

// What CUTLASS calls in the place of cuTensorMapEncodeTiled. Precondition: in an EncodeScope.
CUresult encode_in_scope(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                         const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                         const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                         CUtensorMapFloatOOBfill fill);

}  // namespace dualgemm::cuda::gated
