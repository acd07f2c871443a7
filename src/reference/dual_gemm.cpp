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

// Rows of A of a tile, one after the other.
struct RowsOfA {
  std::vector<double> values, largest_scales;
};
RowsOfA rows_of_a(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const core::RowGroup& group, int64_t row_begin, int64_t rows) {
  const core::ResolvedMatrix& a = problem.a;
  const int64_t begin = group.row_begin + row_begin, sf_begin = group.sf_row_begin + row_begin;
  const auto take = [&](int64_t first, int64_t sf_first, int64_t count) {
    return RowsOfA{
        decode_rows(a, buffers.a, buffers.a_scales, group.a_batch, first, sf_first, count),
        largest_scales(a, buffers.a_scales, group.a_batch, sf_first, count)};
  };
  if (buffers.a_row_index == nullptr) return take(begin, sf_begin, rows);
  RowsOfA all;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t of_a = buffers.a_row_index[begin + row];
    const RowsOfA one = take(of_a, of_a, 1);
    all.values.insert(all.values.end(), one.values.begin(), one.values.end());
    all.largest_scales.push_back(one.largest_scales[0]);
  }
  return all;
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

// One of the two products, for one batch.
struct Product {
  const core::ResolvedMatrix& matrix;
  const void* data;
  const uint8_t* scales;
  int64_t batch;
  BiasType bias_type;
  const void* bias;
  int64_t first_bias;
  double alpha;
};
Product product_of_gate(const core::ResolvedProblem& problem, const Buffers& buffers,
                        int64_t batch) {
  return {problem.gate,
          buffers.gate,
          buffers.gate_scales,
          batch,
          problem.problem.bias,
          buffers.bias_gate,
          batch * problem.bias_stride,
          buffers.alpha_gate_per_batch ? buffers.alpha_gate_per_batch[batch] : buffers.alpha_gate};
}
Product product_of_up(const core::ResolvedProblem& problem, const Buffers& buffers, int64_t batch) {
  return {problem.up,
          buffers.up,
          buffers.up_scales,
          batch,
          problem.problem.bias,
          buffers.bias_up,
          batch * problem.bias_stride,
          buffers.alpha_up_per_batch ? buffers.alpha_up_per_batch[batch] : buffers.alpha_up};
}

// Columns [begin, end) of a product: what stands in rows begin .. end-1 of its weights.
struct Columns {
  std::vector<double> weights, largest_scales, bias;
  double alpha;
};
Columns decode_columns(const Product& product, int64_t begin, int64_t end) {
  Columns columns;
  columns.alpha = product.alpha;
  columns.weights = decode_rows(product.matrix, product.data, product.scales, product.batch, begin,
                                begin, end - begin);
  columns.largest_scales =
      largest_scales(product.matrix, product.scales, product.batch, begin, end - begin);
  for (int64_t col = begin; col < end; ++col)
    columns.bias.push_back(bias_at(product.bias_type, product.bias, product.first_bias + col));
  return columns;
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
  const RowsOfA of_a = rows_of_a(problem, buffers, group, row_begin, rows);
  const std::vector<double>&a = of_a.values, &sf_a = of_a.largest_scales;
  const int64_t batch = group.batch, col_end = col_begin + cols;
  const Product of_gate = product_of_gate(problem, buffers, batch);
  const Product of_up = product_of_up(problem, buffers, batch);
  // The columns of the tile that Gate has, and those that Up has.
  const bool both = !problem.side_by_side();
  const int64_t cut = both ? 0 : std::clamp(problem.problem.up_column, col_begin, col_end);
  const int64_t up_column = problem.problem.up_column;
  const Columns gate = decode_columns(of_gate, col_begin, both ? col_end : cut);
  const Columns up = both ? decode_columns(of_up, col_begin, col_end)
                          : decode_columns(of_up, cut - up_column, col_end - up_column);
  std::vector<Element> tile(rows * cols);
  core::Team team(rows * cols * k <= kTeamProducts ? 1
                  : threads > 0                    ? threads
                                                   : core::usable_cores());
  team.run(rows * cols, [&](int64_t index, int) {
    const int64_t row = index / cols, col = col_begin + index % cols;
    const int64_t row_index = group.a_batch * problem.problem.m + first_row + row;
    Element& e = tile[index];
    e.row_scale = buffers.a_row_scale ? buffers.a_row_scale[row_index] : 1.0;
    const auto multiply = [&](const Columns& columns, int64_t at, Accumulator& acc, double& alpha,
                              double& bias) {
      alpha = columns.alpha;
      bias = columns.bias[at];
      acc = dot(&a[row * k], &columns.weights[at * k], k);
      acc.scale_product = sf_a[row] * columns.largest_scales[at];
      return e.row_scale * alpha * acc.value + bias;
    };
    if (both) {
      e.g = multiply(gate, col - col_begin, e.gate, e.alpha_gate, e.bias_gate);
      e.u = multiply(up, col - col_begin, e.up, e.alpha_up, e.bias_up);
      e.d = core::activate(problem.act, e.g, e.u);
      return;
    }
    e.g = col < cut ? multiply(gate, col - col_begin, e.gate, e.alpha_gate, e.bias_gate)
                    : multiply(up, col - cut, e.gate, e.alpha_gate, e.bias_gate);
    if (problem.problem.residual) {
      e.residual = decode_element(
          problem.d.type, buffers.residual,
          group.a_batch * problem.d.batch_stride + (first_row + row) * problem.d.ld + col);
    }
    e.d = (problem.activates_each() ? core::activate(problem.act, e.g, 1.0) : e.g) + e.residual;
  });
  return tile;
}

Status dual_gemm(const Problem& problem, const Buffers& buffers, int threads) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  core::RowGroups groups(problem, buffers);
  for (core::RowGroup group; groups.next(group);) {
    for (int64_t row = 0; row < group.rows; row += kTileRows) {
      for (int64_t col = 0; col < resolved.d.cols; col += kTileCols) {
        const int64_t rows = std::min(kTileRows, group.rows - row);
        const int64_t cols = std::min(kTileCols, resolved.d.cols - col);
        const auto tile = exact_tile(resolved, buffers, group, row, rows, col, cols, threads);
        store_tile(resolved.d, buffers, group, row, rows, col, cols, tile);
      }
    }
  }
  return {};
}

}  // namespace dualgemm::reference
