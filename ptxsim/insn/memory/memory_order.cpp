#include "ptxsim/insn/memory/memory_order.hpp"

namespace ptxsim {

bool take_scope(Decode& d) {
  return d.modifiers().take_one_of({"cta", "cluster", "gpu", "sys"}) >= 0;
}

}  // namespace ptxsim
