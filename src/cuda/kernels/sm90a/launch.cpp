#include "cuda/kernels/sm90a/launch.hpp"

#include <string>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/prepare.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

// A weight, and where its views go.
struct Weight : TmaOperand {
  TensorMap *data_map, *scale_map;
};

// Decoded A: (l, 4 * k_tiles, rows, 64) halves.
TensorView activations_view(const Problem& p, const uint8_t* data, const Instance& instance) {
  const int64_t rows = prepared_rows(p, instance.config);
  const int64_t subs = k_tiles_of(p) * kSubs, batches = batches_of_a(p);
  return {.name = "activations",
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
          .rank = 4,
          .address = data,
          .dims = {kSubK, static_cast<uint64_t>(rows), static_cast<uint64_t>(subs),
                   static_cast<uint64_t>(batches)},
          .stride_bytes = {kRowBytes, static_cast<uint64_t>(rows * kRowBytes),
                           static_cast<uint64_t>(rows * subs * kRowBytes)},
          .box = {kSubK, static_cast<uint32_t>(instance.config.tile_m),
                  static_cast<uint32_t>(instance.act_subs), 1}};
}

// Whether decoding A needs to know whose rows they are: where counts say which exist, or scales
// begin anew with each expert. Else all rows of A are decoded as those of one matrix.
bool is_prepared_by_groups(const core::ResolvedProblem& problem, const Buffers& buffers) {
  const bool swizzled =
      problem.a.type == DataType::kE2M1 && problem.a.scale_layout == ScaleLayout::kSwizzled128x4;
  return problem.problem.grouping == Grouping::kMasked ||
         (problem.problem.grouping == Grouping::kContiguous && swizzled &&
          buffers.row_experts == nullptr && buffers.a_row_index == nullptr);
}

KernelLaunch preparation(const core::ResolvedProblem& problem, const Buffers& buffers,
                         const Config& config, const Schedule& schedule, const Workspace& pieces,
                         uint8_t* workspace) {
  const Problem& p = problem.problem;
  const bool packed = p.a.type == DataType::kE2M1;
  const auto bytes = [&](int64_t elements) { return packed ? elements / 2 : elements * 2; };
  PrepareParams params{};
  params.a = static_cast<const uint8_t*>(buffers.a);
  params.scales = buffers.a_scales;
  params.out = workspace + pieces.activations;
  params.flags = reinterpret_cast<uint32_t*>(workspace + pieces.flags);
  params.row_bytes = bytes(problem.a.ld);
  params.batch_bytes = bytes(problem.a.batch_stride);
  params.scale_ld =
      packed && problem.a.scale_layout == ScaleLayout::kLinear ? problem.a.scale_ld : 0;
  params.scale_batch_bytes = packed ? problem.a.scale_batch_stride : 0;
  params.k_tiles = Divisor(static_cast<uint32_t>(k_tiles_of(p)));
  const int64_t rows_of_batch = prepared_rows(p, config);
  params.m = Divisor(static_cast<uint32_t>(rows_of_batch));
  params.k = static_cast<uint32_t>(p.k);
  params.num_flags = may_share(p, schedule) ? schedule.ctas : 0;
  params.type = a_type_of(p.a.type);
  const bool by_groups = is_prepared_by_groups(problem, buffers);
  const int64_t rows = by_groups ? most_group_tiles(p, config.tile_m) * config.tile_m
                                 : rows_of_batch * batches_of_a(p);
  params.row_pieces = static_cast<uint32_t>(rows * k_tiles_of(p));
  params.packed_order = config.prepared;
  if (by_groups) params.groups = group_tiles_of(p, buffers, workspace + pieces.groups);
  params.tile_m = Divisor(static_cast<uint32_t>(config.tile_m));
  if (!gathers(p, config)) params.row_index = row_index_of(p, buffers);
  return prepare_launch(params);
}

// Everything but the tensor maps.
Params scalar_params(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const Config& config, const Schedule& schedule, const Workspace& pieces,
                     uint8_t* workspace) {
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.partials = reinterpret_cast<float*>(workspace + pieces.partials);
  params.flags = reinterpret_cast<uint32_t*>(workspace + pieces.flags);
  params.tiles_m =
      Divisor(static_cast<uint32_t>(ceil_div(config.grouped ? usual_rows(p) : p.m, config.tile_m)));
  params.tiles_n = Divisor(static_cast<uint32_t>(ceil_div(p.n, tile_n_of(config))));
  params.schedule = schedule;
  params.groups = group_tiles_of(p, buffers, workspace + pieces.groups);
  params.whole_tiles_only = p.batch_invariant;
  if (gathers(p, config)) {
    params.activations = workspace + pieces.activations;
    params.row_index = row_index_of(p, buffers);
  }
  return params;
}

bool can_read_linear_scales(const core::ResolvedProblem& problem, const Buffers& buffers) {
  return have_suitable_linear_scales(problem) && is_tma_aligned(buffers.gate_scales) &&
         is_tma_aligned(buffers.up_scales);
}

// Where the views of two operands go.
struct MapsOfWeights {
  TensorMap &gate, &up, &sf_gate, &sf_up;
};

// The weights' tensor maps, for tiles of `tile_n` columns, and the copies that they need.
Status add_weights(const core::ResolvedProblem& problem, const Buffers& buffers,
                   const WeightCopies& pieces, bool linear_scales, int64_t tile_n, uint8_t* base,
                   EncodeTiled encode_tiled, const MapsOfWeights& maps,
                   std::vector<KernelLaunch>& launches) {
  const int64_t batches = problem.problem.l;
  const ScaleTileBox scale_tiles{kScaleTiles, scale_tile_rows_of(tile_n)};
  for (Weight weight : {Weight{{"gate", "gate_scales", &problem.gate, buffers.gate,
                                buffers.gate_scales, pieces.gate, pieces.sf_gate},
                               &maps.gate,
                               &maps.sf_gate},
                        Weight{{"up", "up_scales", &problem.up, buffers.up, buffers.up_scales,
                                pieces.up, pieces.sf_up},
                               &maps.up,
                               &maps.sf_up}}) {
    DUALGEMM_TRY(settle_copy(weight.name, weight.data, data_needs_copy(*weight.matrix, batches),
                             &weight.data_copy));
    const bool suit = linear_scales || swizzled_scales_suit(*weight.matrix, batches);
    DUALGEMM_TRY(settle_copy(weight.scales_name, weight.scales, !suit, &weight.scale_copy));
    DUALGEMM_TRY(encode(data_view(weight, batches, tile_n, base), encode_tiled, weight.data_map));
    DUALGEMM_TRY(encode(linear_scales ? linear_scale_view(weight, batches, kScaleRowBytes, tile_n)
                                      : swizzled_scale_view(weight, batches, scale_tiles, base),
                        encode_tiled, weight.scale_map));
    add_copies(weight, batches, base, launches);
  }
  return {};
}

// Where rows name their experts each may have a tile of its own.
Status check_row_experts(const Problem& p, const Buffers& buffers, int64_t tile_n) {
  int64_t k_tiles = 0;
  if (buffers.row_experts == nullptr ||
      (!__builtin_mul_overflow(p.m * ceil_div(p.n, tile_n), k_tiles_of(p), &k_tiles) &&
       k_tiles <= INT32_MAX)) {
    return {};
  }
  return Status::unsupported("m", std::to_string(p.m),
                             "with row_experts m * ceil(n / " + std::to_string(tile_n) +
                                 ") * ceil(k / 256) must be at most 2^31 - 1");
}

}  // namespace

Expected<std::vector<KernelLaunch>> build_launches(
    const core::ResolvedProblem& given, const Buffers& buffers, Workspace pieces, void* workspace,
    const Instance& instance, const Schedule& schedule, EncodeTiled encode_tiled,
    const uint8_t* prepared, const OtherProduct& other) {
  const core::ResolvedProblem problem = with_shared_rows(given);
  const Config& config = instance.config;
  const int64_t tile_n = tile_n_of(config);
  DUALGEMM_TRY(check_row_experts(problem.problem, buffers, tile_n));
  auto* const base = static_cast<uint8_t*>(workspace);
  SequentialParams params{
      scalar_params(problem, buffers, config, schedule, pieces, base), {}, {}, {}, {}};
  params.r1 = other.r1;
  std::vector<KernelLaunch> launches;
  const auto add = [&](const core::ResolvedProblem& weights, const Buffers& their,
                       const WeightCopies& copies, const MapsOfWeights& maps) {
    return add_weights(weights, their, copies, params.linear_scales, tile_n, base, encode_tiled,
                       maps, launches);
  };
  if (config.prepared) {
    params.packed = packed_weights(problem.problem, prepared);
  } else {
    params.linear_scales =
        can_read_linear_scales(problem, buffers) &&
        (!config.sequential || can_read_linear_scales(*other.of_up, *other.up_buffers));
    DUALGEMM_TRY(add(problem, buffers, pieces.weights,
                     {params.map_gate, params.map_up, params.map_sf_gate, params.map_sf_up}));
  }
  if (config.sequential) {
    DUALGEMM_TRY(add(*other.of_up, *other.up_buffers, pieces.of_up,
                     {params.map_up_first, params.map_up_second, params.map_sf_up_first,
                      params.map_sf_up_second}));
  }
  DUALGEMM_TRY(encode(activations_view(problem.problem, base + pieces.activations, instance),
                      encode_tiled, &params.map_a));
  // The kernel reads weights before it waits for the preparation; copies of them, which a grid
  // before that one has just made, only after.
  const bool copies = !launches.empty();
  if (config.grouped) {
    launches.push_back(
        group_tiles_launch(problem.problem, buffers, config.tile_m, base + pieces.groups));
    launches.back().overlaps_previous = true;
  }
  launches.push_back(preparation(problem, buffers, config, schedule, pieces, base));
  const char* const module = config.grouped      ? "dual_gemm_sm90a_groups"
                             : config.sequential ? "dual_gemm_sm90a_sequential"
                                                 : "dual_gemm_sm90a";
  KernelLaunch launch{.kernel = {module, instance.entry, instance.kernel},
                      .ctas = schedule.ctas,
                      .threads = instance.threads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .cluster_ctas = schedule.paired ? 2u : 1u,
                      .overlaps_previous = !copies};
  if (config.sequential) {
    launch.set_params(params);
  } else {
    launch.set_params(static_cast<const Params&>(params));
  }
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm90a
