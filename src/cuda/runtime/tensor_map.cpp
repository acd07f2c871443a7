#include "cuda/runtime/tensor_map.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <span>

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/small_tensor.hpp"

namespace dualgemm::cuda {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

template <class Number>
std::string list(const Number* values, int count) {
  return fmt::format("({})", fmt::join(std::span(values, static_cast<size_t>(count)), ", "));
}

Expected<EncodeTiled> ask_driver() {
  constexpr unsigned kSince = 12000;  // the driver API version that the signature is of
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  DUALGEMM_CUDA_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince,
                                                     cudaEnableDefault, &found));
  if (found == cudaDriverEntryPointSuccess && function != nullptr) {
    return reinterpret_cast<EncodeTiled>(function);
  }
  return Status::unsupported("driver", "has no cuTensorMapEncodeTiled",
                             "must be of CUDA 12.0 or later");
}

}  // namespace

Expected<EncodeTiled> driver_encode_tiled() {
  static const Expected<EncodeTiled> function = ask_driver();
  return function;
}

Status encode(const TensorView& view, EncodeTiled encode_tiled, TensorMap* map) {
  const cuuint32_t element_strides[TensorView::kMaxRank] = {1, 1, 1, 1};
  cuuint64_t dims[TensorView::kMaxRank], strides[TensorView::kMaxRank - 1];
  for (int i = 0; i < view.rank; ++i) dims[i] = view.dims[i];
  for (int i = 0; i + 1 < view.rank; ++i) strides[i] = view.stride_bytes[i];
  CUtensorMap encoded;
  const CUresult result = encode_tiled(
      &encoded, view.type, static_cast<cuuint32_t>(view.rank), const_cast<void*>(view.address),
      dims, strides, view.box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, view.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) {
    correct_small_tensor(&encoded, view.type, static_cast<uint32_t>(view.rank), dims, strides);
    std::memcpy(map, &encoded, sizeof *map);
    return {};
  }
  return Status::error(
      StatusCode::kInternal, fmt::format("tensor map of {}", view.name),
      fmt::format("CUresult {} for dims {}, strides {} bytes, box {}", static_cast<int>(result),
                  list(view.dims, view.rank), list(view.stride_bytes, view.rank - 1),
                  list(view.box, view.rank)),
      "must be accepted by the driver");
}

}  // namespace dualgemm::cuda
