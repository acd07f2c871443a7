// Prepared weights byte by byte, as docs/formats.md draws them, by a program that shares no code
// with the kernel that packs them: what one machine saves another one reads.
#include <gtest/gtest.h>

#include <cstring>

#include "core/int_math.hpp"
#include "kernels/simulation/packed_weights.hpp"

namespace dualgemm::test {
namespace {

constexpr size_t kUnitBytes = 576, kCodeBytes = 512;

// The codes of a packed word, nibble i code i, as the document has them.
uint32_t codes_of_document(uint32_t w, bool bf16) {
  const auto rotated = [w](int left) { return w << left | w >> (32 - left); };
  const uint32_t of_f16[4] = {w, w << 3, w << 7 ^ w << 10, w << 7 ^ rotated(12)};
  const uint32_t of_bf16[4] = {w, w << 4, w << 6 ^ w >> 2, w << 6 ^ rotated(10)};
  uint32_t codes = 0;
  for (int i = 0; i < 8; ++i) {
    const uint32_t half = (bf16 ? of_bf16 : of_f16)[i % 4] >> (i < 4 ? 0 : 16);
    codes |= ((half >> 15 & 1) << 3 | (half >> (bf16 ? 6 : 9) & 7)) << (4 * i);
  }
  return codes;
}

// The same of all words of units that lie one behind the other, in their place.
void unpack_units(uint8_t* units, size_t bytes, bool bf16) {
  for (size_t at = 0; at < bytes; at += 4) {
    if (at % kUnitBytes >= kCodeBytes) continue;
    uint32_t word = 0;
    std::memcpy(&word, units + at, 4);
    word = codes_of_document(word, bf16);
    std::memcpy(units + at, &word, 4);
  }
}

// Codes k ... k + 7 of a row.
uint32_t codes_of_row(const core::ResolvedMatrix& matrix, const uint8_t* row, int64_t k) {
  uint32_t word = 0;
  for (int i = 0; i < 8 && k + i < matrix.cols; ++i)
    word |= (row[(k + i) / 2] >> (i % 2 * 4) & 15u) << (4 * i);
  return word;
}

// One expert's units, without the header in front of them, unpacked.
std::vector<uint8_t> units_of_document(const RandomCase& data, int64_t expert) {
  const Problem& p = data.problem;
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
            const uint32_t word = inside ? codes_of_row(matrix, codes, at) : 0;
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
  out.resize(out.size() + 2 * kUnitBytes, 0);
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
      std::vector<uint8_t> got = simulation.download_scratch(PackedInSimulation::kName, kUnwritten);
      for (int64_t expert = 0; expert < l; ++expert) {
        const std::vector<uint8_t> units = units_of_document(data, expert);
        const auto part = core::round_up(256 + static_cast<int64_t>(units.size()), 256);
        ASSERT_LE(expected.size() + units.size(), got.size());
        unpack_units(got.data() + expected.size(), units.size(), type == DataType::kBF16);
        expected.insert(expected.end(), units.begin(), units.end());
        expected.resize(static_cast<size_t>((expert + 1) * part), kUnwritten);
      }
      EXPECT_EQ(got, expected);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
