#include "cuda/kernels/sm100a/launch.hpp"

#include "cuda/kernels/portable/repack.hpp"
#include "cuda/kernels/sm100a/extents.hpp"
#include "cuda/kernels/sm100a/params.hpp"

namespace dualgemm::cuda::sm100a {
namespace {

static_assert(static_cast<int>(ActKind::kSilu) == static_cast<int>(ActivationKind::kSilu));
static_assert(static_cast<int>(ActKind::kClampedSwiglu) ==
              static_cast<int>(ActivationKind::kClampedSwiglu));
static_assert(static_cast<int>(ActKind::kSwigluOai) ==
              static_cast<int>(ActivationKind::kSwigluOai));
static_assert(static_cast<int>(ActKind::kGeluErf) == static_cast<int>(ActivationKind::kGeluErf));
static_assert(static_cast<int>(ActKind::kGeluTanh) == static_cast<int>(ActivationKind::kGeluTanh));
static_assert(static_cast<int>(ActKind::kRelu2) == static_cast<int>(ActivationKind::kRelu2));
static_assert(static_cast<int>(ActKind::kSigmoid) == static_cast<int>(ActivationKind::kSigmoid));
static_assert(static_cast<int>(ActKind::kIdentity) == static_cast<int>(ActivationKind::kIdentity));

// One E2M1 operand with its scales, and where the kernel reads them.
struct Operand {
  const char* name;
  const char* scales_name;
  const core::ResolvedMatrix* matrix;
  const void* data;
  const uint8_t* scales;
  int64_t data_copy, scale_copy;  // Copies' offsets
};

// Where a view of bytes goes. It starts at the last multiple of 16 bytes before the operand; the
// `shift` bytes between are in no box.
struct Slot {
  TensorMap* map;
  int32_t* shift;
};

// view.address and view.dims[0] are still the operand's own.
Status encode_shifted(TensorView view, EncodeTiled encode_tiled, Slot slot) {
  const auto shift = reinterpret_cast<uintptr_t>(view.address) % kTmaAlignment;
  view.address = static_cast<const uint8_t*>(view.address) - shift;
  view.dims[0] += shift;
  *slot.shift = static_cast<int32_t>(shift);
  return encode(view, encode_tiled, slot.map);
}

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

// The operand's scale blocks; a stage takes those of kMmaSteps steps.
TensorView scale_view(const Operand& operand, int64_t batches, const uint8_t* workspace) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const bool copied = operand.scale_copy != Copies::kDirect;
  constexpr int kRowsPerBlock = kScaleBlockBytes / kScaleRowBytes;
  const int64_t k_blocks = ceil_div(matrix.cols, kMmaK);
  const int64_t row_blocks = ceil_div(matrix.rows, kScaleBlockRows);
  const int64_t row_stride = k_blocks * kScaleBlockBytes;
  const int64_t batch_stride =
      copied || batches == 1 ? row_blocks * row_stride : matrix.scale_batch_stride;
  return {.name = operand.scales_name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 4,
          .address = copied ? workspace + operand.scale_copy : operand.scales,
          .dims = {kScaleRowBytes, static_cast<uint64_t>(k_blocks * kRowsPerBlock),
                   static_cast<uint64_t>(row_blocks), static_cast<uint64_t>(batches)},
          .stride_bytes = {kScaleRowBytes, static_cast<uint64_t>(row_stride),
                           static_cast<uint64_t>(batch_stride)},
          .box = {kScaleRowBytes, kMmaSteps * kRowsPerBlock, 1, 1}};
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
  const int64_t element = bytes_of(config.output);
  Params params{};
  params.d = static_cast<uint8_t*>(buffers.d);
  params.d_row_bytes = problem.d.ld * element;
  params.d_batch_bytes = problem.d.batch_stride * element;
  params.a_row_scale = buffers.a_row_scale;
  params.alpha_gate_per_batch = buffers.alpha_gate_per_batch;
  params.alpha_up_per_batch = buffers.alpha_up_per_batch;
  params.alpha_gate = buffers.alpha_gate;
  params.alpha_up = buffers.alpha_up;
  params.act = {static_cast<ActKind>(p.act.kind), p.act.alpha, p.act.beta, p.act.limit};
  params.m = static_cast<uint32_t>(p.m);
  params.n = static_cast<uint32_t>(p.n);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, kTileM));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, config.tile_n));
  return params;
}

}  // namespace

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const int64_t batches = problem.problem.l;
  auto* const base = static_cast<uint8_t*>(workspace);
  const Copies copies = plan_copies(problem);
  Params params = scalar_params(problem, buffers, instance.config);
  const int tile_n = instance.config.tile_n;
  const struct {
    Operand operand;
    int box_rows;
    Slot data, scales;
  } operands[] = {
      {{"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
       kTileM,
       {&params.map_a, &params.shifts.a},
       {&params.map_sf_a, &params.shifts.sf_a}},
      {{"gate", "gate_scales", &problem.gate, buffers.gate, buffers.gate_scales, copies.gate,
        copies.sf_gate},
       tile_n,
       {&params.map_gate, &params.shifts.gate},
       {&params.map_sf_gate, &params.shifts.sf_gate}},
      {{"up", "up_scales", &problem.up, buffers.up, buffers.up_scales, copies.up, copies.sf_up},
       tile_n,
       {&params.map_up, &params.shifts.up},
       {&params.map_sf_up, &params.shifts.sf_up}},
  };
  std::vector<KernelLaunch> launches;
  for (const auto& [operand, box_rows, data, scales] : operands) {
    DUALGEMM_TRY(encode_shifted(data_view(operand, batches, box_rows, base), encode_tiled, data));
    DUALGEMM_TRY(encode_shifted(scale_view(operand, batches, base), encode_tiled, scales));
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
