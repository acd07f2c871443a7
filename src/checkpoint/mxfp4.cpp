#include "checkpoint/mxfp4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/corrupt.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr int kE8m0Bias = 127, kE8m0Nan = 255;
constexpr int kLeastE4m3 = -9, kMostE4m3 = 8;
constexpr uint8_t kE4m3Nan = 0x7F;

// 2^power, kLeastE4m3 to kMostE4m3.
uint8_t e4m3_power(int power) {
  return static_cast<uint8_t>(power >= -6 ? (power + 7) << 3 : 1 << (power - kLeastE4m3));
}

// Whether all 32 codes are zero, of either sign.
bool is_zero_block(const uint8_t* codes) {
  uint64_t words[2];
  std::memcpy(words, codes, sizeof words);
  return ((words[0] | words[1]) & 0x7777'7777'7777'7777) == 0;
}

}  // namespace

Expected<MxScales> scales_of_mxfp4(std::span<const uint8_t> codes,
                                   std::span<const uint8_t> exponents, int64_t n, int64_t k,
                                   bool allow_nan, const std::string& where) {
  const int64_t blocks = k / kMxBlock;
  int least = kE8m0Nan, most = -1;
  for (int64_t i = 0; i < n * blocks; ++i) {
    const int exponent = exponents[static_cast<size_t>(i)];
    if (exponent == kE8m0Nan) {
      if (allow_nan) continue;
      return corrupt(where, fmt::format("NaN at row {}, block {}", i / blocks, i % blocks),
                     fmt::format("a block scale must be a number; {}", kAllowNanTakesIt));
    }
    if (is_zero_block(codes.data() + i * (kMxBlock / 2))) continue;
    least = std::min(least, exponent);
    most = std::max(most, exponent);
  }
  if (most - least > kMostMxSpan) {
    return Status::unsupported(
        where,
        fmt::format("exponents from {} to {}, {} apart", least - kE8m0Bias, most - kE8m0Bias,
                    most - least),
        fmt::format("must lie within {} of each other to be exact as NVFP4", kMostMxSpan));
  }
  // The largest becomes 2^8, unless the global scale would then be no normal number of FP32.
  const int global = most < 0 ? 0 : std::max(most - kE8m0Bias - kMostE4m3, -126);
  MxScales out;
  out.global_scale = std::ldexp(1.0f, global);
  out.scales.resize(static_cast<size_t>(n * blocks * 2));
  for (int64_t i = 0; i < n * blocks; ++i) {
    const int exponent = exponents[static_cast<size_t>(i)];
    const int power = std::clamp(exponent - kE8m0Bias - global, kLeastE4m3, kMostE4m3);
    const uint8_t scale = exponent == kE8m0Nan ? kE4m3Nan : e4m3_power(power);
    out.scales[static_cast<size_t>(2 * i)] = scale;
    out.scales[static_cast<size_t>(2 * i + 1)] = scale;
  }
  return out;
}

}  // namespace dualgemm::checkpoint
