// Read-modify-write operations on memory: what atom, red and red.async share.
#pragma once

#include <cstddef>

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

enum class AtomicOp : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };

// Replaces the element at `memory` by op(memory, b, c).
using UpdateElement = void (*)(std::byte* memory, const std::byte* b, const std::byte* c);
struct AtomicUpdate {
  UpdateElement shared = nullptr;  // nullptr: the operation does not exist for the type
  UpdateElement global = nullptr;  // differs for .f32: subnormals are flushed there
};
// `vector`: one element of .v2 .v4 .v8, for which 16-bit floats have min and max too.
AtomicUpdate atomic_update(AtomicOp op, Type type, bool vector);
AtomicOp take_atomic_op(Decode& d);
// Which of them red.async has, for which types.
void check_async_reduction(Decode& d, AtomicOp op, Type type);

}  // namespace ptxsim
