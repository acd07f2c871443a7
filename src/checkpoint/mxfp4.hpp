// MXFP4 (OCP Microscaling Formats 1.0: E2M1 codes, an E8M0 scale for 32 along K) as NVFP4: the
// codes stay, a power of two becomes an E4M3 scale for each 16 and one global scale for the matrix.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

inline constexpr int64_t kMxBlock = 32;
// E4M3 has the powers of two from 2^-9 to 2^8: exponents of a matrix may lie so far apart.
inline constexpr int kMostMxSpan = 17;

struct MxScales {
  std::vector<uint8_t> scales;  // E4M3 [n, k/16], linear
  float global_scale = 1.0f;    // a power of two
};

// codes: [n, k/2]; exponents: E8M0 [n, k/32]. Blocks of zeros do not count, and get a scale that is
// near. Exact: e2m1 * e4m3 * global_scale is e2m1 * 2^(exponent - 127) for every element.
// kUnsupported: the exponents lie further apart than kMostMxSpan. kCorruptFile: one is 255, NaN,
// unless allow_nan, which makes an E4M3 NaN of it. `where`: the tensor, for messages.
Expected<MxScales> scales_of_mxfp4(std::span<const uint8_t> codes,
                                   std::span<const uint8_t> exponents, int64_t n, int64_t k,
                                   bool allow_nan, const std::string& where);

}  // namespace dualgemm::checkpoint
