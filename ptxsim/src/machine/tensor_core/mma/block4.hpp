// kind::mxf4nvf4 and kind::mxf4: E2M1 operands with a scale for every 16 or 32 elements along K
// (PTX ISA 9.0, "Block Scaling for tcgen05.mma.sync"). One instruction has K = 64; with a sparse A
// K = 128, of which 64 are stored, and a scale for twice as many. mma.sync uses the same
// arithmetic.
//
// The model, for each output: four dot products of 16 E2M1 products each (of stored elements) are
// exact; a term is such a dot product times both scales; terms and accumulator are aligned and cut
// off at 35 fractional bits; see truncation.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace ptxsim {

enum class ScaleType : uint8_t { kUe8m0, kUe4m3 };

// One operand of one instruction. `along_rows`: element k of all rows lies together, as B needs it.
class Block4Operand {
 public:
  static constexpr unsigned kMaxRows = 256;
  static constexpr unsigned kK = 64;
  static constexpr unsigned kSparseK = 2 * kK;
  static constexpr unsigned kTerms = 4;  // of 16 elements

  // `k`: kK, or kSparseK with a sparse A, which is kept with all its zeros: their products are 0.
  explicit Block4Operand(bool along_rows, unsigned k = kK);
  // k / 2 bytes: k codes, the low nibble first. `negate`: the sign bit of each is flipped.
  void set_row(unsigned row, const uint8_t* codes, bool negate);
  // A row of a sparse A: kK / 2 bytes, and the places of the codes in the row.
  void set_sparse_row(unsigned row, const uint8_t* codes, const uint8_t* places, bool negate);
  // `count` scale codes (2 or 4) for the row; each covers k / count elements.
  void set_scales(unsigned row, const uint8_t* codes, unsigned count, ScaleType type);

 private:
  friend struct Block4Kernel;
  struct Data {
    alignas(64) int16_t element[kMaxRows * kSparseK];  // twice the value: -12 .. 12
    alignas(64) double scale[kTerms * kMaxRows];       // [term][row]
    alignas(64) double exponent[kTerms * kMaxRows];    // of the scale's significand
  };
  bool along_rows_;
  unsigned k_;
  std::unique_ptr<Data> data_;
};

// A row of a sparse A for pair_chunk(): the places of the codes that it stores.
struct Block4Row {
  const uint8_t* codes;
  std::array<uint8_t, Block4Operand::kK> places{};
  void pair(unsigned, unsigned k, unsigned place) { places[k] = static_cast<uint8_t>(place); }
  bool is_zero(unsigned, unsigned k) const { return (codes[k / 2] >> 4 * (k % 2) & 7) == 0; }
};

// cells[n] = float bits of A[row] * B[n] (+ cells[n] when `accumulate`) for n < columns <= 256.
// `exact` false: FP32 sums of the four terms.
void block4_row(const Block4Operand& a, unsigned row, const Block4Operand& b, unsigned columns,
                bool accumulate, bool exact, uint32_t* cells);

}  // namespace ptxsim
