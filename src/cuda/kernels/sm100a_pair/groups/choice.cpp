// How long groups of experts should take on pairs of CTAs.
#include <algorithm>

#include "cuda/kernels/blackwell/group_model.hpp"
#include "cuda/kernels/blackwell/stream_model.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a_pair/groups/launch.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

double modelled_clocks(const Problem& problem, int64_t pairs) {
  const int64_t at_once = std::max(pairs, int64_t{1});
  return blackwell::clocks_of_groups(
      problem, {.tiles_of_expert = blackwell::usual_group_tiles(problem, kTileM),
                .tile_n = kTileN,
                .at_once = at_once,
                .stage = blackwell::stage_clocks({kPairCtas, kTileN, true}, at_once * kPairCtas),
                .between = blackwell::kClocksBetween,
                .least = blackwell::kClocksEpilogue,
                .around = 13'400});
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
