// Words of prepared weights: every code comes out where decoding wants it.
#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda {
namespace {

// Code `code` at the sign and at the two lowest bits of the exponent and the highest one of the
// mantissa of a half.
template <bool kBf16>
uint32_t half_of(uint32_t code) {
  return (code >> 3 << 15) | (code & 7) << (kBf16 ? 6 : 9);
}

template <bool kBf16>
void expect_places(uint32_t word) {
  const uint32_t packed = pack_word<kBf16>(word);
  ASSERT_EQ(unpack_word<kBf16>(packed), word);
  for (int pair = 0; pair < 4; ++pair) {
    const uint32_t low = word >> (4 * pair) & 15, high = word >> (4 * pair + 16) & 15;
    ASSERT_EQ(place_pair<kBf16>(pair, packed), half_of<kBf16>(low) | half_of<kBf16>(high) << 16)
        << std::hex << word;
  }
}

TEST(PackedWords, EveryPairOfCodesInEveryPairOfPlaces) {
  for (int one = 0; one < 8; ++one) {
    for (int other = 0; other < 8; ++other) {
      for (uint32_t codes = 0; codes < 256; ++codes) {
        for (const uint32_t rest : {0u, ~0u}) {
          const uint32_t hole = ~(15u << (4 * one) | 15u << (4 * other));
          const uint32_t word =
              (rest & hole) | (codes & 15) << (4 * one) | (codes >> 4) << (4 * other);
          expect_places<false>(word);
          expect_places<true>(word);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::cuda
