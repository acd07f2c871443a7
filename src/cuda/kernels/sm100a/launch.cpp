#include "cuda/kernels/sm100a/launch.hpp"

#include <string>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/sm100a/extents.hpp"
#include "cuda/kernels/sm100a/params.hpp"

namespace dualgemm::cuda::sm100a {
namespace {

// One E2M1 operand with its scales, and where the kernel reads them.
struct Operand {
  const char* name;
  const char* scales_name;
  const core::ResolvedMatrix* matrix;
  const void* data;
  const uint8_t* scales;
  int64_t data_copy, scale_copy;  // Copies' offsets
};

// The operand's rows of k/2 bytes; a stage takes `box_rows` of them.
TensorView data_view(const Operand& operand, int64_t batches, int box_rows,
                     const uint8_t* workspace) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const bool copied = operand.data_copy != Copies::kDirect;
  const bool one_row = matrix.rows == 1, one_batch = batches == 1;
  // A stride that is never used must be legal all the same.
  const int64_t row_stride = copied || one_row ? copied_row_bytes(matrix) : matrix.ld / 2;
  const int64_t batch_stride =
      copied || one_batch ? row_stride * matrix.rows : matrix.batch_stride / 2;
  return {.name = operand.name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
          .rank = 3,
          .address = copied ? workspace + operand.data_copy : operand.data,
          .dims = {static_cast<uint64_t>(row_bytes(matrix)), static_cast<uint64_t>(matrix.rows),
                   static_cast<uint64_t>(batches)},
          .stride_bytes = {static_cast<uint64_t>(row_stride), static_cast<uint64_t>(batch_stride)},
          .box = {kRowBytes, static_cast<uint32_t>(box_rows), 1}};
}

// The operand's scale tiles; a stage takes those of kMmaSteps steps.
TensorView scale_view(const Operand& operand, int64_t batches, const uint8_t* workspace) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const bool copied = operand.scale_copy != Copies::kDirect;
  const int64_t tile_cols = ceil_div(matrix.cols, kMmaK);
  const int64_t tile_rows = ceil_div(matrix.rows, kScaleTileRows);
  const int64_t row_stride = tile_cols * kScaleTileBytes;
  const int64_t batch_stride =
      copied || batches == 1 ? tile_rows * row_stride : matrix.scale_batch_stride;
  return {.name = operand.scales_name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 4,
          .address = copied ? workspace + operand.scale_copy : operand.scales,
          .dims = {kScaleTileBytes / 2, static_cast<uint64_t>(tile_cols),
                   static_cast<uint64_t>(tile_rows), static_cast<uint64_t>(batches)},
          .stride_bytes = {kScaleTileBytes, static_cast<uint64_t>(row_stride),
                           static_cast<uint64_t>(batch_stride)},
          .box = {kScaleTileBytes / 2, kMmaSteps, 1, 1}};
}

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kTmaAlignment == 0; }

// Where an array is read: a planned copy that nothing demands is left out, a copy that is needed
// and was not planned is an error.
Status settle(const char* name, const void* data, bool needs_copy, int64_t* copy) {
  const bool needed = needs_copy || !is_aligned(data);
  if (!needed) *copy = Copies::kDirect;
  if (!needed || *copy != Copies::kDirect) return {};
  return Status::unsupported(
      name, "address % 16 = " + std::to_string(reinterpret_cast<uintptr_t>(data) % kTmaAlignment),
      "must be aligned to 16 bytes, or planned for with PlanOptions::unaligned");
}

Status settle(Operand& operand, int64_t batches) {
  DUALGEMM_TRY(settle(operand.name, operand.data, data_needs_copy(*operand.matrix, batches),
                      &operand.data_copy));
  return settle(operand.scales_name, operand.scales, scales_need_copy(*operand.matrix, batches),
                &operand.scale_copy);
}

void add_copies(const Operand& operand, int64_t batches, uint8_t* workspace,
                std::vector<KernelLaunch>& launches) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  if (operand.data_copy != Copies::kDirect) {
    launches.push_back(repack_rows_launch({.source = static_cast<const uint8_t*>(operand.data),
                                           .destination = workspace + operand.data_copy,
                                           .source_row_bytes = matrix.ld / 2,
                                           .source_batch_bytes = matrix.batch_stride / 2,
                                           .row_bytes = row_bytes(matrix),
                                           .destination_row_bytes = copied_row_bytes(matrix),
                                           .rows = matrix.rows,
                                           .batches = batches}));
  }
  if (operand.scale_copy != Copies::kDirect) {
    const bool linear = matrix.scale_layout == ScaleLayout::kLinear;
    launches.push_back(repack_scales_launch({.source = operand.scales,
                                             .destination = workspace + operand.scale_copy,
                                             .source_ld = linear ? matrix.scale_ld : 0,
                                             .source_batch_bytes = matrix.scale_batch_stride,
                                             .rows = matrix.rows,
                                             .sf_cols = matrix.sf_cols,
                                             .batches = batches}));
  }
}

// Everything but the tensor maps.
Params scalar_params(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const Config& config) {
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, kTileM));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, config.tile_n));
  return params;
}

}  // namespace

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers, const Copies& copies,
                                                   void* workspace, const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const int64_t batches = problem.problem.l;
  auto* const base = static_cast<uint8_t*>(workspace);
  Params params = scalar_params(problem, buffers, instance.config);
  const int tile_n = instance.config.tile_n;
  struct {
    Operand operand;
    int box_rows;
    TensorMap *data, *scales;
  } operands[] = {
      {{"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
       kTileM,
       &params.map_a,
       &params.map_sf_a},
      {{"gate", "gate_scales", &problem.gate, buffers.gate, buffers.gate_scales, copies.gate,
        copies.sf_gate},
       tile_n,
       &params.map_gate,
       &params.map_sf_gate},
      {{"up", "up_scales", &problem.up, buffers.up, buffers.up_scales, copies.up, copies.sf_up},
       tile_n,
       &params.map_up,
       &params.map_sf_up},
  };
  std::vector<KernelLaunch> launches;
  for (auto& [operand, box_rows, data, scales] : operands) {
    DUALGEMM_TRY(settle(operand, batches));
    DUALGEMM_TRY(encode(data_view(operand, batches, box_rows, base), encode_tiled, data));
    DUALGEMM_TRY(encode(scale_view(operand, batches, base), encode_tiled, scales));
    add_copies(operand, batches, base, launches);
  }
  KernelLaunch launch{.kernel = {"dual_gemm_sm100a", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(num_ctas(problem.problem, tile_n)),
                      .threads = kThreads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes};
  launch.set_params(params);
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm100a
