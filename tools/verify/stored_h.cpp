#include "tools/verify/stored_h.hpp"

#include <algorithm>
#include <cmath>

#include "dualgemm/formats.hpp"

namespace dualgemm::verify {
namespace {

using reference::Interval;

constexpr int64_t kTileCols = 256;

float smallest_magnitude(const Interval& x) {
  if (x.lo > 0.0f) return x.lo;
  return x.hi < 0.0f ? -x.hi : 0.0f;
}

uint8_t scale_of_amax(float amax, float quantize) {
  float block[kSfVec];
  std::fill(block, block + kSfVec, amax);
  uint8_t codes[kSfVec / 2];
  return core::quantize_block(block, quantize, codes);
}

double quantized(float x, float quantize, double scale) {
  if (scale == 0.0) return 0.0;
  return decode_e2m1(encode_e2m1(x * quantize / static_cast<float>(scale))) * scale;
}

double distance(double value, double low, double high) {
  const double far = std::max(high - value, value - low);
  return std::isnan(far) ? HUGE_VAL : far;
}

}  // namespace

double rounded_to(DataType type, double value) {
  const auto x = static_cast<float>(value);
  if (type == DataType::kF16) return decode_f16(encode_f16(x));
  return type == DataType::kBF16 ? decode_bf16(encode_bf16(x)) : x;
}

// The recipe is monotone in every element and in the factor, so scales between those of the least
// and the largest amax, which are neighbours in E4M3 or the same, are all that there may be.
void store_block(const double* exact, const Interval* intervals, const GlobalRange& global,
                 double* value, double* moved, double* scale_most) {
  const float quantize = global.global.quantize;
  const float least = global.hi.quantize, most = global.lo.quantize;
  float block[kSfVec], amax_lo = 0.0f, amax_hi = 0.0f;
  for (int64_t i = 0; i < kSfVec; ++i) {
    block[i] = static_cast<float>(exact[i]);
    amax_lo = std::max(amax_lo, smallest_magnitude(intervals[i]));
    amax_hi = std::max({amax_hi, std::abs(intervals[i].lo), std::abs(intervals[i].hi)});
  }
  uint8_t codes[kSfVec / 2];
  const double scale = decode_scale(core::quantize_block(block, quantize, codes));
  *scale_most = scale;
  if (std::isnan(scale)) {
    std::fill(value, value + kSfVec, scale);
    std::fill(moved, moved + kSfVec, 0.0);
    return;
  }
  const uint8_t first = scale_of_amax(amax_lo, least), last = scale_of_amax(amax_hi, most);
  *scale_most = decode_scale(last);
  if (!std::isfinite(amax_hi)) {
    std::fill(moved, moved + kSfVec, HUGE_VAL);
  }
  for (int64_t i = 0; i < kSfVec; ++i) {
    const uint8_t code = i % 2 == 0 ? codes[i / 2] & 0xF : codes[i / 2] >> 4;
    value[i] = decode_e2m1(code) * scale;
    double low = value[i], high = value[i];
    for (int byte = first; byte <= last; ++byte) {  // non-negative E4M3 is in order
      const double one = decode_scale(static_cast<uint8_t>(byte));
      for (const float factor : {least, most}) {
        low = std::min(low, quantized(intervals[i].lo, factor, one));
        high = std::max(high, quantized(intervals[i].hi, factor, one));
      }
    }
    const double unit = global.global.dequantize;
    const double wide = global.hi.dequantize / unit, narrow = global.lo.dequantize / unit;
    low = std::min(low * wide, low * narrow);
    high = std::max(high * wide, high * narrow);
    moved[i] = std::max(moved[i], distance(value[i], low, high));
  }
}

StoredH stored_h(const core::ResolvedProblem& problem, const Buffers& buffers,
                 const core::RowGroup& group, reference::Accumulation accumulation) {
  const int64_t n = problem.d.cols;
  const DataType type = problem.d.type;
  const auto values = static_cast<size_t>(group.rows * n);
  StoredH h{group.rows, n, std::vector<double>(values), std::vector<double>(values), {}, {}};
  if (type == DataType::kE2M1) h.scales.resize(values / kSfVec);
  for (int64_t begin = 0; begin < n; begin += kTileCols) {
    const int64_t cols = std::min(kTileCols, n - begin);
    const auto tile = reference::exact_tile(problem, buffers, group, 0, group.rows, begin, cols);
    std::vector<double> exact;
    std::vector<Interval> intervals;
    for (const reference::Element& element : tile) {
      exact.push_back(element.d);
      intervals.push_back(reference::interval_of(element, problem, accumulation));
    }
    for (int64_t i = 0; i < group.rows * cols; i += type == DataType::kE2M1 ? kSfVec : 1) {
      const int64_t at = i / cols * n + begin + i % cols;
      if (type == DataType::kE2M1) {
        const core::GlobalScale global = core::global_scale_given(buffers.d_global_scale);
        store_block(&exact[i], &intervals[i], {global, global, global}, &h.value[at], &h.moved[at],
                    &h.scales[at / kSfVec]);
        continue;
      }
      h.value[at] = rounded_to(type, exact[i]);
      if (!std::isfinite(exact[i])) continue;
      h.moved[at] = distance(h.value[at], rounded_to(type, intervals[i].lo),
                             rounded_to(type, intervals[i].hi));
    }
  }
  return h;
}

}  // namespace dualgemm::verify
