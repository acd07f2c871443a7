// mbarrier objects (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
// mbarrier"). The state lives beside shared memory, keyed by the object's offset; its 8 bytes hold
// a private pattern, and ordinary accesses to them are reported.
#pragma once

#include <cstdint>
#include <string>

namespace ptxsim {

struct Cta;
struct Execution;

struct Mbarrier {
  uint32_t expected = 0;  // arrivals a phase
  int64_t pending = 0;    // arrivals missing in this phase
  int64_t tx_count = 0;   // bytes expected less bytes done
  uint64_t phase = 0;     // phases completed; its low bit is the parity of the current phase
  uint32_t number = 0;    // of the objects initialised in the cluster, from 1
  int init_statement = -1;
  uint32_t init_warp = 0, init_lane = 0;  // of its CTA: who initialised it
};

inline constexpr int64_t kMbarrierMax = (1 << 20) - 1;  // of counts and of |tx_count|

// The object at `offset` of `cta`; a Fault (R10) when nothing was initialised there or the offset
// is not 8-aligned.
Mbarrier& mbarrier_at(Cta& cta, uint32_t offset);
void mbarrier_init(Execution& x, int lane, Cta& cta, uint32_t offset, uint32_t count);
// Objects in this range that have not been used since their initialisation end, with a warning: a
// copy goes there.
void forget_unused_mbarriers(const Execution& x, int lane, Cta& cta, uint32_t offset,
                             uint32_t bytes);
void mbarrier_inval(Execution& x, int lane, Cta& cta, uint32_t offset);
// These three complete the phase when nothing is missing any more. Faults: underflow of pending, tx
// out of range.
void mbarrier_arrive(Cta& cta, uint32_t offset, uint32_t count);
void mbarrier_expect_tx(Cta& cta, uint32_t offset, uint32_t bytes);
void mbarrier_complete_tx(Cta& cta, uint32_t offset, uint32_t bytes);
// True when the phase with parity `parity` has completed.
bool mbarrier_parity_done(const Mbarrier& barrier, uint32_t parity);
std::string describe(const Cta& cta, uint32_t offset, const Mbarrier& barrier);

}  // namespace ptxsim
