#include "reference/bound.hpp"

#include <algorithm>
#include <cmath>

#include "core/activation.hpp"
#include "core/problem.hpp"
#include "core/quantize_block.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::reference {
namespace {

using core::Bounded;
using core::kRound;

constexpr double kTiny = 0x1p-149;  // at least the absolute error of a result that is subnormal
// What subnormal partial sums add for each k: 17 roundings of 2^-150 a block, 16 of them scaled by
// up to 448.
constexpr double kPartialTiny = 0x1p-140;
// The same where subnormals are flushed: of an operand 2^-126 * 6 * 448 for each k, of a partial
// sum 2^-126 * 448 for each of its roundings.
constexpr double kFlushedTiny = 0x1p-114;
constexpr double kTensorCoreK = 64.0;       // elements of a step of kTensorCoreStep
constexpr double kTensorCoreCut = 0x1p-35;  // of the largest magnitude: what one term may lose

// alpha * row_scale * accumulator: two roundings, in any association.
Bounded scaled(const Accumulator& acc, double alpha, double row_scale, double acc_error) {
  const double factor = alpha * row_scale;
  const double value = factor * acc.value, carried = std::abs(factor) * acc_error;
  const double underflow =
      kTiny * (1.0 + std::abs(acc.value)) * (1.0 + std::abs(row_scale)) * (1.0 + std::abs(alpha));
  return {value, carried + 3.0 * kRound * (std::abs(value) + carried) + underflow};
}

// x + addend: one more rounding, and none where nothing is added.
Bounded plus(Bounded x, double addend) {
  if (addend == 0.0) return x;
  const double value = x.value + addend;
  return {value, x.error + kRound * (std::abs(value) + x.error)};
}

// alpha_gate * row_scale * product + bias_gate.
Bounded product_of_gate(const Element& element, int64_t k, Accumulation accumulation) {
  return plus(scaled(element.gate, element.alpha_gate, element.row_scale,
                     accumulator_error(element.gate, k, accumulation)),
              element.bias_gate);
}

// The factor of D that depends on u alone.
Bounded up_factor(const core::ResolvedActivation& act, Bounded u) {
  if (!core::takes_parameters(act.kind)) return u;
  const double limit = act.limit;
  const double value = core::clamp_below(core::clamp_above(u.value, limit), -limit) + act.beta;
  return {value, u.error + kRound * (std::abs(value) + u.error)};
}

double decode_as(DataType type, float value) {
  if (type == DataType::kF16) return decode_f16(encode_f16(value));
  if (type == DataType::kBF16) return decode_bf16(encode_bf16(value));
  return value;
}

// Adds one element to the tile's tally. lowest .. highest: what is accepted; NaN expects NaN.
void judge(TileCheck& check, int64_t row, int64_t col, double actual, double expected,
           double lowest, double highest) {
  double share = 0.0;
  const bool both_nan = std::isnan(actual) && std::isnan(expected);
  const bool good = both_nan || (lowest <= actual && actual <= highest);
  if (!both_nan && actual != expected) {
    const double room = actual > expected ? highest - expected : expected - lowest;
    share = std::abs(actual - expected) / room;
    if (good) share = std::min(share, 1.0);
    // Wrong, but with no finite ratio: NaN, infinite, or no room on that side.
    if (!good && !(share > 1.0)) share = HUGE_VAL;
  }
  check.failed += good ? 0 : 1;
  if (share < check.worst_share) return;
  check.worst_share = share;
  check.worst_row = row;
  check.worst_col = col;
  check.actual = actual;
  check.expected = expected;
  check.lowest = lowest;
  check.highest = highest;
}

float smallest_magnitude(const Interval& x) {
  if (x.lo > 0.0f) return x.lo;
  return x.hi < 0.0f ? -x.hi : 0.0f;
}
float largest_magnitude(const Interval& x) { return std::max(std::abs(x.lo), std::abs(x.hi)); }

// The scale that the recipe gives to a block whose largest magnitude is amax.
double scale_of_amax(float amax, float quantize) {
  float block[kSfVec];
  std::fill(block, block + kSfVec, amax);
  uint8_t codes[kSfVec / 2];
  return decode_scale(core::quantize_block(block, quantize, codes));
}

// One 16-block of an NVFP4 D. The recipe is monotone in every element, so intervals stay intervals:
// first of the scale, then, for the scale that was written, of each code.
void judge_block(TileCheck& check, int64_t row, int64_t col, const uint8_t* codes,
                 uint8_t scale_byte, float global_scale, const double* expected,
                 const Interval* intervals) {
  const float quantize = core::global_scale_given(global_scale).quantize;
  const double scale = decode_scale(scale_byte);
  float amax = 0.0f, amax_lo = 0.0f, amax_hi = 0.0f;
  for (int64_t i = 0; i < kSfVec; ++i) {
    if (std::isnan(expected[i])) {  // the whole block is lost: its scale must say so
      return judge(check, row, col + i, scale, expected[i], expected[i], expected[i]);
    }
    amax = std::max(amax, static_cast<float>(std::abs(expected[i])));
    amax_lo = std::max(amax_lo, smallest_magnitude(intervals[i]));
    amax_hi = std::max(amax_hi, largest_magnitude(intervals[i]));
  }
  const double scale_lo = scale_of_amax(amax_lo, quantize);
  const double scale_hi = scale_of_amax(amax_hi, quantize);
  if (!(scale_lo <= scale && scale <= scale_hi)) {
    return judge(check, row, col, scale, scale_of_amax(amax, quantize), scale_lo, scale_hi);
  }
  const double unit = scale * global_scale;
  for (int64_t i = 0; i < kSfVec; ++i) {
    const uint8_t code = i % 2 == 0 ? codes[i / 2] & 0xF : codes[i / 2] >> 4;
    const auto code_of = [&](float x) -> double {
      if (scale == 0.0) return 0.0;
      return decode_e2m1(encode_e2m1(x * quantize / static_cast<float>(scale)));
    };
    judge(check, row, col + i, decode_e2m1(code) * unit, expected[i],
          code_of(intervals[i].lo) * unit, code_of(intervals[i].hi) * unit);
  }
}

double load_element(const core::ResolvedMatrix& d, const Buffers& buffers, int64_t index) {
  switch (d.type) {
    case DataType::kF16:
      return decode_f16(static_cast<const uint16_t*>(buffers.d)[index]);
    case DataType::kBF16:
      return decode_bf16(static_cast<const uint16_t*>(buffers.d)[index]);
    default:
      return static_cast<const float*>(buffers.d)[index];
  }
}

}  // namespace

Accumulation accumulation_of(const Problem& problem, Isa isa) noexcept {
  const bool nvfp4 = problem.a.type == DataType::kE2M1;
  switch (isa) {  // no default: the compiler names an instruction set that has no line
    case Isa::kSm90a:
    case Isa::kSm80:
      return Accumulation::kAnyOrder;
    case Isa::kSm100a:
    case Isa::kSm120a:
      return nvfp4 ? Accumulation::kTensorCoreStep : Accumulation::kAnyOrder;
    case Isa::kAmxBf16:
    case Isa::kAvx512Bf16:
      if (core::has_shared_order(problem, isa)) break;
      return nvfp4 ? Accumulation::kAnyOrder : Accumulation::kBlockPairs;
    case Isa::kAuto:
    case Isa::kScalar:
    case Isa::kAvx2:
    case Isa::kAvx512Vnni:
    case Isa::kNeon:
    case Isa::kNeonI8mm:
      break;
  }
  return nvfp4 ? Accumulation::kBlockOrder : Accumulation::kBlockPartial;
}

double accumulator_error(const Accumulator& acc, int64_t k, Accumulation accumulation) noexcept {
  const double terms = static_cast<double>(k);
  const double oracle = terms * 0x1p-52 * acc.abs_sum;  // its own additions, in double
  if (accumulation == Accumulation::kAnyOrder) {
    const double underflow = terms * 0x1p-113;  // operands may be flushed: 2^-126 * 2688 * 2
    // (1 + u)^k - 1 <= e^(ku) - 1
    return std::expm1(terms * kRound) * acc.abs_sum + oracle + underflow;
  }
  if (accumulation == Accumulation::kTensorCoreStep) {
    const double steps = std::ceil(terms / kTensorCoreK), cuts = 6.0 * kTensorCoreCut;
    const double growth = std::exp((2.0 * kRound + cuts) * steps);
    return ((2.0 * kRound + cuts) * acc.running_sum + cuts * steps * acc.scale_product) * growth;
  }
  const double growth = std::exp(kRound * terms / kSfVec);
  const double sums = kRound * acc.running_sum;
  if (accumulation == Accumulation::kBlockOrder) return sums * growth;
  const double partials = std::expm1(kSfVec * kRound) * acc.abs_sum;
  const double tiny = accumulation == Accumulation::kBlockPairs ? kFlushedTiny : kPartialTiny;
  return (partials + sums) * growth + oracle + terms * tiny;
}

Interval output_interval(const Element& element, const core::ResolvedActivation& act, int64_t k,
                         Accumulation accumulation) noexcept {
  if (!std::isfinite(element.d)) {  // NaN and infinity have no neighbours
    return {static_cast<float>(element.d), static_cast<float>(element.d)};
  }
  const Bounded g = product_of_gate(element, k, accumulation);
  const Bounded u = plus(scaled(element.up, element.alpha_up, element.row_scale,
                                accumulator_error(element.up, k, accumulation)),
                         element.bias_up);
  const Bounded f = core::gate_factor(act, g), y = up_factor(act, u);
  const double f_most = std::abs(f.value) + f.error, y_most = std::abs(y.value) + y.error;
  const double error = std::abs(f.value) * y.error + y_most * f.error +
                       3.0 * kRound * f_most * y_most + kTiny * (1.0 + f_most) * (1.0 + y_most);
  // An FP32 value above the real number x is at least x rounded to FP32: no directed rounding.
  return {static_cast<float>(element.d - error), static_cast<float>(element.d + error)};
}

Interval side_by_side_interval(const Element& element, const core::ResolvedActivation* act,
                               int64_t k, Accumulation accumulation) noexcept {
  if (!std::isfinite(element.d)) {
    return {static_cast<float>(element.d), static_cast<float>(element.d)};
  }
  Bounded product = product_of_gate(element, k, accumulation);
  if (act != nullptr) {
    // A kernel may multiply by 1, and what it computes may be below the normal numbers.
    product = core::gate_factor(*act, product);
    product.error += kTiny * (1.0 + std::abs(product.value) + product.error);
  }
  const double error = plus(product, element.residual).error;
  return {static_cast<float>(element.d - error), static_cast<float>(element.d + error)};
}

Interval interval_of(const Element& element, const core::ResolvedProblem& problem,
                     Accumulation accumulation) noexcept {
  const int64_t k = problem.problem.k;
  if (!problem.side_by_side()) return output_interval(element, problem.act, k, accumulation);
  return side_by_side_interval(element, problem.activates_each() ? &problem.act : nullptr, k,
                               accumulation);
}

TileCheck check_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const core::RowGroup& group, int64_t row_begin, int64_t rows,
                     int64_t col_begin, int64_t cols, Accumulation accumulation) {
  TileCheck check{.batch = group.batch,
                  .row = group.row_begin + row_begin,
                  .col = col_begin,
                  .rows = rows,
                  .cols = cols};
  const core::ResolvedMatrix& d = problem.d;
  const auto tile = exact_tile(problem, buffers, group, row_begin, rows, col_begin, cols);
  std::vector<Interval> intervals;
  std::vector<double> expected;
  for (const Element& element : tile) {
    intervals.push_back(interval_of(element, problem, accumulation));
    expected.push_back(element.d);
  }
  for (int64_t index = 0; index < rows * cols; index += d.type == DataType::kE2M1 ? kSfVec : 1) {
    const int64_t row = check.row + index / cols, col = col_begin + index % cols;
    const int64_t offset = group.a_batch * d.batch_stride + row * d.ld + col;
    if (d.type == DataType::kE2M1) {
      const int64_t sf_row = group.d_sf_row_begin + row_begin + index / cols;
      const uint8_t scale =
          buffers
              .d_scales[group.a_batch * d.scale_batch_stride + d.scale_map()(sf_row, col / kSfVec)];
      judge_block(check, row, col, static_cast<const uint8_t*>(buffers.d) + offset / 2, scale,
                  buffers.d_global_scale, &expected[index], &intervals[index]);
    } else {
      judge(check, row, col, load_element(d, buffers, offset), expected[index],
            decode_as(d.type, intervals[index].lo), decode_as(d.type, intervals[index].hi));
    }
  }
  return check;
}

std::vector<TileCheck> check_output(const Problem& problem, const Buffers& buffers,
                                    Accumulation accumulation, int64_t tile_rows,
                                    int64_t tile_cols) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  std::vector<TileCheck> checks;
  core::RowGroups groups(problem, buffers);
  for (core::RowGroup group; groups.next(group);) {
    for (int64_t row = 0; row < group.rows; row += tile_rows) {
      for (int64_t col = 0; col < resolved.d.cols; col += tile_cols) {
        checks.push_back(check_tile(resolved, buffers, group, row,
                                    std::min(tile_rows, group.rows - row), col,
                                    std::min(tile_cols, resolved.d.cols - col), accumulation));
      }
    }
  }
  return checks;
}

}  // namespace dualgemm::reference
