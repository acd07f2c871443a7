// Random operands, and whole random problems whose padding is poison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/e4m3.hpp"
#include "core/half.hpp"
#include "core/problem.hpp"
#include "dualgemm/types.hpp"
#include "support/guarded.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {

// What Hopper's and the portable kernels take.
inline constexpr DataType kTypesOfA[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16};

enum class Values {
  kRandom,  // all 16 codes; scales = e4m3(uniform [0, 1)), zeros and subnormals among them
  kExact,  // all 16 codes, scales 1/2, 1, 2: sums of fewer than 7281 products are exact in FP32, in
           // any order
  kChallenge,  // codes masked with 0xBB (0, 1/2, 1, 1 1/2 and their negatives), scales as kRandom
  kWide,       // all 16 codes, scales any finite non-negative E4M3 value
};

inline uint8_t random_codes(Rng& rng, Values values) {  // two codes
  return static_cast<uint8_t>(values == Values::kChallenge ? rng.byte() & 0xBB : rng.byte());
}

inline uint8_t random_scale(Rng& rng, Values values) {
  switch (values) {
    case Values::kExact:
      return static_cast<uint8_t>(0x30 + 8 * rng.integer(0, 2));  // 0x38 is 1
    case Values::kWide:
      return static_cast<uint8_t>(rng.integer(0, 0x7E));
    default:
      return core::encode_e4m3(static_cast<float>(rng.uniform()));
  }
}

// kExact: small integers, so that products with kExact weights stay exact.
inline float random_activation(Rng& rng, Values values) {
  return values == Values::kExact ? static_cast<float>(rng.integer(-3, 3)) : rng.normal();
}

inline void store_element(void* data, DataType type, int64_t index, float value) {
  switch (type) {
    case DataType::kF16:
      static_cast<uint16_t*>(data)[index] = core::encode_f16(value);
      return;
    case DataType::kBF16:
      static_cast<uint16_t*>(data)[index] = core::encode_bf16(value);
      return;
    case DataType::kF32:
      static_cast<float*>(data)[index] = value;
      return;
    case DataType::kE2M1:
      FAIL() << "two E2M1 codes share a byte: no single element";
  }
}

inline float load_element(const void* data, DataType type, int64_t index) {
  switch (type) {
    case DataType::kF16:
      return core::decode_f16(static_cast<const uint16_t*>(data)[index]);
    case DataType::kBF16:
      return core::decode_bf16(static_cast<const uint16_t*>(data)[index]);
    case DataType::kF32:
      return static_cast<const float*>(data)[index];
    case DataType::kE2M1:
      break;
  }
  ADD_FAILURE() << "two E2M1 codes share a byte: no single element";
  return 0.0f;
}

inline BiasType any_bias(Rng& rng) { return static_cast<BiasType>(rng.integer(0, 2)); }

// kExact: multiples of 1/4 up to 8, which leave exact sums exact.
inline void store_random_bias(Guarded<uint8_t>& bias, BiasType type, Rng& rng, Values values) {
  const int64_t bytes = core::bytes_of(type);
  for (int64_t i = 0; i < bias.size(); i += bytes) {
    const float number = values == Values::kExact ? static_cast<float>(rng.integer(-32, 32)) / 4
                                                  : rng.normal() * (rng.chance(0.5) ? 1.0f : 16.0f);
    store_element(bias.data(), type == BiasType::kF32 ? DataType::kF32 : DataType::kBF16, i / bytes,
                  number);
  }
}

// One operand's memory: exactly the span that the problem demands, padding poisoned, canaries
// around it.
struct Operand {
  Guarded<uint8_t> data, scales;

  Operand() = default;
  Operand(const core::ResolvedMatrix& matrix, int64_t batches)
      : data(matrix.data_span_bytes(batches)), scales(matrix.scale_span_bytes(batches)) {}

  // Fills rows x cols of every batch and nothing between them.
  void randomize(const core::ResolvedMatrix& matrix, int64_t batches, Rng& rng, Values values) {
    randomize_data(matrix, batches, rng, values);
    for (int64_t batch = 0; batch < batches; ++batch) {
      randomize_scales(matrix, batch * matrix.scale_batch_stride, 0, matrix.rows, rng, values);
    }
  }
  void randomize_data(const core::ResolvedMatrix& matrix, int64_t batches, Rng& rng,
                      Values values) {
    for (int64_t batch = 0; batch < batches; ++batch) {
      for (int64_t row = 0; row < matrix.rows; ++row) {
        const int64_t begin = batch * matrix.batch_stride + row * matrix.ld;
        if (matrix.type == DataType::kE2M1) {
          for (int64_t i = 0; i < matrix.cols / 2; ++i)
            data[begin / 2 + i] = random_codes(rng, values);
        } else {
          for (int64_t i = 0; i < matrix.cols; ++i) {
            store_element(data.data(), matrix.type, begin + i, random_activation(rng, values));
          }
        }
      }
    }
  }
  void randomize_scales(const core::ResolvedMatrix& matrix, int64_t base, int64_t row_begin,
                        int64_t rows, Rng& rng, Values values) {
    if (matrix.type != DataType::kE2M1) return;
    const ScaleMap map = matrix.scale_map();
    for (int64_t row = row_begin; row < row_begin + rows; ++row) {
      for (int64_t col = 0; col < matrix.sf_cols; ++col)
        scales[base + map(row, col)] = random_scale(rng, values);
    }
  }
};

// Row counts of l experts that add up to m, some of them zero: first 0, last m, non-decreasing.
inline std::vector<int32_t> random_expert_offsets(Rng& rng, int64_t l, int64_t m) {
  std::vector<int32_t> offsets(static_cast<size_t>(l) + 1, 0);
  for (int64_t e = 1; e < l; ++e)
    offsets[static_cast<size_t>(e)] = static_cast<int32_t>(rng.integer(0, m));
  std::sort(offsets.begin(), offsets.end() - 1);
  offsets.back() = static_cast<int32_t>(m);
  return offsets;
}

inline std::vector<int32_t> random_expert_rows(Rng& rng, int64_t l, int64_t m) {
  std::vector<int32_t> rows(static_cast<size_t>(l));
  for (int32_t& count : rows) count = static_cast<int32_t>(rng.chance(0.2) ? 0 : rng.integer(0, m));
  return rows;
}

// The expert of each row: runs that ascend, or in no order at all; among them rows of no expert.
inline std::vector<int32_t> random_row_experts(Rng& rng, int64_t l, int64_t m) {
  std::vector<int32_t> experts;
  const bool ascending = rng.chance(0.6);
  int64_t expert = 0;
  while (static_cast<int64_t>(experts.size()) < m) {
    expert = ascending ? std::min(l - 1, expert + rng.integer(0, 1)) : rng.integer(0, l - 1);
    const int32_t named = !rng.chance(0.2)  ? static_cast<int32_t>(expert)
                          : rng.chance(0.7) ? -1
                          : rng.chance(0.5) ? static_cast<int32_t>(l)
                                            : INT32_MIN;
    const int64_t rows = std::min(m - static_cast<int64_t>(experts.size()), rng.integer(1, 9));
    experts.insert(experts.end(), static_cast<size_t>(rows), named);
  }
  return experts;
}

// `p` with swizzled scales of all three operands.
inline Problem swizzled(Problem p) {
  p.a.scale_layout = p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  return p;
}

// `p` with rows of A of that type, 16-bit numbers, and swizzled scales of the weights.
inline Problem with_rows(Problem p, DataType type = DataType::kF16) {
  p.a.type = type;
  p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  return p;
}

// What is left to a call when its weights have been prepared.
inline Buffers without_weights(Buffers buffers) {
  buffers.gate = buffers.up = nullptr;
  buffers.gate_scales = buffers.up_scales = nullptr;
  return buffers;
}

// A valid problem with its operands. Everything that must not be read for its value is poison; so
// is D. The optional members (row scales, alphas for each batch) are used when they are not empty.
struct RandomCase {
  Problem problem;
  core::ResolvedProblem resolved;
  Operand a, gate, up, d;
  Guarded<uint8_t> bias_gate, bias_up;  // [l][n] of the problem's type, bias_stride apart
  Guarded<uint8_t> residual;            // as D; poison where D has no element
  bool in_place = false;                // run() gets D as its residual; see poison_d()
  float alpha_gate, alpha_up, d_global_scale = 1.0f;
  std::vector<float> a_row_scale, alpha_gate_per_batch, alpha_up_per_batch;
  std::vector<int32_t> expert_offsets, expert_rows, row_experts;
  std::vector<int32_t> a_row_index;  // of problem.a_rows, in any order

  // `experts`: kContiguous the l+1 offsets, kMasked the l row counts; random when empty. `rows`:
  // kContiguous, instead of offsets, the expert of each row.
  RandomCase(const Problem& p, Rng& rng, Values values, std::vector<int32_t> experts = {},
             std::vector<int32_t> rows = {})
      : problem(p),
        resolved(core::resolve(p)),
        gate(resolved.gate, p.l),
        up(resolved.up, p.l),
        row_experts(std::move(rows)) {
    const bool contiguous = p.grouping == Grouping::kContiguous;
    alpha_gate = values == Values::kExact ? 1.0f : rng.uniform(0.25f, 2.0f);
    alpha_up = values == Values::kExact ? 1.0f : rng.uniform(0.25f, 2.0f);
    if (contiguous && row_experts.empty())
      expert_offsets = experts.empty() ? random_expert_offsets(rng, p.l, p.m) : std::move(experts);
    if (p.grouping == Grouping::kMasked) {
      expert_rows = experts.empty() ? random_expert_rows(rng, p.l, p.m) : std::move(experts);
    }
    a = p.a_rows > 0 ? Operand(resolved.a, 1) : rows_operand(resolved.a);
    d = rows_operand(resolved.d);
    for (int64_t row = 0; p.a_rows > 0 && row < p.m; ++row)
      a_row_index.push_back(static_cast<int32_t>(rng.integer(0, p.a_rows - 1)));
    gate.randomize(resolved.gate, p.l, rng, values);
    up.randomize(resolved.up, p.l, rng, values);
    if (contiguous && p.a_rows == 0) {
      a.randomize_data(resolved.a, 1, rng, values);
      randomize_contiguous_scales(rng, values);
    } else {
      a.randomize(resolved.a, contiguous ? 1 : p.l, rng, values);
    }
    for (Guarded<uint8_t>* bias : {&bias_gate, &bias_up}) {
      *bias = Guarded<uint8_t>(core::bias_span_bytes(resolved));
      store_random_bias(*bias, p.bias, rng, values);
      poison_between_biases(*bias);
    }
    if (p.residual) randomize_residual(rng, values);
  }

  // A fresh D, poisoned or, in place, the residual; call before every run whose output is compared.
  // Set in_place back before D is judged: the oracle reads what was there before.
  void poison_d() {
    d.data.fill(kPoison);
    d.scales.fill(kPoison);
    if (in_place) std::copy(residual.begin(), residual.end(), d.data.begin());
  }
  Buffers buffers() {
    Buffers out;
    out.a = a.data.data();
    if (resolved.a.type == DataType::kE2M1) out.a_scales = a.scales.data();
    out.gate = gate.data.data();
    out.gate_scales = gate.scales.data();
    out.up = up.data.data();
    out.up_scales = up.scales.data();
    out.alpha_gate = alpha_gate;
    out.alpha_up = alpha_up;
    out.d = d.data.data();
    if (resolved.d.type == DataType::kE2M1) out.d_scales = d.scales.data();
    out.d_global_scale = d_global_scale;
    if (problem.bias != BiasType::kNone) {
      out.bias_gate = bias_gate.data();
      out.bias_up = bias_up.data();
    }
    if (!a_row_scale.empty()) out.a_row_scale = a_row_scale.data();
    if (!alpha_gate_per_batch.empty()) out.alpha_gate_per_batch = alpha_gate_per_batch.data();
    if (!alpha_up_per_batch.empty()) out.alpha_up_per_batch = alpha_up_per_batch.data();
    if (!expert_offsets.empty()) out.expert_offsets = expert_offsets.data();
    if (!expert_rows.empty()) out.expert_rows = expert_rows.data();
    if (!row_experts.empty()) out.row_experts = row_experts.data();
    if (!a_row_index.empty()) out.a_row_index = a_row_index.data();
    if (problem.residual) out.residual = in_place ? d.data.data() : residual.data();
    return out;
  }

 private:
  // A and D: l batches, or for kContiguous one, whose swizzled scales give every expert whole tiles
  // of 128 rows.
  Operand rows_operand(const core::ResolvedMatrix& matrix) const {
    if (problem.grouping != Grouping::kContiguous) return Operand(matrix, problem.l);
    Operand operand(matrix, 1);
    if (matrix.type == DataType::kE2M1 && matrix.scale_layout == ScaleLayout::kSwizzled128x4 &&
        row_experts.empty()) {
      int64_t rows = 0;
      for (int64_t e = 0; e < problem.l; ++e) rows += core::round_up_rows(expert_row_count(e));
      const ScaleMap padded(matrix.scale_layout, rows, matrix.sf_cols);
      operand.scales = Guarded<uint8_t>(padded.required_span_size());
    }
    return operand;
  }
  int64_t expert_row_count(int64_t e) const {
    return expert_offsets[static_cast<size_t>(e) + 1] - expert_offsets[static_cast<size_t>(e)];
  }
  void poison_between_biases(Guarded<uint8_t>& bias) const {
    const int64_t bytes = core::bytes_of(problem.bias);
    for (int64_t i = 0; i < bias.size(); ++i) {
      if (i / bytes % resolved.bias_stride >= problem.n) bias[i] = kPoison;
    }
  }
  void randomize_residual(Rng& rng, Values values) {
    const core::ResolvedMatrix& matrix = resolved.d;
    const int64_t batches = problem.grouping == Grouping::kContiguous ? 1 : problem.l;
    residual = Guarded<uint8_t>(matrix.data_span_bytes(batches));
    for (int64_t row = 0; row < batches * matrix.rows; ++row) {
      const int64_t begin = row / matrix.rows * matrix.batch_stride + row % matrix.rows * matrix.ld;
      for (int64_t col = 0; col < matrix.cols; ++col)
        store_element(residual.data(), matrix.type, begin + col,
                      4.0f * random_activation(rng, values));
    }
  }
  // Rows of no expert are poison: nothing of them is read.
  void randomize_named_rows(Rng& rng, Values values) {
    for (int64_t row = 0; row < problem.m; ++row) {
      const int32_t expert = row_experts[static_cast<size_t>(row)];
      if (expert >= 0 && expert < problem.l) {
        a.randomize_scales(resolved.a, 0, row, 1, rng, values);
        continue;
      }
      uint8_t* const begin = a.data.data() + row * resolved.a.row_bytes();
      std::fill_n(begin, core::bytes_of(resolved.a.type, resolved.a.cols), kPoison);
    }
  }
  void randomize_contiguous_scales(Rng& rng, Values values) {
    if (!row_experts.empty()) return randomize_named_rows(rng, values);
    const bool swizzled = resolved.a.scale_layout == ScaleLayout::kSwizzled128x4;
    int64_t sf_row = 0;
    for (int64_t e = 0; e < problem.l; ++e) {
      const int64_t begin = swizzled ? sf_row : expert_offsets[static_cast<size_t>(e)];
      a.randomize_scales(resolved.a, 0, begin, expert_row_count(e), rng, values);
      sf_row += core::round_up_rows(expert_row_count(e));
    }
  }
};

}  // namespace dualgemm::test
