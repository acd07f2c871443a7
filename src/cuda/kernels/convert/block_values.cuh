// The values that a block of 16 can have, as 16-bit numbers, and codes looked up among them.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/store_row.cuh"
#include "cuda/ptx/bytes.cuh"

namespace dualgemm::cuda {

// Each of E2M1's eight magnitudes times the block's scale and the global one, rounded to FP32 and
// then to kType; apart from the sign a code can mean nothing else. Lower and upper bytes lie apart:
// the lower three bits of four codes are the selector of a prmt. Eight codes take some 40
// instructions so, the table among them; each multiplied and rounded by itself 70 (sm_90).
template <OutputType kType>
class BlockValues {
 public:
  // scale: E4M3, whose sign does not count; of NaN the values are wrong. zero: 0 * global.
  DUALGEMM_DEVICE BlockValues(uint32_t scale, float global, float zero) {
    // As the top bits of a float it is 2^-120 of its value. The products with magnitudes are exact.
    const float small = __uint_as_float((scale & 0x7F) << 20);
    const auto value = [&](float magnitude) {
      return __fmul_rn(small * (magnitude * 0x1p120f), global);
    };
    const uint32_t pairs[4] = {
        pack_pair<kType>(zero, value(0.5f)), pack_pair<kType>(value(1.0f), value(1.5f)),
        pack_pair<kType>(value(2.0f), value(3.0f)), pack_pair<kType>(value(4.0f), value(6.0f))};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      lower_[i] = ptx::prmt(pairs[2 * i], pairs[2 * i + 1], 0x6420);
      upper_[i] = ptx::prmt(pairs[2 * i], pairs[2 * i + 1], 0x7531);
    }
  }

  // Eight codes, the first in the lowest nibble, to pairs in memory order.
  DUALGEMM_DEVICE void look_up(uint32_t codes, uint32_t (&out)[4]) const {
    const uint32_t magnitudes = codes & 0x77777777u, signs = codes & 0x88888888u;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t four = magnitudes >> 16 * half;
      const uint32_t lower = ptx::prmt(lower_[0], lower_[1], four);
      // Nibble 0 selects the byte 0x80, nibble 8 its sign, 0xFF: they differ in bit 0.
      const uint32_t negative = ptx::prmt(0x80, 0, signs >> 16 * half);
      const uint32_t upper = ptx::prmt(upper_[0], upper_[1], four) ^ (negative << 7 & 0x80808080u);
      out[2 * half] = ptx::prmt(lower, upper, 0x5140);
      out[2 * half + 1] = ptx::prmt(lower, upper, 0x7362);
    }
  }

 private:
  uint32_t lower_[2], upper_[2];
};

}  // namespace dualgemm::cuda
