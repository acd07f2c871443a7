// The sanitizer: happens-before with vector clocks, over threads, proxies and asynchronous
// operations; rules R1..R16 of docs/ptxsim_rules.md. One for each cluster. Instruction handlers
// tell it what they do; it only looks and reports.
//
// Who knows what:
//  - each thread has a clock: for every other thread the epoch up to which its accesses happened
//    before, and the same for the async proxy (raised by fence.proxy.async);
//  - an asynchronous operation is ordered after what its issuer knew when it issued it; that it is
//    complete is known to who waited on the mbarrier phase that it completed, or on its group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/check/clock.hpp"
#include "ptxsim/check/report.hpp"

namespace ptxsim {

struct Cluster;
struct Cta;
struct Execution;
struct Mbarrier;

enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };
enum class BarrierOrder : uint8_t { kAcquireRelease, kRelaxed };  // relaxed: execution order only

enum class AsyncKind : uint8_t {
  kTmaLoad,    // bulk copy into shared memory: completes on an mbarrier
  kTmaStore,   // bulk copy out of shared memory: bulk groups of its thread
  kCpAsync,    // cp.async: groups of its thread (generic proxy)
  kTcgen05,    // mma, cp, shift: in order for one thread, completes by commit
  kTcgen05Ld,  // per warp, completes by wait::ld
  kTcgen05St,  // per warp, completes by wait::st
  kWgmma,      // per warpgroup, completes by wait_group
  kClc,        // clusterlaunchcontrol: completes on an mbarrier
};

// An operation in flight. Operations of one queue (one issuing thread and kind) are numbered
// upwards.
struct AsyncOp {
  uint32_t queue = 0;  // clock index
  uint32_t sequence = 0;
  uint32_t record = 0;  // index of the sanitizer's own record
};

class Sanitizer {
 public:
  Sanitizer(Cluster& cluster, Reports& reports, bool strict);
  ~Sanitizer();

  // Ordinary (generic proxy) access of one lane to shared memory, own or of another CTA of the
  // cluster.
  void shared_access(const Execution& x, int lane, Cta& owner, uint32_t offset, uint32_t bytes,
                     AccessKind kind);

  // Barriers of threads. `lanes` is a mask. An arrival releases into the barrier's clock, a wait
  // acquires from it.
  void release(const Execution& x, uint32_t lanes, SyncClock& into,
               BarrierOrder order = BarrierOrder::kAcquireRelease);
  void acquire(const Execution& x, uint32_t lanes, const SyncClock& from,
               BarrierOrder order = BarrierOrder::kAcquireRelease);
  void synchronize_lanes(const Execution& x,
                         uint32_t lanes);  // bar.warp.sync and other .sync of these lanes
  void fence_proxy_async(const Execution& x, uint32_t lanes);
  void fence_mbarrier_init(const Execution& x, uint32_t lanes);
  void fence_tcgen05(const Execution& x, uint32_t lanes, bool after_thread_sync);

  // mbarriers. `lane` < 0: the arrival of asynchronous operations, see publish().
  void mbarrier_initialized(const Execution& x, int lane, Cta& owner, uint32_t offset,
                            Mbarrier& barrier);
  void mbarrier_used(const Execution& x, int lane, Cta& owner, uint32_t offset, Mbarrier& barrier,
                     bool by_async_or_remote);
  void mbarrier_phase_completed(Mbarrier& barrier);  // called before `arriving` becomes `completed`

  // Asynchronous operations, in this order: issue, its accesses, then how its completion becomes
  // known.
  AsyncOp issue(const Execution& x, int lane, AsyncKind kind);
  void async_shared(const AsyncOp& op, const Execution& x, Cta& owner, uint32_t offset,
                    uint32_t bytes, AccessKind kind);
  // Cells [first_lane, +lanes) x [first_column, +columns) of tensor memory.
  void async_tmem(const AsyncOp& op, const Execution& x, Cta& owner, uint32_t first_lane,
                  uint32_t lanes, uint32_t first_column, uint32_t columns, AccessKind kind);
  // `op` (with everything before it in its queue when `and_before`) is complete when the current
  // phase of `barrier` is. `destination_rank`: only its writes into that CTA are, as each
  // destination of a multicast has a barrier; -1: all.
  void publish(const AsyncOp& op, bool and_before, Mbarrier& barrier, int destination_rank = -1);
  // These lanes know that `op` and everything before it in its queue is complete (wait_group,
  // wait::ld). For bulk stores `only_reads`: their sources have been read, their writes may still
  // be under way.
  void learn(const Execution& x, uint32_t lanes, const AsyncOp& op, bool only_reads = false);
  // tcgen05.alloc of these columns by the executing warp: users must be ordered after it (R5, R6,
  // R7).
  void tmem_allocated(const Execution& x, Cta& owner, uint32_t first_column, uint32_t columns);
  // tcgen05.dealloc of these columns by the lane's warp: nothing may still use them (R9).
  void tmem_freed(const Execution& x, int lane, Cta& owner, uint32_t first_column,
                  uint32_t columns);

  void thread_exits(const Execution& x, uint32_t lanes);
  void cta_exits(
      Cta& cta);  // the last thread has gone: leaks, operations that still use its memory

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ptxsim
