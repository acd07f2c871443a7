// mma.sync (PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate Instructions"): what decoding and
// arithmetic share. m16n8kK with A row-major and B column-major, dense or sparse; f64
// (mma_sync_f64.cpp) and further integers (mma_sync_integer.cpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "insn/tensor/mma_sync_sp.hpp"
#include "machine/tensor_core/mma/block4.hpp"
#include "machine/tensor_core/mma/dense.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

inline constexpr uint32_t kMmaRows = 16, kMmaColumns = 8;

enum class MmaForm : uint8_t {
  kDense,    // one product per K, no scales
  kInteger,  // s8, u8; sparse: s4, u4
  kBlock4,   // mxf4, mxf4nvf4: E2M1, two codes a byte, a scale for 16 or 32 of them
};

struct MmaSyncDetail final : Detail {
  MmaForm form = MmaForm::kDense;
  uint32_t k = 0;
  uint32_t container_bits = 16;  // that an element has in a register: 32, 16, 8 or 4
  Element a_type = Element::kF16, b_type = Element::kF16;
  bool a_signed = false, b_signed = false, saturate = false;
  DenseRules rules;
  bool kind_f8f6f4 = false;  // .kind::f8f6f4 or .kind::mxf8f6f4
  uint32_t scales = 0;       // per row: 0, 1, 2 or 4
  ScaleType scale_type = ScaleType::kUe8m0;
  SparseDetail sparse;
  uint32_t stored_k() const { return sparse.present() ? k / 2 : k; }  // of a row of A
  std::vector<Slot> d, a, b, c;
  Slot sfa, sfb, byte_a, thread_a, byte_b, thread_b;
};

// The registers of D (operand 0), A, B or C, which have one type.
std::vector<Slot> take_fragment(Decode& d, size_t index, size_t count, Type type);

// The next of .s8 .u8 .s4 .u4 .b1 as written.
struct IntegerType {
  std::string_view name;
  uint32_t bits;
  bool is_signed;
};
const IntegerType& take_integer_element(Decode& d);

// After .sync.aligned.
void decode_mma_f64(Decode& d);
void decode_mma_integer(Decode& d);  // 8-bit m8n8k16, 4 bits, single bits

// Reads the fragments of all 32 lanes, multiplies, writes D.
void compute(Execution& x, const MmaSyncDetail& detail);

}  // namespace ptxsim
