#include <vector>

#include "cuda/cutlass/instances.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {

std::span<const Strategy* const> strategies() {
  static const std::vector<const Strategy*> all = [] {
    std::vector<const Strategy*> list{&two_pass_strategy(),       &cached_strategy(),
                                      &graph_strategy(),          &streams_strategy(),
                                      &fused_epilogue_strategy(), &fused_sequential_strategy(),
                                      &fused_strategy(),          &fp8_strategy()};
    if (!gated::instances().empty()) list.push_back(&cutlass_strategy());
    return list;
  }();
  return all;
}

}  // namespace dualgemm::cuda
