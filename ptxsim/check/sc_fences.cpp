// fence.sc and membar: all threads of a CTA fence what they have written and meet at a barrier, and
// one of them sets a flag; one of the readers polls, and they meet and fence (`__threadfence();
// __syncthreads();` and a volatile flag). No thread has both the fence and the flag, as a release
// pattern wants it, but the order of all fence.sc makes up for it: that of the writer comes first,
// or the flag would have been read before it was set. The sanitizer follows which threads fenced
// before the flag was set and after it was read, not whether barriers lie between: a warning.
#include <fmt/format.h>

#include <algorithm>

#include "ptxsim/check/state.hpp"

namespace ptxsim {
namespace {

uint64_t key_of(uint32_t cluster, uint32_t within) { return uint64_t{cluster} << 32 | within; }

bool is_sc_fence(const Statement& statement) {
  return statement.root == "membar" ||
         std::ranges::find(statement.modifiers, "sc") != statement.modifiers.end();
}

}  // namespace

void Sanitizer::State::note_sc_fence(const Execution& x, Scope scope) {
  if (scope < Scope::kGpu || !is_sc_fence(x.program().entry->statements[x.insn->statement])) return;
  const uint32_t warp = warp_of(x), number = ++grid->sc_fences.count;
  CtaShadow& cta = ctas[x.cta.rank];
  x.for_lanes([&](int lane) {
    const uint32_t thread = index_of(warp, lane);
    grid->sc_fences.by_thread[key_of(cluster.index, thread)].push_back({warps[warp].epoch, number});
    if (!cta.flags_read.empty()) cta.flags_at_fence[thread] = cta.flags_read;
  });
}

void Sanitizer::State::note_flag_read(const Execution& x, const Releases& flag) {
  uint32_t& fences = ctas[x.cta.rank].flags_read[key_of(flag.cluster, flag.rank)];
  fences = std::max(fences, flag.sc_fences);
}

bool Sanitizer::State::is_behind_sc_fences(const GlobalAccess& access,
                                           const GlobalEntry& entry) const {
  if (access.record != nullptr || entry.is_async) return false;
  const auto& fenced = ctas[access.x.cta.rank].flags_at_fence;
  const auto flags = fenced.find(index_of(access.warp, access.lane));
  if (flags == fenced.end()) return false;
  const auto flag = flags->second.find(key_of(entry.cluster, rank_of(entry.actor)));
  if (flag == flags->second.end()) return false;
  for (uint32_t left = entry.lanes; left != 0; left &= left - 1) {
    const auto theirs = grid->sc_fences.by_thread.find(
        key_of(entry.cluster, index_of(entry.actor, std::countr_zero(left))));
    if (theirs == grid->sc_fences.by_thread.end()) return false;
    const auto after = std::ranges::find_if(
        theirs->second, [&](const ScFences::One& fence) { return fence.epoch >= entry.epoch; });
    if (after == theirs->second.end() || after->number > flag->second) return false;
  }
  return true;
}

}  // namespace ptxsim
