// The quantiser's recipe, one element at a time, by searching every representable value: the judge
// of quantize_nvfp4. Shares no code with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "unit/core/nearest.hpp"

namespace dualgemm::test {

struct SlowBlock {
  uint8_t scale;
  uint8_t codes[16];
  float error;  // sum of |x*G - code*s| in order
};

inline SlowBlock slow_block(const float* x, float G, float target) {
  float amax = 0.0f;
  for (int i = 0; i < 16; ++i) amax = std::fmax(amax, std::fabs(x[i]));
  const float scaled = G * amax;
  const float wanted = std::fmin(scaled / target, 448.0f);
  SlowBlock block{};
  block.scale = static_cast<uint8_t>(nearest_code(e4m3_magnitudes(), wanted));
  const auto s = static_cast<float>(e4m3_magnitudes()[block.scale]);
  for (int i = 0; i < 16; ++i) {
    const float y = x[i] * G;
    float value = 0.0f;
    if (s != 0.0f) {
      const float quotient = y / s;
      const uint32_t code = nearest_code(e2m1_magnitudes(), std::fabs(quotient));
      const bool negative = std::signbit(x[i]);
      block.codes[i] = static_cast<uint8_t>(code + (negative ? 8 : 0));
      value = static_cast<float>((negative ? -1.0 : 1.0) * e2m1_magnitudes()[code] *
                                 static_cast<double>(s));
    }
    block.error += std::fabs(y - value);
  }
  return block;
}

struct SlowResult {
  float global_scale;
  std::vector<uint8_t> codes;   // [rows][cols], one a byte
  std::vector<uint8_t> scales;  // [rows][cols/16]
};

// given: the dequantising global scale, 0 = derive.
inline SlowResult slow_quantize(const std::vector<float>& x, float given, bool four_over_six) {
  const float largest = std::numeric_limits<float>::max(),
              smallest_normal = std::numeric_limits<float>::min();
  float amax = 0.0f;
  for (const float value : x) amax = std::max(amax, std::abs(value));
  SlowResult result{given, {}, {}};
  float G = given == 0.0f ? 1.0f : std::min(largest, 1.0f / given);
  if (given == 0.0f) {
    result.global_scale = amax == 0.0f ? 1.0f : std::max(smallest_normal, amax / 2688.0f);
    if (amax != 0.0f)
      G = result.global_scale == smallest_normal ? 1.0f / smallest_normal : 2688.0f / amax;
  }
  for (size_t begin = 0; begin < x.size(); begin += 16) {
    SlowBlock block = slow_block(&x[begin], G, 6.0f);
    if (four_over_six) {
      const SlowBlock other = slow_block(&x[begin], G, 4.0f);
      if (other.error < block.error) block = other;
    }
    result.scales.push_back(block.scale);
    result.codes.insert(result.codes.end(), block.codes, block.codes + 16);
  }
  return result;
}

}  // namespace dualgemm::test
