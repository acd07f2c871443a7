#include "insn/memory/memory_order.hpp"

namespace ptxsim {

std::optional<Scope> take_scope(Decode& d) {
  constexpr Scope kScopes[] = {Scope::kCta, Scope::kCluster, Scope::kGpu, Scope::kSys};
  const int which = d.modifiers().take_one_of({"cta", "cluster", "gpu", "sys"});
  if (which < 0) return std::nullopt;
  return kScopes[which];
}

}  // namespace ptxsim
