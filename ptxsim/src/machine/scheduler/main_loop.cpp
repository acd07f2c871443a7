// The main loop: whose turn it is, when asynchronous operations complete, and what it means when
// nothing can go on.
#include "machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "machine/execution.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kTurn = 512;  // statements of a warp before the next one's turn
constexpr uint32_t kLongestRandomTurn = 64;
constexpr uint32_t kVainPolls =
    64;  // failed polls of each warp without any change that count as waiting

std::string lanes_text(uint32_t lanes) {
  return lanes == 0xffffffffu ? "all lanes" : fmt::format("lanes {:08x}", lanes);
}

// A wait by parity cannot see a phase that completed while another one completed behind it.
std::string missed_text(const WaitInfo& wait, const Mbarrier& barrier) {
  if (barrier.phase <= wait.phase) return "";
  return fmt::format(
      "; {} phase {}: it has completed, and the barrier went on to phase {}, of the same parity",
      wait.presumed ? "may have missed" : "missed", wait.phase, barrier.phase);
}

std::string wait_text(const Cluster& cluster, const WaitInfo& wait) {
  switch (wait.kind) {
    case WaitInfo::Kind::kMbarrier: {
      if (wait.cta_rank >= cluster.ctas.size()) return "an mbarrier";
      const Cta& cta = *cluster.ctas[wait.cta_rank];
      const auto found = cta.mbarriers.find(wait.where);
      if (found == cta.mbarriers.end())
        return fmt::format("mbarrier at 0x{:x}, which is not initialised", wait.where);
      return fmt::format("phase parity {} of {}{}", wait.parity,
                         describe(cta, wait.where, found->second),
                         missed_text(wait, found->second));
    }
    case WaitInfo::Kind::kNamedBarrier: {
      const NamedBarrier& barrier = cluster.ctas[wait.cta_rank]->barriers[wait.where];
      return fmt::format("named barrier {} (phase {}, {} of {} threads have arrived)", wait.where,
                         barrier.generation, barrier.arrived, barrier.expected);
    }
    case WaitInfo::Kind::kClusterBarrier:
      return fmt::format(
          "the cluster barrier (phase {}, {} threads have arrived, {} of the cluster's {} have not "
          "exited)",
          cluster.barrier.generation, cluster.barrier.arrived, cluster.live_threads,
          cluster.ctas.size() * cluster.ctas[0]->threads);
    case WaitInfo::Kind::kConverge:
      return "the other lanes of the warp";
    default:
      return wait.what;
  }
}

// What one lane waits for. Lanes that converge wait for others of their warp, whatever they waited
// for before.
WaitInfo wait_of(const Warp& warp, int lane) {
  WaitInfo wait = warp.wait[lane];
  if ((warp.parked >> lane & 1) != 0) wait = {WaitInfo::Kind::kConverge, 0, 0, 0, ""};
  return wait;
}

bool is_same(const WaitInfo& a, const WaitInfo& b) {
  return a.kind == b.kind && a.cta_rank == b.cta_rank && a.where == b.where &&
         a.parity == b.parity && a.what == b.what && a.phase == b.phase;
}

// One line for each group of lanes that waits at the same statement for the same thing.
std::string waits_text(const Machine& machine, const Cluster& cluster, const Warp& warp) {
  std::string text;
  for (uint32_t left = warp.live; left != 0;) {
    const int lane = std::countr_zero(left);
    const WaitInfo wait = wait_of(warp, lane);
    uint32_t group = 0;
    for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
      const int other = std::countr_zero(rest);
      if (warp.pc[other] == warp.pc[lane] && is_same(wait_of(warp, other), wait))
        group |= 1u << other;
    }
    left &= ~group;
    const uint32_t statement = machine.program().insns[warp.pc[lane]].statement;
    text +=
        fmt::format("\n  {}, {}: {}: '{}' waits for {}", machine.actor_of(warp, -1),
                    lanes_text(group), to_string(machine.place_of(statement)),
                    machine.program().entry->statements[statement].text, wait_text(cluster, wait));
  }
  return text;
}

}  // namespace

Place Machine::place_of(uint32_t statement) const { return ptxsim::place_of(*program_, statement); }

std::string Machine::actor_of(const Warp& warp, int lane) const {
  const Cta& cta = *warp.cta;
  std::string text = fmt::format("CTA ({},{},{})", cta.ctaid[0], cta.ctaid[1], cta.ctaid[2]);
  if (volume(launch_.cluster) > 1) text += fmt::format(" rank {}", cta.rank);
  text += fmt::format(", warp {}", warp.index);
  return lane >= 0 ? text + fmt::format(", lane {}", lane) : text;
}

void Machine::complete_one(Cluster& cluster) {
  try {
    cluster.async.complete_one(cluster.random);
  } catch (Fault& fault) {
    if (fault.issuer() >= 0) {
      fault.error().place = place_of(static_cast<uint32_t>(fault.issuer()));
      fault.error().message += fmt::format("; while the operation that '{}' issued completes",
                                           program_->entry->statements[fault.issuer()].text);
    }
    throw;
  }
}

// Polls (test_wait, nanosleep loops) that fail again and again while nothing changes count as
// waiting.
bool Machine::is_polling_in_vain(Cluster& cluster, uint32_t warps) {
  if (cluster.polled_version != cluster.version) {
    cluster.polled_version = cluster.version;
    cluster.vain_polls = 0;
  }
  return ++cluster.vain_polls > kVainPolls * warps;
}

bool Machine::run_cluster(Cluster& cluster) {
  const bool random = options_.schedule == Schedule::kRandom;
  if (random && !cluster.async.empty() && cluster.random() % 4 == 0) {
    complete_one(cluster);
    return true;
  }
  const uint32_t warps_of_cta = static_cast<uint32_t>(cluster.ctas[0]->warps.size());
  const uint32_t count = warps_of_cta * static_cast<uint32_t>(cluster.ctas.size());
  const uint32_t first =
      random ? static_cast<uint32_t>(cluster.random() % count) : cluster.next_warp;
  const uint32_t statements =
      random ? 1 + static_cast<uint32_t>(cluster.random() % kLongestRandomTurn) : kTurn;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = (first + i) % count;
    Warp& warp = *cluster.ctas[at / warps_of_cta]->warps[at % warps_of_cta];
    if (warp.live == 0) continue;
    const TurnResult result = run_warp(cluster, warp, statements);
    if (result == TurnResult::kNothing) continue;
    cluster.next_warp = (at + 1) % count;
    if (result == TurnResult::kRan || !is_polling_in_vain(cluster, count)) return true;
    break;
  }
  if (!cluster.async.empty()) {
    complete_one(cluster);
    return true;
  }
  return cluster.live_threads != 0 && wake_a_timeout(cluster);
}

// mbarrier.try_wait has a time limit: where nothing else can go on, one of the waits returns false.
// A warp whose wait already did so since the last change of anything is not woken again.
bool Machine::wake_a_timeout(Cluster& cluster) {
  for (auto& cta : cluster.ctas) {
    for (auto& warp : cta->warps) {
      for (uint32_t left = warp->blocked & warp->live; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (warp->wait[lane].kind != WaitInfo::Kind::kMbarrier ||
            warp->timed_out_at[lane] == cluster.version)
          continue;
        for (uint32_t others = left; others != 0; others &= others - 1) {
          const int other = std::countr_zero(others);
          if (warp->pc[other] != warp->pc[lane]) continue;
          warp->timed_out_at[other] = cluster.version;
          warp->ticket[other] = kTicketTimeout;
          warp->blocked_at[other] = 0;
        }
        return true;
      }
    }
  }
  return false;
}

// R13.
void Machine::report_deadlock() {
  Error error{
      ErrorKind::kDeadlock, "deadlock: no warp can go on and nothing is in flight (R13)", {}};
  if (!pending_clusters_.empty())
    error.message += fmt::format(
        "; {} clusters of the grid have not begun, as {} run at the same time (--resident)",
        pending_clusters_.size(), places_);
  for (const auto& cluster : resident_)
    for (const auto& cta : cluster->ctas)
      for (const auto& warp : cta->warps) {
        if (warp->live == 0) continue;
        if (error.place.ptx_line == 0)
          error.place = place_of(program_->insns[warp->pc[std::countr_zero(warp->live)]].statement);
        error.message += waits_text(*this, *cluster, *warp);
      }
  throw Fault(std::move(error));
}

}  // namespace ptxsim
