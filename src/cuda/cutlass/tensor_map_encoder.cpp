#include "cuda/cutlass/tensor_map_encoder.hpp"

#include <fmt/format.h>

#include "cuda/runtime/small_tensor.hpp"

namespace dualgemm::cuda::gated {
namespace {

thread_local EncodeScope* current = nullptr;

}  // namespace

EncodeScope::EncodeScope(EncodeTiled encode_tiled) : encode_tiled_(encode_tiled), outer_(current) {
  current = this;
}

EncodeScope::~EncodeScope() { current = outer_; }

Status EncodeScope::status() const {
  if (first_error_ == CUDA_SUCCESS) return {};
  return Status::error(StatusCode::kInternal, "tensor map of the strategy cutlass",
                       fmt::format("CUresult {}", static_cast<int>(first_error_)),
                       "must be accepted by the driver");
}

CUresult encode_in_scope(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                         const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                         const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                         CUtensorMapFloatOOBfill fill) {
  const CUresult result =
      current->encode_tiled_(map, type, rank, address, dims, strides, box, element_strides,
                             interleave, swizzle, promotion, fill);
  if (result == CUDA_SUCCESS) {
    correct_small_tensor(map, type, rank, dims, strides);
    return result;
  }
  *map = {};
  if (current->first_error_ == CUDA_SUCCESS) current->first_error_ = result;
  return CUDA_SUCCESS;
}

}  // namespace dualgemm::cuda::gated
