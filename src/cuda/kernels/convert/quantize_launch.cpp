#include <algorithm>
#include <string>
#include <utility>

#include "core/int_math.hpp"
#include "core/row_transform.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/convert/quantize.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 32;                 // of all batches
constexpr int64_t kMaxUnits = (int64_t{1} << 32) - (1 << 24);  // of a launch
constexpr int64_t kMaxRowCtas = 1 << 20;

Status check_countable(const core::ResolvedQuantize& problem) {
  const QuantizeProblem& p = problem.problem;
  for (const auto& [name, extent] :
       {std::pair{"rows", p.rows}, std::pair{"cols", p.cols}, std::pair{"l", p.l}}) {
    if (extent >= kMaxExtent)
      return Status::unsupported(name, std::to_string(extent), "must be below 2^31 on a GPU");
  }
  if (problem.batches() * p.rows < kMaxRows) return {};
  return Status::unsupported("rows, l", std::to_string(p.rows) + ", " + std::to_string(p.l),
                             "must be below 2^32 rows in all on a GPU");
}

Factors factors_of(GlobalScaling scaling, bool quantizes) {
  switch (scaling) {
    case GlobalScaling::kGivenPerBatch:
      return Factors::kPerExpert;
    case GlobalScaling::kRow:
      return Factors::kPerRow;
    case GlobalScaling::kTensor:
      return quantizes ? Factors::kFromPartials : Factors::kOne;
    default:
      return Factors::kOne;
  }
}

// Everything but the part of it that a launch does.
TensorParams tensor_params(const core::ResolvedQuantize& problem, const RowGroupArrays& groups,
                           const void* x, const uint8_t* codes, const uint8_t* scales,
                           const float* global_scale, bool quantizes) {
  const core::ResolvedMatrix& q = problem.q;
  TensorParams p{};
  p.x = static_cast<uint8_t*>(const_cast<void*>(x));  // the kernels know what is only read
  p.x_row_bytes = problem.x.row_bytes();
  p.x_batch_bytes = core::bytes_of(problem.x.type, problem.x.batch_stride);
  p.codes = const_cast<uint8_t*>(codes);
  p.code_row_bytes = q.row_bytes();
  p.code_batch_bytes = core::bytes_of(q.type, q.batch_stride);
  p.scales = const_cast<uint8_t*>(scales);
  p.scale_batch_bytes = q.scale_batch_stride;
  p.blocks = static_cast<uint32_t>(q.sf_cols);
  p.scale_tile_cols = static_cast<uint32_t>(core::ceil_div(q.sf_cols, 4));
  if (problem.swizzled()) {
    const int64_t bytes = core::sizes_of(problem).scales -
                          (problem.batches() - 1) * q.scale_batch_stride;  // of one batch
    p.scale_rows = bytes / (int64_t{4} * p.scale_tile_cols);
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(scales) |
        static_cast<uintptr_t>(problem.batches() > 1 ? q.scale_batch_stride : 0);
    p.scale_alignment = places % 16 == 0 ? 16 : places % 4 == 0 ? 4 : 1;
  } else {
    p.scale_ld = q.scale_ld;
  }
  p.rows = Divisor(static_cast<uint32_t>(std::max<int64_t>(problem.problem.rows, 1)));
  p.groups = {groups.expert_rows, groups.expert_offsets, groups.row_experts,
              static_cast<uint32_t>(problem.problem.l)};
  p.factors = factors_of(problem.problem.scaling, quantizes);
  p.global_scale = global_scale;
  return p;
}

// launch(params of a part, its units) for as many rows at a time as a launch can count, a multiple
// of 32 if more than one launch has to; at least once, if `always`.
template <class Launch>
void for_parts(const core::ResolvedQuantize& problem, TensorParams params, int64_t row_units,
               bool always, const Launch& launch) {
  params.row_units = Divisor(static_cast<uint32_t>(row_units));
  const int64_t rows = problem.batches() * problem.problem.rows;
  const int64_t part = std::max<int64_t>(1, kMaxUnits / row_units / 32 * 32);
  for (int64_t begin = 0; begin < rows || (always && begin == 0); begin += part) {
    const int64_t count = std::min(part, rows - begin);
    params.row_begin = static_cast<uint32_t>(begin);
    params.count = static_cast<uint32_t>(count);
    launch(params, count * row_units);
  }
}

// One matrix whose rows are all wanted, with one factor for all or one for each row; batches that
// lie behind each other without a gap are one.
bool is_matrix(const core::ResolvedQuantize& problem) {
  const QuantizeProblem& p = problem.problem;
  if (p.grouping != Grouping::kNone) return false;
  if (p.l == 1) return true;
  const core::ResolvedMatrix &x = problem.x, &q = problem.q;
  return p.scaling != GlobalScaling::kGivenPerBatch && x.batch_stride == p.rows * x.ld &&
         q.batch_stride == p.rows * q.ld &&
         (problem.swizzled()
              ? p.rows % 128 == 0 && q.scale_batch_stride == q.scale_map().required_span_size()
              : q.scale_batch_stride == p.rows * q.scale_ld);
}
// The same problem with one batch.
core::ResolvedQuantize as_one_batch(const core::ResolvedQuantize& problem) {
  QuantizeProblem p = problem.problem;
  p.rows *= p.l;
  p.l = 1;
  p.x.batch_stride = p.q.batch_stride = p.q.scale_batch_stride = 0;
  if (p.scaling == GlobalScaling::kGivenPerBatch) p.scaling = GlobalScaling::kGiven;
  return core::resolve(p);
}

// Blocks of a row, padded columns of swizzled tiles among them.
int64_t row_blocks(const core::ResolvedQuantize& problem) {
  return problem.swizzled() ? core::round_up(problem.q.sf_cols, 4) : problem.q.sf_cols;
}

template <class Params>
KernelLaunch launch_of(const Kernel& kernel, int64_t ctas, int64_t threads, const Params& params) {
  KernelLaunch launch{.kernel = kernel};
  launch.ctas = static_cast<uint32_t>(ctas);
  launch.threads = static_cast<uint32_t>(threads);
  launch.set_params(params);
  return launch;
}

int64_t amax_ctas(const core::ResolvedQuantize& problem, int64_t units) {
  const int64_t block_bytes = core::bytes_of(problem.x.type, kSfVec);
  const int64_t unit = kAmaxThreads * (kAmaxBytes / block_bytes);
  return std::clamp<int64_t>(core::ceil_div(units, unit), 1, kMaxPartials);
}

// Two to this power CTAs take a row of so many units, where there are few rows.
uint32_t row_shift(int64_t rows, int64_t units) {
  uint32_t shift = 0;
  while (rows << (shift + 1) <= kFewRowCtas && units >> (shift + 1) >= 32) ++shift;
  return shift;
}

// A row and, for each block, its largest magnitude: quantize_staged_row().
int64_t staged_bytes(const core::ResolvedQuantize& problem) {
  return problem.q.sf_cols * (core::bytes_of(problem.x.type, kSfVec) + int64_t{sizeof(float)});
}

// Whether rows go through shared memory: many, at addresses that suit copies of 16 bytes.
bool is_staged(const core::ResolvedQuantize& problem, const TensorParams& part) {
  if (problem.problem.four_over_six || part.count < kStagedRows) return false;
  return staged_bytes(problem) <= kMaxStagedBytes &&
         (reinterpret_cast<uintptr_t>(part.x) | static_cast<uintptr_t>(part.x_row_bytes) |
          static_cast<uintptr_t>(part.x_batch_bytes)) %
                 16 ==
             0;
}

int64_t row_threads(int64_t units, int64_t units_of_thread, int64_t least) {
  return std::clamp<int64_t>(core::round_up(core::ceil_div(units, units_of_thread), 32), least,
                             kMaxRowThreads);
}

void add_rows(const core::ResolvedQuantize& problem, const QuantizeParams& params,
              std::vector<KernelLaunch>& launches) {
  const int64_t units = row_blocks(problem);
  const WideType type = output_type_of(problem.x.type);
  for_parts(problem, params.tensor, units, false, [&](const TensorParams& part, int64_t) {
    QuantizeParams own = params;
    own.tensor = part;
    if (is_staged(problem, part)) {
      launches.push_back(
          launch_of(quantize_staged_rows_kernel(type), part.count,
                    row_threads(units, staged_blocks(type, part.count), kMinStagedThreads), own));
      launches.back().dynamic_smem_bytes = static_cast<uint32_t>(staged_bytes(problem));
      return;
    }
    own.row_shift = row_shift(part.count, units);
    const Kernel kernel = quantize_rows_kernel(type, problem.problem.four_over_six);
    launches.push_back(launch_of(kernel,
                                 std::min(int64_t{part.count} << own.row_shift, kMaxRowCtas),
                                 row_threads(units, kKeptBlocks, 32), own));
  });
}

// Rows that are transformed first: the quantiser's, or only the search for the largest magnitude.
void add_transformed(const core::ResolvedQuantize& problem, const TransformedParams& params,
                     const Kernel& kernel, int64_t most_ctas, bool always,
                     std::vector<KernelLaunch>& launches) {
  const int64_t units = row_blocks(problem);
  for_parts(problem, params.quantize.tensor, units, always, [&](const TensorParams& part, int64_t) {
    TransformedParams own = params;
    own.quantize.tensor = part;
    const int64_t rows = std::max<int64_t>(part.count, 1);  // none: the scale is found all the same
    own.quantize.row_shift = row_shift(rows, units);
    launches.push_back(launch_of(kernel, std::min(rows << own.quantize.row_shift, most_ctas),
                                 row_threads(units, kKeptBlocks, 32), own));
  });
}

TransformedParams transformed_params(const QuantizeParams& params, const RowTransform& transform,
                                     const float* column_factors) {
  return {.quantize = params,
          .partials = nullptr,
          .column_factors = transform.factors ? column_factors : nullptr,
          .hadamard = static_cast<uint32_t>(transform.hadamard),
          .factor = core::hadamard_factor(transform.hadamard)};
}

std::vector<KernelLaunch> transformed_launches(const core::ResolvedQuantize& problem,
                                               const QuantizeParams& params,
                                               const QuantizeBuffers& buffers) {
  std::vector<KernelLaunch> launches;
  const QuantizeProblem& p = problem.problem;
  TransformedParams own = transformed_params(params, p.transform, buffers.column_factors);
  const WideType type = output_type_of(problem.x.type);
  const bool tensor = p.scaling == GlobalScaling::kTensor;
  if (tensor) {
    own.partials = static_cast<uint32_t*>(buffers.workspace);
    own.quantize.partials = own.partials;
    add_transformed(problem, own, amax_transformed_kernel(type), kMaxPartials, false, launches);
    if (!launches.empty()) own.quantize.num_partials = launches.back().ctas;
  }
  add_transformed(problem, own, quantize_transformed_kernel(type, p.four_over_six), kMaxRowCtas,
                  tensor, launches);
  return launches;
}

// Rows of one matrix that a thread takes if there are `units` blocks in all.
int64_t thread_rows(int64_t units) {
  int64_t rows = kLoadedRows;
  while (rows < kMostThreadRows && units >= 2 * rows * kQuantizeThreads * kManyCtas) rows *= 2;
  return rows;
}

void add_blocks(const core::ResolvedQuantize& problem, const QuantizeParams& params, bool matrix,
                std::vector<KernelLaunch>& launches) {
  const WideType type = output_type_of(problem.x.type);
  const bool found = params.found_scale != nullptr;  // by the first part's first CTA
  const int64_t row_units = row_blocks(problem);
  for_parts(problem, params.tensor, row_units, found, [&](const TensorParams& part, int64_t units) {
    const bool many = units > kFewBlocks;
    const int64_t threads = many ? kQuantizeThreads : kFewThreads;
    const int64_t rows = !matrix || !many ? 1 : thread_rows(units);
    const int64_t work = matrix ? core::ceil_div(part.count, rows) * row_units
                                : core::ceil_div(units, int64_t{many ? kManyUnroll : 1});
    QuantizeParams own = params;
    own.tensor = part;
    own.thread_rows = static_cast<uint32_t>(rows);
    launches.push_back(launch_of(quantize_kernel(type, problem.problem.four_over_six, matrix, many),
                                 std::max<int64_t>(core::ceil_div(work, threads), 1), threads,
                                 own));
  });
}

}  // namespace

int64_t quantize_workspace_bytes(const core::ResolvedQuantize& problem) noexcept {
  return problem.problem.scaling == GlobalScaling::kTensor ? kMaxPartials * 4 : 0;
}

Expected<std::vector<KernelLaunch>> quantize_launches(const core::ResolvedQuantize& given,
                                                      const QuantizeBuffers& buffers) {
  DUALGEMM_TRY(check_countable(given));
  const bool matrix = is_matrix(given);
  const core::ResolvedQuantize problem = matrix ? as_one_batch(given) : given;
  std::vector<KernelLaunch> launches;
  QuantizeParams params{};
  params.tensor = tensor_params(problem, buffers.groups, buffers.x, buffers.codes, buffers.scales,
                                buffers.global_scale, true);
  params.found_scale = buffers.found_scale;
  if (problem.problem.transform.any()) return transformed_launches(problem, params, buffers);
  if (problem.problem.scaling == GlobalScaling::kRow) {
    add_rows(problem, params, launches);
    return launches;
  }
  if (problem.problem.scaling == GlobalScaling::kTensor) {
    auto* const partials = static_cast<uint32_t*>(buffers.workspace);
    params.partials = partials;
    // One launch, or there would be more numbers than one reads.
    const int64_t units = problem.batches() * problem.problem.rows * row_blocks(problem);
    if (units > kMaxUnits) {
      return Status::unsupported("rows, cols, l", std::to_string(units) + " blocks of 16",
                                 "must be below 2^32 - 2^24 for the scaling tensor on a GPU");
    }
    if (units > 0) {
      params.num_partials = static_cast<uint32_t>(amax_ctas(problem, units));
      for_parts(problem, params.tensor, row_blocks(problem), false,
                [&](const TensorParams& part, int64_t) {
                  launches.push_back(launch_of(amax_kernel(output_type_of(problem.x.type)),
                                               params.num_partials, kAmaxThreads,
                                               AmaxParams{part, partials}));
                });
    }
  }
  add_blocks(problem, params, matrix, launches);
  return launches;
}

Expected<std::vector<KernelLaunch>> transform_launches(const TransformProblem& given,
                                                       const TransformBuffers& buffers) {
  const QuantizeProblem same{.rows = given.rows, .cols = given.cols, .l = given.l, .x = given.x};
  core::ResolvedQuantize problem = core::resolve(same);
  DUALGEMM_TRY(check_countable(problem));
  const core::ResolvedMatrix y = core::resolve(given.y, given.rows, given.cols);
  QuantizeParams params{};
  params.tensor = tensor_params(problem, {}, buffers.x, static_cast<const uint8_t*>(buffers.y),
                                nullptr, nullptr, true);
  params.tensor.code_row_bytes = y.row_bytes();
  params.tensor.code_batch_bytes = core::bytes_of(y.type, y.batch_stride);
  std::vector<KernelLaunch> launches;
  add_transformed(problem, transformed_params(params, given.transform, buffers.column_factors),
                  transform_kernel(output_type_of(given.x.type)), kMaxRowCtas, false, launches);
  return launches;
}

Expected<std::vector<KernelLaunch>> dequantize_launches(const core::ResolvedQuantize& given,
                                                        const DequantizeBuffers& buffers) {
  DUALGEMM_TRY(check_countable(given));
  const bool matrix = is_matrix(given);
  const core::ResolvedQuantize problem = matrix ? as_one_batch(given) : given;
  std::vector<KernelLaunch> launches;
  const WideType type = output_type_of(problem.x.type);
  const int64_t row_chunks = problem.problem.cols * core::bytes_of(problem.x.type, 1) / 16;
  for_parts(problem,
            tensor_params(problem, buffers.groups, buffers.x, buffers.codes, buffers.scales,
                          buffers.global_scale, false),
            row_chunks, false, [&](const TensorParams& part, int64_t units) {
              const int64_t unroll = dequantize_unroll(type);
              const int64_t work = matrix ? core::ceil_div(part.count, unroll) * row_chunks
                                          : core::ceil_div(units, unroll);
              launches.push_back(launch_of(dequantize_tensor_kernel(type, matrix),
                                           core::ceil_div(work, kDequantizeThreads),
                                           kDequantizeThreads, part));
            });
  return launches;
}

Expected<std::vector<KernelLaunch>> convert_scales_launches(
    const core::ResolvedConversion& conversion, const uint8_t* src, uint8_t* dst) {
  const ScaleMap &from = conversion.from, &to = conversion.to;
  const int64_t tile_cols = core::ceil_div(from.cols(), 4),
                groups = core::ceil_div(tile_cols, kConvertTiles),
                tile_rows = core::ceil_div(from.rows(), 128);
  for (const auto& [name, extent] :
       {std::pair{"rows", from.rows()}, std::pair{"sf_cols", from.cols()},
        std::pair{"l", conversion.batches}}) {
    if (extent >= kMaxExtent)
      return Status::unsupported(name, std::to_string(extent), "must be below 2^31 on a GPU");
  }
  int64_t ctas = 0;
  if (__builtin_mul_overflow(groups * tile_rows, conversion.batches, &ctas) || ctas > kMaxCtas) {
    return Status::unsupported("rows, sf_cols, l",
                               std::to_string(groups * tile_rows) + " tiles of 128 x 64, " +
                                   std::to_string(conversion.batches) + " batches",
                               "must be below 2^31 tiles in all on a GPU");
  }
  if (ctas == 0) return std::vector<KernelLaunch>{};
  const auto params_of = [](const ScaleMap& map, int64_t stride) {
    return ScaleParams{map.layout() == ScaleLayout::kLinear ? map.ld() : 0, stride};
  };
  const ConvertScalesParams params{.src = src,
                                   .dst = dst,
                                   .from = params_of(from, conversion.from_stride),
                                   .to = params_of(to, conversion.to_stride),
                                   .rows = from.rows(),
                                   .cols = static_cast<uint32_t>(from.cols()),
                                   .tile_cols = static_cast<uint32_t>(tile_cols),
                                   .tile_groups = Divisor(static_cast<uint32_t>(groups)),
                                   .tile_rows = Divisor(static_cast<uint32_t>(tile_rows))};
  return std::vector<KernelLaunch>{
      launch_of(convert_scales_kernel(), ctas, kConvertThreads, params)};
}

}  // namespace dualgemm::cuda
