// What the files of tcgen05.mma share: what a statement says, and the collector buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "insn/tensor/tcgen05.hpp"
#include "machine/tensor_core/mma/operation.hpp"

namespace ptxsim {

enum class CollectorUse : uint8_t { kDiscard, kFill, kUse, kLastUse };

struct Tcgen05MmaDetail final : Detail {
  MmaKind kind = MmaKind::kF16;
  MmaVariant variant;
  uint32_t cta_group = 1;
  uint32_t scales = 0;
  uint32_t collector = 0;  // a buffer of Tcgen05State::fills
  CollectorUse use = CollectorUse::kDiscard;
  TmemOperand d, a_tmem, metadata, sfa, sfb;
  bool a_in_tmem = false;
  Slot a, b, instruction, input;
  bool input_negated = false;
  std::vector<Slot> disabled;
  Slot column_mask;  // .ws: the zero-column mask descriptor, if there is one
  int input_shift = 0;
};

// R15: the matrix of a use must be that of the last fill of the buffer; otherwise the instruction
// multiplies whatever the buffer holds.
void track_collector(Execution& x, int lane, const Tcgen05MmaDetail& detail,
                     const MmaOperation& op);

// Issues an MMA for each lane.
Outcome execute_tcgen05_mma(Execution& x, const Insn& insn);

}  // namespace ptxsim
