// One tcgen05.mma from its operands in shared and tensor memory to D (PTX ISA 9.0, "TensorCore 5th
// Generation Matrix Multiply and accumulate Operations").
//
// cta_group::2: CTA r of the pair supplies rows r*M/2 .. of A and r*N/2 .. of B from its own shared
// memory, at the same offsets; it has its own rows of A's scales, all of B's scales, and holds its
// own rows of D, at the same addresses in both.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/tensor_core/descriptor.hpp"
#include "machine/tensor_core/instruction_descriptor.hpp"
#include "machine/tensor_core/tmem.hpp"

namespace ptxsim {

struct Cta;

struct MmaOperation {
  MmaShape shape;
  std::vector<Cta*> ctas;  // one, or the pair with its even CTA first
  TmemAddress d;
  bool a_in_tmem = false;
  TmemAddress a_tmem;
  SmemDescriptor a, b;
  uint32_t metadata_column = 0;  // of a sparse A; the selector not yet added
  uint32_t sfa_column = 0, sfb_column = 0;
  bool accumulate = true;              // enable-input-d
  int input_shift = 0;                 // scale-input-d
  std::array<uint32_t, 8> disabled{};  // disable-output-lane, a bit a lane, CTA after CTA
  bool exact = true;
};

constexpr uint32_t kMmaKBytes = 32;  // along K of a row of A or B, as every kind has it
// B beside a sparse A has twice as many: K counts the elements that are not stored, too.
inline uint32_t k_bytes_of_b(const MmaShape& shape) {
  return kMmaKBytes * shape.k / shape.stored_k();
}

// Bytes of shared memory that each CTA's part of A (not from tensor memory) or B occupies.
std::vector<ByteRange> footprint_of_a(const MmaOperation& op);
std::vector<ByteRange> footprint_of_b(const MmaOperation& op);

// Reads operands, scales and D, and writes D: when the instruction completes. A Fault (R14) when
// the copies of a scale factor in the four quarters of the lanes differ.
void execute(const MmaOperation& op);

}  // namespace ptxsim
