// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA 9.0, "Instruction descriptor") and the
// shapes that each kind has ("Matrix Shape", "Data Path Layout Organization").
#pragma once

#include <cstdint>

#include "machine/tensor_core/mma/block4.hpp"
#include "machine/tensor_core/mma/dense.hpp"
#include "machine/tensor_core/mma/sparsity.hpp"

namespace ptxsim {

enum class MmaKind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };
const char* name_of(MmaKind kind);
inline bool is_block_scaled(MmaKind kind) { return kind >= MmaKind::kMxf8f6f4; }
inline bool is_block4(MmaKind kind) { return kind >= MmaKind::kMxf4; }

// Where D lies in tensor memory (PTX ISA, "Data Path Layout Organization").
enum class DLayout : uint8_t {
  kFull,      // D and A: lane = row of the CTA, column = n
  kSplit,     // B and E: 64 rows a CTA; lane = row + 64 * (n / (N/2)), column = n % (N/2)
  kHalf,      // F: 64 rows; lane = 32 * (row / 16) + row % 16
  kQuarters,  // G: 32 rows; lane = row + 32 * (n / (N/4)), column = n % (N/4)
};

// What the opcode says besides the kind.
struct MmaVariant {
  bool is_sparse = false;             // .sp
  bool is_weight_stationary = false;  // .ws
};

struct MmaShape {
  MmaKind kind = MmaKind::kF16;
  uint32_t m = 0, n = 0, k = 0;  // of the whole instruction, both CTAs of a pair
  Sparsity sparsity = Sparsity::kNone;
  uint32_t selector = 0;  // of the column of sparsity metadata
  uint32_t ctas = 1;      // cta_group
  Element a = Element::kF16, b = Element::kF16;
  bool a_signed = false, b_signed = false;      // kind::i8
  bool a_mn_major = false, b_mn_major = false;  // the transpose bits
  bool negate_a = false, negate_b = false;
  bool saturate = false;
  bool f16_accumulator = false;
  ScaleType scale_type = ScaleType::kUe8m0;
  uint32_t sfa_id = 0, sfb_id = 0;  // first byte of the cell that holds a row's scales
  uint32_t scales = 0;              // per row: 1, 2 or 4
  DLayout layout = DLayout::kFull;

  uint32_t rows() const { return m / ctas; }  // of A and D in one CTA
  bool is_sparse() const { return sparsity != Sparsity::kNone; }
  uint32_t stored_k() const { return is_sparse() ? k / 2 : k; }  // of a row of A
  // Parts of N that lie beside each other in different lanes. Each multiplies A and metadata as
  // they are in its own lanes, where those are in tensor memory.
  uint32_t parts() const {
    return layout == DLayout::kSplit ? 2 : layout == DLayout::kQuarters ? 4 : 1;
  }
  uint32_t d_columns() const { return n / parts(); }
  // Columns of tensor memory that hold sparsity metadata: 16 chunks of a row of 8 or 4 bits, else
  // 8.
  uint32_t metadata_columns() const {
    return kind == MmaKind::kF16 || kind == MmaKind::kTf32 ? 1 : 2;
  }
  // Columns of tensor memory that hold scales: 32 rows a column.
  uint32_t sfa_columns() const { return (rows() + 31) / 32; }
  uint32_t sfb_columns() const { return (d_columns() + 31) / 32; }
  uint32_t lane_of(uint32_t row, uint32_t n_index) const {
    if (layout == DLayout::kHalf) return 32 * (row / 16) + row % 16;
    return row + 128 / parts() * (n_index / d_columns());
  }
};

// `scales` is the instruction's .scale_vec::NX (0 without block scaling). Throws a Fault (R14) that
// names field, value and rule.
MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t ctas, uint32_t scales,
                                       MmaVariant variant = {});

}  // namespace ptxsim
