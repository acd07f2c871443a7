// What the statements of an entry say about its parameters: which bytes they load and as what,
// which of these are addresses of global memory and of what elements, and where tensor maps lie. A
// guess for a person to look over (case/draft.hpp): values are followed through the copies and sums
// of one entry, without regard to the order of its statements.
#pragma once

#include <cstdint>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "ptxsim/tensor_map.hpp"

namespace ptxsim {

// Bytes of a parameter that ld.param reads.
struct ParameterField {
  uint64_t offset = 0;         // in the parameter, bytes
  Type type = Type::kNone;     // as it is loaded, or as it is used where that says more
  bool is_pointer = false;     // to global memory
  Type element = Type::kNone;  // pointers: what is loaded or stored through it; kNone: nothing is
  bool is_read = false;        // pointers: something is loaded through it
  bool is_written = false;     // pointers: something is stored through it
  bool is_map = false;         // pointers: to tensor maps
};

struct TensorMapUse {
  uint64_t offset = 0;                         // in the parameter, bytes
  uint32_t rank = 0;                           // of the copies that use it; 0: none does
  bool is_written = false;                     // the tensor, by a store or a reduction
  TensorMapMode mode = TensorMapMode::kTiled;  // of the copies
};

struct ParameterUses {
  std::vector<ParameterField> fields;  // ascending, none overlaps another
  std::vector<TensorMapUse> maps;      // ascending
};

// One for each parameter of the entry.
std::vector<ParameterUses> parameter_uses(const Entry& entry);

}  // namespace ptxsim
