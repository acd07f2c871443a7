// Tensor maps in global memory (PTX ISA 9.0, "Parallel Synchronization and Communication
// Instructions: membar/fence", fence.proxy.tensormap): copies read them through a proxy of their
// own. The thread that writes one makes that visible with fence.proxy.tensormap::generic.release
// (or tensormap.cp_fenceproxy); in the CTA that uses it a thread executes .acquire for its address
// first.
#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {

void Sanitizer::tensor_maps_released(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  WarpClocks& clocks = s.warps[s.warp_of(x)];
  s.show(clocks, lanes, &ClockValues::tensor_maps, clocks.own_tensor_maps);
  ++clocks.epoch;
}

void Sanitizer::tensor_map_acquired(const Execution& x, int lane, uint64_t address) {
  State& s = *state_;
  const uint32_t warp = s.warp_of(x);
  WarpClocks& clocks = s.warps[warp];
  std::vector<TensorMapAcquire>& all = s.grid->acquired_maps[address];
  std::erase_if(all, [&](const TensorMapAcquire& earlier) {
    return earlier.cluster == s.cluster.index && earlier.warp == warp && earlier.lane == lane;
  });
  for (const LaneGroup& group : clocks.groups)
    if ((group.lanes >> lane & 1) != 0)
      all.push_back({s.cluster.index, x.cta.rank, warp, clocks.epoch, lane, group.clock,
                     clocks.own_tensor_maps[lane]});
  ++clocks.epoch;
}

bool Sanitizer::State::is_acquired(const GlobalAccess& access, const GlobalEntry& entry,
                                   uint64_t map) const {
  const auto found = grid->acquired_maps.find(map);
  if (found == grid->acquired_maps.end()) return false;
  return std::ranges::any_of(found->second, [&](const TensorMapAcquire& fence) {
    if (fence.cluster != cluster.index || fence.rank != access.x.cta.rank) return false;
    const bool is_before = access.who.is_lane(fence.warp, fence.lane) ||
                           ordered(access.who, fence.warp, 1u << fence.lane, fence.epoch);
    if (!is_before) return false;
    ThreadKnowledge who{fence.known.get(), static_cast<int>(fence.warp), fence.lane};
    who.own_tensor_maps = fence.own_tensor_maps;
    return seen_by_proxy(who, entry, &ClockValues::tensor_maps);
  });
}

}  // namespace ptxsim
