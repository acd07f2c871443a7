// Scopes of mbarriers in a cluster: an arrival with .cta releases to its own CTA, and a wait with
// .acquire.cta acquires from it. What a thread of another CTA has done is over then, and its writes
// need not be seen (PTX ISA 9.0, "mbarrier": ".scope", which is .cta where none is written).
#include <fmt/format.h>

#include <algorithm>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

const std::vector<uint32_t> kNothing(1, 0);  // which is not the same as all of `order`

SharedClock with_visible(const SharedClock& clock, const std::vector<uint32_t>& visible) {
  auto values = std::make_shared<ClockValues>(*clock);
  values->visible = visible.empty() ? kNothing : visible;
  return values;
}

}  // namespace

void Sanitizer::State::release_into(const Execution& x, int lane, BarrierObject& object,
                                    BarrierOrder order) {
  const bool is_remote = object.rank != x.cta.rank;
  if (is_remote && !object.has_remote_arrivals) {
    object.has_remote_arrivals = true;
    object.local = object.clocks;
  }
  if (is_remote && order == BarrierOrder::kAcquireReleaseCta) {
    narrow_use = x.insn->statement;
    SyncClock released;
    release(x, 1u << lane, released);
    join_into(object.clocks.arriving.values, with_visible(released.values, {}));
    object.clocks.arriving.last.reset();
    return;
  }
  release(x, 1u << lane, object.clocks.arriving, order);
  if (!is_remote && object.has_remote_arrivals)
    release(x, 1u << lane, object.local.arriving, order);
}

void Sanitizer::State::acquire_within_cta(const Execution& x, uint32_t lanes,
                                          BarrierObject& object) {
  const SharedClock& all = object.clocks.completed.values;
  if (!all) return;
  const SharedClock& local = object.local.completed.values;
  narrow_use = x.insn->statement;
  acquire(x, lanes,
          {with_visible(all, local ? visible_of(*local) : std::vector<uint32_t>()), nullptr});
}

bool Sanitizer::State::is_beyond_scope(const Access& access, const ShadowEntry& entry) const {
  const std::vector<uint32_t>& visible = access.who.clock->visible;
  if (visible.empty() || entry.kind == AccessKind::kRead) return false;
  if (!entry.is_async)
    return rank_of(entry.actor) != access.x.cta.rank &&
           !knows(visible, index_of(entry.actor, 0), entry.lanes, entry.epoch);
  const Record& earlier = records[entry.actor];
  return earlier.is_generic && rank_of(earlier.warp) != access.x.cta.rank &&
         !complete(visible, earlier, static_cast<int>(access.owner.rank));
}

bool Sanitizer::State::is_beyond_scope(const GlobalAccess& access, const GlobalEntry& entry) const {
  const std::vector<uint32_t>& visible = access.who.clock->visible;
  return !visible.empty() && entry.writes() && !entry.is_async && entry.cluster == cluster.index &&
         rank_of(entry.actor) != access.x.cta.rank &&
         !knows(visible, index_of(entry.actor, 0), entry.lanes, entry.epoch);
}

// Published kernels arrive at a leader's barrier without a scope, before it multiplies what they
// have stored; and what is written again goes where its writer is known to be done.
Severity Sanitizer::State::severity_beyond_scope(AccessKind kind, bool is_async_proxy) const {
  const auto& modifiers = cluster.machine.program().entry->statements[narrow_use].modifiers;
  const bool is_written = std::ranges::find(modifiers, "cta") != modifiers.end();
  return kind == AccessKind::kWrite || (is_async_proxy && !is_written) ? Severity::kWarning
                                                                       : Severity::kError;
}

Finding Sanitizer::State::beyond_scope(int rule, AccessKind kind, Severity severity,
                                       const std::string& place) const {
  return {rule, severity,
          fmt::format("{} {}, which a thread of another CTA of the cluster has written, behind an "
                      "mbarrier whose scope is the CTA: '{}' at {}",
                      verb(kind), place, text_of(narrow_use),
                      to_string(cluster.machine.place_of(narrow_use))),
          "the scope .cluster of the arrival, and of the wait",
          "mbarrier.arrive.release.cluster (without a scope it is .cta), and "
          "mbarrier.try_wait.acquire.cluster"};
}

}  // namespace ptxsim
