#include "machine/memory/mbarrier.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "machine/execution.hpp"
#include "machine/findings.hpp"
#include "machine/scheduler/near_miss.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kObjectBytes = 8;
constexpr unsigned char kPattern = 0xb7;  // what the object's bytes in shared memory hold

[[noreturn]] void refuse(std::string message) { throw Fault(std::move(message)); }

void complete_phase_if_done(Cta& cta, uint32_t offset, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.tx_count != 0) return;
  release_waiters_of_last_phase(cta, offset, barrier);
  cta.cluster.observers.tell([&](Observer& o) { o.mbarrier_phase_completed(barrier); });
  barrier.pending = barrier.expected;
  ++barrier.phase;
  cta.cluster.changed();
}

void add_to_tx_count(Cta& cta, uint32_t offset, Mbarrier& barrier, int64_t bytes) {
  const int64_t sum = barrier.tx_count + bytes;
  if (sum > kMbarrierMax || sum < -kMbarrierMax)
    refuse(fmt::format("tx-count of {} would become {}; its range is -(2^20 - 1) .. 2^20 - 1 (R10)",
                       describe(cta, offset, barrier), sum));
  barrier.tx_count = sum;
}

}  // namespace

Mbarrier& mbarrier_at(Cta& cta, uint32_t offset) {
  if (offset % kObjectBytes != 0)
    refuse(fmt::format("mbarrier at 0x{:x}; the address must be a multiple of 8 (R10)", offset));
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end())
    refuse(
        fmt::format("no mbarrier is initialised at 0x{:x} of CTA rank {} (R10)", offset, cta.rank));
  return found->second;
}

bool is_unused(const Mbarrier& barrier) {
  return barrier.phase == 0 && barrier.pending == barrier.expected && barrier.tx_count == 0;
}

bool is_initialized_by(const Mbarrier& barrier, const Execution& x, int lane) {
  return barrier.init_warp == x.warp.index && barrier.init_lane == static_cast<uint32_t>(lane);
}

// Warns that an object was initialised and never used (Triton 3.6 writes such kernels, and they
// run).
void warn_of_unused(const Execution& x, int lane, std::string message, int init_statement) {
  add_finding(x, lane,
              {10, Severity::kWarning, std::move(message), "mbarrier.inval before it",
               "initialise only what is used, once", init_statement});
}

// "mbarrier.init": phase 0, expected and pending arrivals = count, tx-count 0. On a valid object it
// is undefined; on one that its own thread has initialised and that has not been used, it is known
// to work.
void mbarrier_init(Execution& x, int lane, Cta& cta, uint32_t offset, uint32_t count) {
  if (offset % kObjectBytes != 0)
    refuse(fmt::format("mbarrier at 0x{:x}; the address must be a multiple of 8 (R10)", offset));
  cta.shared.check_range(offset, kObjectBytes);
  if (count < 1 || count > kMbarrierMax)
    refuse(fmt::format("count {} of the mbarrier at 0x{:x}; must be 1 .. 2^20 - 1 (R10)", count,
                       offset));
  const auto next =
      cta.mbarriers.lower_bound(offset >= kObjectBytes ? offset - kObjectBytes + 1 : 0);
  if (next != cta.mbarriers.end() && next->first == offset && is_unused(next->second) &&
      is_initialized_by(next->second, x, lane)) {
    warn_of_unused(x, lane,
                   fmt::format("initialises the {} again, which was never used",
                               describe(cta, offset, next->second)),
                   next->second.init_statement);
    cta.mbarriers.erase(next);
  } else if (next != cta.mbarriers.end() && next->first < offset + kObjectBytes) {
    refuse(fmt::format("mbarrier.init on the valid {}; mbarrier.inval must come first (R10)",
                       describe(cta, next->first, next->second)));
  }
  Mbarrier& barrier = cta.mbarriers[offset];
  barrier.expected = count;
  barrier.pending = count;
  barrier.init_statement = static_cast<int>(x.insn->statement);
  barrier.init_warp = x.warp.index;
  barrier.init_lane = static_cast<uint32_t>(lane);
  std::memset(cta.shared.at(offset), kPattern, kObjectBytes);
  barrier.number = ++cta.cluster.last_mbarrier;
  x.tell([&](Observer& o) { o.mbarrier_initialized(x, lane, cta, offset, barrier); });
  cta.cluster.changed();
}

void forget_unused_mbarriers(const Execution& x, int lane, Cta& cta, uint32_t offset,
                             uint32_t bytes) {
  auto at = cta.mbarriers.lower_bound(offset >= kObjectBytes ? offset - kObjectBytes + 1 : 0);
  while (at != cta.mbarriers.end() && at->first < offset + bytes) {
    if (!is_unused(at->second)) return;
    warn_of_unused(x, lane,
                   fmt::format("copies over the {}, which was never used",
                               describe(cta, at->first, at->second)),
                   at->second.init_statement);
    at = cta.mbarriers.erase(at);
  }
}

void mbarrier_inval(Execution& x, int lane, Cta& cta, uint32_t offset) {
  Mbarrier& barrier = mbarrier_at(cta, offset);
  x.tell([&](Observer& o) { o.mbarrier_used(x, lane, cta, offset, barrier, false); });
  cta.shared.poison(offset, kObjectBytes);
  cta.mbarriers.erase(offset);
  cta.cluster.changed();
}

void mbarrier_arrive(Cta& cta, uint32_t offset, uint32_t count) {
  Mbarrier& barrier = mbarrier_at(cta, offset);
  if (count < 1 || count > kMbarrierMax)
    refuse(fmt::format("arrive count {} at {}; must be 1 .. 2^20 - 1 (R10)", count,
                       describe(cta, offset, barrier)));
  if (barrier.pending < count)
    refuse(fmt::format(
        "pending count of {} would fall below 0 by {} more; its phases take {} arrivals (R10)",
        describe(cta, offset, barrier), count, barrier.expected));
  barrier.pending -= count;
  complete_phase_if_done(cta, offset, barrier);
}

void mbarrier_expect_tx(Cta& cta, uint32_t offset, uint32_t bytes) {
  Mbarrier& barrier = mbarrier_at(cta, offset);
  add_to_tx_count(cta, offset, barrier, bytes);
  cta.cluster.observers.tell([&](Observer& o) { o.mbarrier_expects(barrier, bytes); });
  complete_phase_if_done(cta, offset, barrier);
}

void mbarrier_complete_tx(Cta& cta, uint32_t offset, uint32_t bytes) {
  Mbarrier& barrier = mbarrier_at(cta, offset);
  add_to_tx_count(cta, offset, barrier, -static_cast<int64_t>(bytes));
  cta.cluster.observers.tell([&](Observer& o) { o.mbarrier_received(barrier, bytes); });
  complete_phase_if_done(cta, offset, barrier);
}

// The phase that completed last has the parity opposite to the current one's: a fresh object counts
// as if a phase of parity 1 had completed.
bool mbarrier_parity_done(const Mbarrier& barrier, uint32_t parity) {
  return (barrier.phase & 1) != parity;
}

std::string describe(const Cta& cta, uint32_t offset, const Mbarrier& barrier) {
  const std::string rank = volume(cta.machine.launch().cluster) > 1
                               ? fmt::format(" of CTA rank {}", cta.rank)
                               : std::string();
  return fmt::format("mbarrier 0x{:x}{} (phase {}, {} of {} arrivals pending, tx-count {})", offset,
                     rank, barrier.phase, barrier.pending, barrier.expected, barrier.tx_count);
}

}  // namespace ptxsim
