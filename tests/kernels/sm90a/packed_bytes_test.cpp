// Prepared weights byte by byte, as docs/formats.md draws them, by a program that shares no code
// with the kernel that packs them: what one machine saves another one reads.
#include <gtest/gtest.h>

#include <cstring>

#include "core/int_math.hpp"
#include "kernels/simulation/packed_weights.hpp"

namespace dualgemm::test {
namespace {

// Where the lowest bit of code i and i + 4 of a word lies in its low and in its high half: that of
// the sign, and that of the other three.
constexpr int kSignOfF16[4] = {15, 12, 14, 13}, kRestOfF16[4] = {9, 6, 3, 0};
constexpr int kSignOfBF16[4] = {15, 12, 14, 13}, kRestOfBF16[4] = {6, 3, 0, 9};

// The word of codes k ... k + 7 of a row.
uint32_t word_of_document(const core::ResolvedMatrix& matrix, const uint8_t* row, int64_t k,
                          bool bf16) {
  uint32_t word = 0;
  for (int i = 0; i < 8 && k + i < matrix.cols; ++i) {
    const uint32_t code = row[(k + i) / 2] >> (i % 2 * 4) & 15u;
    const int sign = (bf16 ? kSignOfBF16 : kSignOfF16)[i % 4];
    const int rest = (bf16 ? kRestOfBF16 : kRestOfF16)[i % 4];
    word |= ((code >> 3) << sign | (code & 7) << rest) << (i < 4 ? 0 : 16);
  }
  return word;
}

// One expert's units, without the header in front of them.
std::vector<uint8_t> units_of_document(const RandomCase& data, int64_t expert) {
  const Problem& p = data.problem;
  const bool bf16 = p.a.type == DataType::kBF16;
  const int64_t units = core::round_up(p.n, 128) / 8, chunks = core::round_up(p.k, 256) / 64;
  std::vector<uint8_t> out;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t unit = 0; unit < units; ++unit) {
      std::vector<uint8_t> scales;
      for (int lane = 0; lane < 32; ++lane) {
        const int64_t row = 8 * unit + lane / 4, k = 64 * chunk + 16 * (lane % 4);
        for (const bool gate : {true, false}) {
          const core::ResolvedMatrix& matrix = gate ? data.resolved.gate : data.resolved.up;
          const Operand& operand = gate ? data.gate : data.up;
          const bool inside = row < p.n && k < p.k;
          const uint8_t* const codes = operand.data.data() + expert * matrix.batch_stride / 2 +
                                       (inside ? row : 0) * matrix.ld / 2;
          for (const int64_t at : {k, k + 8}) {
            const uint32_t word = inside ? word_of_document(matrix, codes, at, bf16) : 0;
            for (int i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(word >> (8 * i)));
          }
          const int64_t scale =
              expert * matrix.scale_batch_stride + (inside ? matrix.scale_map()(row, k / 16) : 0);
          scales.push_back(inside ? operand.scales[scale] : 0);
        }
      }
      out.insert(out.end(), scales.begin(), scales.end());
    }
  }
  out.resize(out.size() + size_t{2} * 576, 0);
  return out;
}

// The kernel starts behind the first expert's header, and leaves room for those of the others.
TEST(Sm90aPrepared, BytesAreThoseOfTheDocument) {
  constexpr uint8_t kUnwritten = 0xEE;
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const int64_t l : {1, 3}) {
      Problem p{.m = 1, .n = 43, .k = 272, .l = l, .a = {.type = type}};
      p.gate.ld = 278;
      p.gate.scale_ld = 19;
      p.up.scale_layout = ScaleLayout::kSwizzled128x4;
      RandomCase data(p, rng, Values::kRandom);
      SCOPED_TRACE(::testing::Message() << name_of(type) << ", l " << l);
      Simulation simulation(data, 1);
      PackedInSimulation packed;
      ASSERT_TRUE(packed.pack(data, simulation, {}));
      std::vector<uint8_t> expected;
      for (int64_t expert = 0; expert < l; ++expert) {
        const std::vector<uint8_t> units = units_of_document(data, expert);
        expected.insert(expected.end(), units.begin(), units.end());
        const auto part = core::round_up(256 + static_cast<int64_t>(units.size()), 256);
        expected.resize(static_cast<size_t>((expert + 1) * part), kUnwritten);
      }
      EXPECT_EQ(simulation.download_scratch(PackedInSimulation::kName, kUnwritten), expected);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
