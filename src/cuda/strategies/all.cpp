#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {

std::span<const Strategy* const> strategies() {
  static const Strategy* const all[] = {&two_pass_strategy(),       &cached_strategy(),
                                        &graph_strategy(),          &streams_strategy(),
                                        &fused_epilogue_strategy(), &fused_sequential_strategy(),
                                        &fused_strategy(),          &fp8_strategy()};
  return all;
}

}  // namespace dualgemm::cuda
