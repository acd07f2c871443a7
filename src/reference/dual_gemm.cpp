#include "reference/dual_gemm.hpp"

#include <algorithm>
#include <cmath>

#include "core/activation.hpp"
#include "core/quantize_block.hpp"
#include "core/team.hpp"
#include "core/usable_cores.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::reference {
namespace {

// Multiples of 16, so that a tile of a quantised D holds whole scale blocks.
constexpr int64_t kTileRows = 64, kTileCols = 64;

// Products in a tile above which other threads are woken for it.
constexpr int64_t kTeamProducts = 100000;

double decode_element(DataType type, const void* data, int64_t index) {
  switch (type) {
    case DataType::kE2M1: {
      const uint8_t pair = static_cast<const uint8_t*>(data)[index / 2];
      return decode_e2m1(index % 2 == 0 ? pair & 0xF : pair >> 4);
    }
    case DataType::kF16:
      return decode_f16(static_cast<const uint16_t*>(data)[index]);
    case DataType::kBF16:
      return decode_bf16(static_cast<const uint16_t*>(data)[index]);
    case DataType::kF32:
      return static_cast<const float*>(data)[index];
  }
  return std::nan("");
}

void store_element(DataType type, void* data, int64_t index, float value) {
  if (type == DataType::kF32) static_cast<float*>(data)[index] = value;
  if (type == DataType::kF16) static_cast<uint16_t*>(data)[index] = encode_f16(value);
  if (type == DataType::kBF16) static_cast<uint16_t*>(data)[index] = encode_bf16(value);
}

// rows x k values of one operand: code times block scale, without global scales. Exact in double.
std::vector<double> decode_rows(const core::ResolvedMatrix& matrix, const void* data,
                                const uint8_t* scales, int64_t batch, int64_t row_begin,
                                int64_t sf_row_begin, int64_t rows) {
  const ScaleMap map = matrix.scale_map();
  std::vector<double> out(rows * matrix.cols);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = batch * matrix.batch_stride + (row_begin + row) * matrix.ld;
    for (int64_t k = 0; k < matrix.cols; ++k) {
      double value = decode_element(matrix.type, data, begin + k);
      if (matrix.type == DataType::kE2M1) {
        const int64_t offset = map(sf_row_begin + row, k / kSfVec);
        value *= decode_scale(scales[batch * matrix.scale_batch_stride + offset]);
      }
      out[row * matrix.cols + k] = value;
    }
  }
  return out;
}

// The largest scale of each row, at least 2^-6 and NaN left out; 0 for operands without scales.
std::vector<double> largest_scales(const core::ResolvedMatrix& matrix, const uint8_t* scales,
                                   int64_t batch, int64_t sf_row_begin, int64_t rows) {
  std::vector<double> largest(rows, 0.0);
  if (matrix.type != DataType::kE2M1) return largest;
  const ScaleMap map = matrix.scale_map();
  for (int64_t row = 0; row < rows; ++row) {
    largest[row] = 0x1p-6;
    for (int64_t block = 0; block < matrix.sf_cols; ++block) {
      const int64_t offset = map(sf_row_begin + row, block);
      const double scale = decode_scale(scales[batch * matrix.scale_batch_stride + offset]);
      if (scale > largest[row]) largest[row] = scale;
    }
  }
  return largest;
}

Accumulator dot(const double* a, const double* w, int64_t k) {
  Accumulator acc;
  for (int64_t block = 0; block < k; block += kSfVec) {
    double sums[4] = {}, abs_sums[4] = {};  // independent chains of additions: twice the speed
    for (int64_t i = 0; i < kSfVec; ++i) {
      const double term = a[block + i] * w[block + i];
      sums[i % 4] += term;
      abs_sums[i % 4] += std::abs(term);
    }
    acc.value += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    acc.running_sum += std::abs(acc.value);
    acc.abs_sum += (abs_sums[0] + abs_sums[1]) + (abs_sums[2] + abs_sums[3]);
  }
  return acc;
}

double bias_at(BiasType type, const void* bias, int64_t index) {
  switch (type) {
    case BiasType::kF32:
      return static_cast<const float*>(bias)[index];
    case BiasType::kBF16:
      return decode_bf16(static_cast<const uint16_t*>(bias)[index]);
    case BiasType::kNone:
      break;
  }
  return -0.0;
}

// Rounds rows x cols elements to D's type and stores them.
void store_tile(const core::ResolvedMatrix& d, const Buffers& buffers, const core::RowGroup& group,
                int64_t row_begin, int64_t rows, int64_t col_begin, int64_t cols,
                const std::vector<Element>& tile) {
  const float quantize = core::global_scale_given(buffers.d_global_scale).quantize;
  for (int64_t row = 0; row < rows; ++row) {
    const Element* from = &tile[row * cols];
    const int64_t begin =
        group.a_batch * d.batch_stride + (group.row_begin + row_begin + row) * d.ld + col_begin;
    if (d.type == DataType::kE2M1) {
      uint8_t* scales = buffers.d_scales + group.a_batch * d.scale_batch_stride;
      const int64_t sf_row = group.d_sf_row_begin + row_begin + row;
      for (int64_t col = 0; col < cols; col += kSfVec) {
        float block[kSfVec];
        for (int64_t i = 0; i < kSfVec; ++i) block[i] = static_cast<float>(from[col + i].d);
        uint8_t* codes = static_cast<uint8_t*>(buffers.d) + (begin + col) / 2;
        scales[d.scale_map()(sf_row, (col_begin + col) / kSfVec)] =
            core::quantize_block(block, quantize, codes);
      }
      continue;
    }
    for (int64_t col = 0; col < cols; ++col) {
      store_element(d.type, buffers.d, begin + col, static_cast<float>(from[col].d));
    }
  }
}

}  // namespace

std::vector<Element> exact_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                                const core::RowGroup& group, int64_t row_begin, int64_t rows,
                                int64_t col_begin, int64_t cols, int threads) {
  const int64_t k = problem.problem.k, first_row = group.row_begin + row_begin;
  const std::vector<double> a = decode_rows(problem.a, buffers.a, buffers.a_scales, group.a_batch,
                                            first_row, group.sf_row_begin + row_begin, rows);
  const std::vector<double> gate = decode_rows(problem.gate, buffers.gate, buffers.gate_scales,
                                               group.batch, col_begin, col_begin, cols);
  const std::vector<double> up = decode_rows(problem.up, buffers.up, buffers.up_scales, group.batch,
                                             col_begin, col_begin, cols);
  const std::vector<double> sf_a = largest_scales(problem.a, buffers.a_scales, group.a_batch,
                                                  group.sf_row_begin + row_begin, rows);
  const std::vector<double> sf_gate =
      largest_scales(problem.gate, buffers.gate_scales, group.batch, col_begin, cols);
  const std::vector<double> sf_up =
      largest_scales(problem.up, buffers.up_scales, group.batch, col_begin, cols);
  std::vector<Element> tile(rows * cols);
  core::Team team(rows * cols * k <= kTeamProducts ? 1
                  : threads > 0                    ? threads
                                                   : core::usable_cores());
  team.run(rows * cols, [&](int64_t index, int) {
    const int64_t row = index / cols, col = index % cols, batch = group.batch;
    const int64_t row_index = group.a_batch * problem.problem.m + first_row + row;
    Element& e = tile[index];
    e.alpha_gate =
        buffers.alpha_gate_per_batch ? buffers.alpha_gate_per_batch[batch] : buffers.alpha_gate;
    e.alpha_up = buffers.alpha_up_per_batch ? buffers.alpha_up_per_batch[batch] : buffers.alpha_up;
    e.row_scale = buffers.a_row_scale ? buffers.a_row_scale[row_index] : 1.0;
    e.gate = dot(&a[row * k], &gate[col * k], k);
    e.up = dot(&a[row * k], &up[col * k], k);
    e.gate.scale_product = sf_a[row] * sf_gate[col];
    e.up.scale_product = sf_a[row] * sf_up[col];
    const int64_t weight_row = batch * problem.problem.n + col_begin + col;
    e.bias_gate = bias_at(problem.problem.bias, buffers.bias_gate, weight_row);
    e.bias_up = bias_at(problem.problem.bias, buffers.bias_up, weight_row);
    e.g = e.row_scale * e.alpha_gate * e.gate.value + e.bias_gate;
    e.u = e.row_scale * e.alpha_up * e.up.value + e.bias_up;
    e.d = core::activate(problem.act, e.g, e.u);
  });
  return tile;
}

Status dual_gemm(const Problem& problem, const Buffers& buffers, int threads) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  core::RowGroups groups(problem, buffers);
  for (core::RowGroup group; groups.next(group);) {
    for (int64_t row = 0; row < group.rows; row += kTileRows) {
      for (int64_t col = 0; col < problem.n; col += kTileCols) {
        const int64_t rows = std::min(kTileRows, group.rows - row);
        const int64_t cols = std::min(kTileCols, problem.n - col);
        const auto tile = exact_tile(resolved, buffers, group, row, rows, col, cols, threads);
        store_tile(resolved.d, buffers, group, row, rows, col, cols, tile);
      }
    }
  }
  return {};
}

}  // namespace dualgemm::reference
