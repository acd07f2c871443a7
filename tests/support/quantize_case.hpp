// Tensors to quantise: values that are hard to round, shapes, strides and groups at random, and
// what the CPU makes of them. All arrays begin as poison, so that equal arrays mean that nothing
// was written where nothing belongs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/e4m3.hpp"
#include "core/quantize_problem.hpp"
#include "dualgemm/quantize.hpp"
#include "support/inputs.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {

enum class Hard {
  kOrdinary,  // finite
  kSpecial,   // NaN and infinities among them
};

// One block of 16 whose quotients lie on midpoints of two codes, or next to them, if x is FP32 and
// what it is multiplied by is 1.
inline void block_of_ties(Rng& rng, float* x) {
  constexpr float kMidpoints[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f};
  const float scale = core::decode_e4m3(static_cast<uint8_t>(rng.integer(1, 0x7E)));
  for (int i = 0; i < 16; ++i) {
    float value = rng.pick(kMidpoints) * scale;
    for (int64_t steps = rng.integer(0, 2); steps > 0; --steps)
      value = std::nextafter(value, rng.chance(0.5) ? 0.0f : 1e9f);
    x[i] = rng.chance(0.5) ? value : -value;
  }
  // Mostly the scale that was meant; sometimes next to a midpoint of two scales.
  const float at_scale = rng.chance(0.7)
                             ? 6.0f * scale
                             : 3.0f * (scale + core::decode_e4m3(core::encode_e4m3(scale * 1.07f)));
  x[rng.integer(0, 15)] = std::nextafter(at_scale, rng.chance(0.5) ? 0.0f : 1e9f);
}

inline void hard_block(Rng& rng, Hard hard, float* x) {
  const int64_t kind = rng.integer(0, hard == Hard::kSpecial ? 9 : 7);
  const float spread = std::ldexp(1.0f, static_cast<int>(rng.integer(-24, 12)));
  for (int i = 0; i < 16; ++i) {
    switch (kind) {
      case 0:
        x[i] = rng.any_finite();
        break;
      case 1:
        x[i] = rng.chance(0.8) ? (rng.chance(0.5) ? 0.0f : -0.0f) : rng.normal() * spread;
        break;
      case 2:
        x[i] = static_cast<float>(rng.integer(-24, 24)) * 0.25f * spread;
        break;
      case 3:
        x[i] = std::ldexp(rng.normal(), static_cast<int>(rng.integer(-149, -120)));
        break;
      case 4:
        x[i] = rng.chance(0.5) ? 0.0f : -0.0f;
        break;
      default:
        x[i] = rng.normal() * spread;
    }
  }
  if (kind == 6) block_of_ties(rng, x);
  if (kind == 7) x[rng.integer(0, 15)] = std::numeric_limits<float>::max();
  if (kind == 8) x[rng.integer(0, 15)] = std::numeric_limits<float>::quiet_NaN();
  if (kind == 9)
    x[rng.integer(0, 15)] = (rng.chance(0.5) ? 1 : -1) * std::numeric_limits<float>::infinity();
}

struct QuantizeCase {
  QuantizeProblem problem;
  core::ResolvedQuantize resolved;
  QuantizeSizes sizes;
  std::vector<uint8_t> x, codes, scales;
  std::vector<float> global_scale, found_scale, column_factors;
  std::vector<int32_t> expert_rows, expert_offsets, row_experts;

  explicit QuantizeCase(const QuantizeProblem& p)
      : problem(p), resolved(core::resolve(p)), sizes(core::sizes_of(resolved)) {
    const Status status = validate(p);
    EXPECT_TRUE(status.ok()) << status.message();
    x.assign(static_cast<size_t>(sizes.x), kPoison);
    codes.assign(static_cast<size_t>(sizes.codes), kPoison);
    scales.assign(static_cast<size_t>(sizes.scales), kPoison);
    const auto count = static_cast<size_t>(sizes.global_scale / 4);
    (is_given() ? global_scale : found_scale).assign(count, -1.0f);
    if (p.transform.factors) column_factors.assign(static_cast<size_t>(p.cols), 1.0f);
  }

  bool is_given() const {
    return problem.scaling == GlobalScaling::kGiven ||
           problem.scaling == GlobalScaling::kGivenPerBatch;
  }
  float largest() const {  // finite number of x's type
    return problem.x.type == DataType::kF16    ? 65504.0f
           : problem.x.type == DataType::kBF16 ? 0x1.FEp127f
                                               : std::numeric_limits<float>::max();
  }
  int64_t element_index(int64_t batch, int64_t row, int64_t col) const {
    return batch * resolved.x.batch_stride + row * resolved.x.ld + col;
  }
  void set(int64_t batch, int64_t row, int64_t col, float value) {
    store_element(x.data(), problem.x.type, element_index(batch, row, col), value);
  }
  // Any bits, for types of 16.
  void set_bits(int64_t batch, int64_t row, int64_t col, uint16_t bits) {
    std::memcpy(x.data() + 2 * element_index(batch, row, col), &bits, 2);
  }
  void randomize(Rng& rng, Hard hard) {
    for (int64_t batch = 0; batch < resolved.batches(); ++batch) {
      for (int64_t row = 0; row < problem.rows; ++row) {
        for (int64_t col = 0; col < problem.cols; col += 16) {
          float block[16];
          hard_block(rng, hard, block);
          for (int i = 0; i < 16; ++i) {
            if (hard == Hard::kOrdinary) block[i] = std::clamp(block[i], -largest(), largest());
            set(batch, row, col + i, block[i]);
          }
        }
      }
    }
    for (float& g : global_scale) {
      g = rng.chance(0.5)
              ? 1.0f
              : std::ldexp(rng.uniform(1.0f, 2.0f), static_cast<int>(rng.integer(-20, 6)));
    }
    for (float& factor : column_factors) factor = rng.uniform(-2.0f, 2.0f);
    randomize_groups(rng);
  }
  // All of x; what lies between rows, too.
  void divide(float by) {
    const auto count = static_cast<int64_t>(x.size()) / core::bytes_of(problem.x.type, 1);
    for (int64_t i = 0; i < count; ++i)
      store_element(x.data(), problem.x.type, i, load_element(x.data(), problem.x.type, i) / by);
  }
  void randomize_groups(Rng& rng) {
    const int64_t l = problem.l, rows = problem.rows;
    if (problem.grouping == Grouping::kMasked) expert_rows = random_expert_rows(rng, l, rows);
    if (problem.grouping != Grouping::kContiguous) return;
    if (!row_experts.empty() || rng.chance(0.3)) {
      row_experts.resize(static_cast<size_t>(rows));
      for (int32_t& expert : row_experts) expert = static_cast<int32_t>(rng.integer(-1, l));
    } else {
      expert_offsets = random_expert_offsets(rng, l, rows);
    }
  }

  RowGroupArrays groups() const {
    const auto data = [](const std::vector<int32_t>& v) { return v.empty() ? nullptr : v.data(); };
    return {data(expert_rows), data(expert_offsets), data(row_experts)};
  }
  QuantizeBuffers buffers() {
    QuantizeBuffers b{.x = x.data(), .codes = codes.data(), .scales = scales.data()};
    b.global_scale = global_scale.empty() ? nullptr : global_scale.data();
    b.found_scale = found_scale.empty() ? nullptr : found_scale.data();
    b.groups = groups();
    b.column_factors = column_factors.empty() ? nullptr : column_factors.data();
    return b;
  }
  std::string describe() const {
    const QuantizeProblem& p = problem;
    return std::to_string(p.l) + " x " + std::to_string(p.rows) + " x " + std::to_string(p.cols) +
           " " + name_of(p.x.type) + ", " + name_of(p.q.scale_layout) + " scales, " +
           name_of(p.grouping) + (row_experts.empty() ? "" : " by rows") + ", " +
           name_of(p.scaling) + (p.four_over_six ? ", four over six" : "") +
           (p.transform.factors ? ", factors" : "") + ", hadamard " +
           std::to_string(p.transform.hadamard) + ", ld " + std::to_string(p.x.ld) + ", " +
           std::to_string(p.q.ld) + ", " + std::to_string(p.q.scale_ld);
  }
};

// One that the columns allow, mostly none.
inline RowTransform random_transform(Rng& rng, int64_t cols) {
  RowTransform transform;
  transform.factors = rng.chance(0.2);
  if (!rng.chance(0.4)) return transform;
  const int64_t size = int64_t{16} << rng.integer(0, 4);
  if (cols % size == 0) transform.hadamard = size;
  return transform;
}

// Small ones, of every kind.
inline QuantizeProblem random_quantize_problem(Rng& rng) {
  constexpr DataType kTypes[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  constexpr Grouping kGroupings[] = {Grouping::kNone, Grouping::kContiguous, Grouping::kMasked};
  QuantizeProblem p;
  p.rows = rng.chance(0.3) ? rng.integer(100, 300) : rng.integer(1, 40);
  p.cols = 16 * (rng.chance(0.2) ? rng.integer(16, 70) : rng.integer(1, 12));
  if (p.rows > 100) p.cols = 16 * rng.integer(1, 9);
  p.grouping = rng.pick(kGroupings);
  p.l = p.grouping == Grouping::kContiguous ? rng.integer(1, 40) : rng.integer(1, 3);
  p.x.type = rng.pick(kTypes);
  p.scaling = static_cast<GlobalScaling>(rng.integer(0, 3));
  p.four_over_six = rng.chance(0.4);
  p.transform = random_transform(rng, p.cols);
  p.q.scale_layout = rng.chance(0.5) ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
  if (rng.chance(0.4)) p.x.ld = p.cols + (rng.chance(0.5) ? 8 : rng.integer(1, 20));
  if (rng.chance(0.4)) p.q.ld = p.cols + 2 * rng.integer(0, 12);
  if (p.q.scale_layout == ScaleLayout::kLinear && rng.chance(0.4))
    p.q.scale_ld = p.cols / 16 + rng.integer(0, 5);
  if (p.grouping != Grouping::kContiguous && rng.chance(0.4)) {
    const core::ResolvedQuantize r = core::resolve(p);
    p.x.batch_stride = p.rows * r.x.ld + rng.integer(0, 30);
    p.q.batch_stride = p.rows * r.q.ld + 2 * rng.integer(0, 30);
    p.q.scale_batch_stride = r.q.scale_map().required_span_size() + rng.integer(0, 9);
  }
  return p;
}

}  // namespace dualgemm::test
