// quantize(), dequantize() and convert_scales() of quantize.hpp, once everything has been checked.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/arguments.hpp"
#include "core/quantize_block.hpp"
#include "core/quantize_rows.hpp"
#include "core/scale_padding.hpp"

namespace dualgemm::core {
namespace {

TensorPlaces places_of(const ResolvedQuantize& problem, uint8_t* codes, uint8_t* scales) {
  const ResolvedMatrix &x = problem.x, &q = problem.q;
  return {.x_type = x.type,
          .x_row_bytes = x.row_bytes(),
          .x_batch_bytes = bytes_of(x.type, x.batch_stride),
          .codes = codes,
          .code_row_bytes = q.row_bytes(),
          .code_batch_bytes = bytes_of(q.type, q.batch_stride),
          .scales = scales,
          .map = q.scale_map(),
          .scale_batch_bytes = q.scale_batch_stride,
          .blocks_per_row = q.sf_cols};
}

std::vector<float> given_factors(const ResolvedQuantize& problem, const float* global_scale) {
  std::vector<float> factors;
  const bool many = problem.problem.scaling == GlobalScaling::kGivenPerBatch;
  for (int64_t i = 0; i < (many ? problem.problem.l : 1); ++i)
    factors.push_back(global_scale_given(global_scale[i]).quantize);
  return factors;
}

}  // namespace

Status quantize_on_cpu(const ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                       int threads) {
  TensorPlaces places = places_of(problem, buffers.codes, buffers.scales);
  places.column_factors = buffers.column_factors;
  places.hadamard = problem.problem.transform.hadamard;
  const std::vector<RowRun> runs = row_runs(problem, buffers.groups);
  const Expected<int> helpers = threads_for_blocks(threads, blocks_of(places, runs));
  if (!helpers) return helpers.status();
  Team team(*helpers);
  if (problem.swizzled()) {
    for (const TileRows& tiles : tile_rows(problem, buffers.groups)) {
      clear_tile_padding(places.map, buffers.scales + tiles.batch * places.scale_batch_bytes,
                         tiles.scale_row, tiles.rows);
    }
  }
  const bool four_over_six = problem.problem.four_over_six;
  switch (problem.problem.scaling) {
    case GlobalScaling::kGiven:
    case GlobalScaling::kGivenPerBatch:
      quantize_runs(team, places, buffers.x, runs, four_over_six,
                    given_factors(problem, buffers.global_scale));
      return {};
    case GlobalScaling::kTensor: {
      const GlobalScale global = global_scale_of_bits(amax_bits(team, places, buffers.x, runs));
      *buffers.found_scale = global.dequantize;
      quantize_runs(team, places, buffers.x, runs, four_over_six, {&global.quantize, 1});
      return {};
    }
    case GlobalScaling::kRow:
      quantize_rows(team, places, buffers.x, runs, four_over_six, buffers.found_scale,
                    problem.problem.rows);
      return {};
  }
  return {};
}

Status dequantize_on_cpu(const ResolvedQuantize& problem, const DequantizeBuffers& buffers,
                         int threads) {
  const TensorPlaces places = places_of(problem, const_cast<uint8_t*>(buffers.codes),
                                        const_cast<uint8_t*>(buffers.scales));  // only read
  const std::vector<RowRun> runs = row_runs(problem, buffers.groups);
  const Expected<int> helpers = threads_for_blocks(threads, blocks_of(places, runs));
  if (!helpers) return helpers.status();
  Team team(*helpers);
  const bool rows = problem.problem.scaling == GlobalScaling::kRow;
  const auto count = static_cast<size_t>(sizes_of(problem).global_scale / 4);
  dequantize_runs(team, places, buffers.x, runs, {buffers.global_scale, count},
                  rows ? problem.problem.rows : 0);
  return {};
}

Expected<ResolvedConversion> checked_conversion(const ScaleConversion& conversion) {
  const ScaleConversion& c = conversion;
  DUALGEMM_TRY(check_not_negative("l", c.l));
  const Expected<ScaleMap> from =
      checked_scale_map("from.ld", c.from.layout, c.rows, c.sf_cols, c.from.ld);
  if (!from) return from.status();
  const Expected<ScaleMap> to = checked_scale_map("to.ld", c.to.layout, c.rows, c.sf_cols, c.to.ld);
  if (!to) return to.status();
  ResolvedConversion out{*from, *to, c.l, c.from.batch_stride, c.to.batch_stride, 0, 0};
  struct Side {
    const char* name;
    int64_t span;
    int64_t *stride, *bytes;
  };
  for (const Side& side :
       {Side{"from.batch_stride", from->required_span_size(), &out.from_stride, &out.from_bytes},
        Side{"to.batch_stride", to->required_span_size(), &out.to_stride, &out.to_bytes}}) {
    DUALGEMM_TRY(check_not_negative(side.name, *side.stride));
    if (*side.stride == 0) *side.stride = side.span;
    if (c.l == 0 || side.span == 0) continue;
    if (c.l > 1 && *side.stride < side.span) {
      return Status::invalid(
          side.name, std::to_string(*side.stride),
          "must be at least " + std::to_string(side.span) + " (one batch), or 0 for tight");
    }
    const Expected<int64_t> steps = checked_product(side.name, c.l - 1, *side.stride);
    if (!steps) return steps.status();
    if (__builtin_add_overflow(*steps, side.span, side.bytes))
      return overflow(side.name, std::to_string(c.l) + " batches");
  }
  return out;
}

Status check_arrays(const ResolvedConversion& conversion, const uint8_t* src, const uint8_t* dst) {
  DUALGEMM_TRY(check_pointer("src", src, conversion.from_bytes));
  DUALGEMM_TRY(check_pointer("dst", dst, conversion.to_bytes));
  return check_disjoint("dst", dst, conversion.to_bytes, "src", src, conversion.from_bytes);
}

void convert_scales_on_cpu(const ResolvedConversion& conversion, const uint8_t* src,
                           uint8_t* dst) noexcept {
  if (conversion.to_bytes == 0) return;
  const ScaleMap &from = conversion.from, &to = conversion.to;
  for (int64_t batch = 0; batch < conversion.batches; ++batch) {
    const uint8_t* const in = src + batch * conversion.from_stride;
    uint8_t* const out = dst + batch * conversion.to_stride;
    if (to.layout() == ScaleLayout::kSwizzled128x4) clear_tile_padding(to, out, 0, to.rows());
    for (int64_t row = 0; row < from.rows(); ++row) {
      // Four neighbouring columns, from a multiple of 4 on, lie side by side in both layouts.
      for (int64_t col = 0; col < from.cols(); col += 4) {
        const auto count = static_cast<size_t>(std::min<int64_t>(4, from.cols() - col));
        std::memcpy(out + to(row, col), in + from(row, col), count);
      }
    }
  }
}

}  // namespace dualgemm::core
