// Prepared weights byte by byte, as docs/formats.md draws them, by a program that shares no code
// with the kernel that packs them: what one machine saves another one reads.
#include <gtest/gtest.h>

#include "core/int_math.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// One expert, without the header in front of it.
std::vector<uint8_t> weights_of_document(const RandomCase& data, int64_t expert) {
  const Problem& p = data.problem;
  const int64_t units = core::ceil_div(p.n, 8), stages = core::ceil_div(p.k, 256);
  std::vector<uint8_t> out;
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<uint8_t> scales;
    for (int64_t unit = 0; unit < units; ++unit) {
      for (const bool gate : {true, false}) {
        const core::ResolvedMatrix& matrix = gate ? data.resolved.gate : data.resolved.up;
        const Operand& operand = gate ? data.gate : data.up;
        for (int64_t r = 0; r < 8; ++r) {
          const int64_t row = 8 * unit + r;
          const auto byte_at = [&](int64_t k) {  // codes k and k + 1
            if (row >= p.n || k >= p.k) return uint8_t{0};
            return operand.data[(expert * matrix.batch_stride + row * matrix.ld + k) / 2];
          };
          for (int64_t chunk = 0; chunk < 8; ++chunk) {
            for (int64_t i = 0; i < 16; ++i)
              out.push_back(byte_at(256 * stage + 32 * (chunk ^ r) + 2 * i));
          }
          for (int64_t block = 16 * stage; block < 16 * (stage + 1); ++block) {
            const bool inside = row < p.n && block < p.k / 16;
            scales.push_back(inside ? operand.scales[expert * matrix.scale_batch_stride +
                                                     matrix.scale_map()(row, block)]
                                    : 0);
          }
        }
      }
    }
    out.insert(out.end(), scales.begin(), scales.end());
  }
  return out;
}

// The kernel starts behind the first expert's header, and leaves room for those of the others.
TEST(Sm100aPairPrepared, BytesAreThoseOfTheDocument) {
  constexpr uint8_t kUnwritten = 0xEE;
  Rng rng;
  for (const int64_t l : {1, 3}) {
    for (const int64_t n : {8, 43}) {
      Problem p{.m = 1, .n = n, .k = 272, .l = l};
      p.gate.ld = 278;
      p.gate.scale_ld = 19;
      p.up.scale_layout = ScaleLayout::kSwizzled128x4;
      RandomCase data(p, rng, Values::kRandom);
      SCOPED_TRACE(::testing::Message() << "n " << n << ", l " << l);
      Simulation simulation(data, 1);
      ::testing::AssertionResult result = ::testing::AssertionSuccess();
      ASSERT_NE(pack_weights(data, simulation, result), nullptr) << result.message();
      std::vector<uint8_t> expected;
      for (int64_t expert = 0; expert < l; ++expert) {
        const std::vector<uint8_t> weights = weights_of_document(data, expert);
        expected.insert(expected.end(), weights.begin(), weights.end());
        const auto part = core::round_up(256 + static_cast<int64_t>(weights.size()), 256);
        expected.resize(static_cast<size_t>((expert + 1) * part), kUnwritten);
      }
      EXPECT_EQ(simulation.download_scratch(kPackedName, kUnwritten), expected);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
