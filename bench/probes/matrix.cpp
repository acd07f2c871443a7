#include "bench/probes/matrix.hpp"

#include "bench/probes/kernels.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/tensor_map.hpp"

namespace dualgemm::bench {

Expected<CopiedMatrix> CopiedMatrix::make(uint32_t blocks, uint32_t columns) {
  CopiedMatrix out;
  out.blocks = blocks;
  out.columns = columns;
  const uint64_t rows = uint64_t{blocks} * kStageRows, row_bytes = uint64_t{columns} * kRowBytes;
  auto memory = cuda::DeviceMemory::allocate(static_cast<int64_t>(rows * row_bytes), "matrix");
  if (!memory) return memory.status();
  out.memory = *std::move(memory);
  DUALGEMM_CUDA_TRY(cudaMemset(out.memory.data(), 0, rows * row_bytes));
  const auto encode_tiled = cuda::driver_encode_tiled();
  if (!encode_tiled) return encode_tiled.status();
  const cuda::TensorView view{.name = "matrix",
                              .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                              .rank = 3,
                              .address = out.memory.data(),
                              .dims = {row_bytes, rows, 1},
                              .stride_bytes = {row_bytes, rows * row_bytes},
                              .box = {kRowBytes, kBoxRows, 1}};
  DUALGEMM_TRY(cuda::encode(view, *encode_tiled, &out.map));
  return out;
}

}  // namespace dualgemm::bench
