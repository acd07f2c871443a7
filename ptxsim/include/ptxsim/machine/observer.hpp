// What the interpreter tells the programs that watch it: the sanitizer, a commit log, a model of
// time. Observers look and take notes; nothing they do changes what the kernel computes.
//
// Events come in the order in which this run performs them. Each names who (the Execution: CTA,
// warp, lanes, statement), what (space, address, bytes, kind of operation) and what it waits for,
// so that a model of time can keep clocks of its own: a warp's next statement may start when
// `executed` says that the last one did not block; an operation in flight begins with `issued`, and
// the warp that `passed`, `waited_for` or `completed` names may go on no earlier than the arrivals,
// or the operation, that the event names.
//
// Without an observer an event costs one comparison. Events of every statement and of every access
// to global memory are told only to observers that ask for them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct Cluster;
struct Cta;
struct Execution;
struct Insn;
struct Mbarrier;
struct MemoryAt;

enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };
enum class Scope : uint8_t {
  kNone,
  kCta,
  kCluster,
  kGpu,
  kSys
};  // of strong operations; weak: none
// Relaxed: execution order only. Acquire and release of an mbarrier reach the cluster, or the CTA
// alone, as they do without a scope.
enum class BarrierOrder : uint8_t { kAcquireRelease, kRelaxed, kAcquireReleaseCta };

enum class AsyncKind : uint8_t {
  kTmaLoad,    // bulk copy into shared memory: completes on an mbarrier
  kTmaStore,   // bulk copy out of shared memory: bulk groups of its thread
  kCpAsync,    // cp.async: groups of its thread (generic proxy)
  kTcgen05,    // mma, cp, commit: in order for one thread, completes by commit
  kTcgen05Ld,  // per warp, completes by wait::ld
  kTcgen05St,  // per warp, completes by wait::st
  kWgmma,      // per warpgroup, completes by wait_group
  kClc,        // clusterlaunchcontrol: completes on an mbarrier
};

// An operation in flight, numbered from 1 in the order of issue within its cluster; 0: none.
struct AsyncOp {
  uint32_t number = 0;
  explicit operator bool() const { return number != 0; }
};

// Where the lanes of a warp access their CTA's shared memory.
struct SharedOffsets {
  std::array<uint32_t, kWarpSize> of_lane;  // a lane without an access has that of one with
  uint32_t least, most;
  uint32_t operator[](int lane) const { return of_lane[static_cast<size_t>(lane)]; }
};

// One for each cluster: made when the cluster starts, destroyed when it has ended. `lanes` is a
// mask of the executing warp; `owner` the CTA whose memory it is, which may be another one of the
// cluster.
class Observer {
 public:
  virtual ~Observer() = default;

  // Asked once.
  virtual bool wants_statements() const { return false; }
  virtual bool wants_global_accesses() const { return false; }

  // The lanes of x.mask have executed a statement, or tried to: then x.warp.wait says what each of
  // them waits for.
  virtual void executed(const Execution&, const Insn&, bool /*blocked*/) {}
  virtual void threads_exited(const Execution&, uint32_t /*lanes*/) {}
  virtual void cta_exited(Cta&) {}  // its last thread has
  virtual void cluster_ended() {}   // all threads have exited, nothing is in flight

  // Memory. Ordinary accesses of one lane (generic proxy), before they are performed.
  virtual void shared_access(const Execution&, int /*lane*/, Cta& /*owner*/, uint32_t /*offset*/,
                             uint32_t /*bytes*/, AccessKind) {}
  // In place of shared_access for lanes that read their CTA's own memory.
  virtual void shared_reads(const Execution& x, uint32_t lanes, Cta& owner,
                            const SharedOffsets& offsets, uint32_t bytes) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      shared_access(x, lane, owner, offsets[lane], bytes, AccessKind::kRead);
    }
  }
  // In place of shared_access for a store whose `bytes` values are known before it is performed.
  virtual void shared_store(const Execution& x, int lane, Cta& owner, uint32_t offset,
                            uint32_t bytes, const std::byte* /*values*/) {
    shared_access(x, lane, owner, offset, bytes, AccessKind::kWrite);
  }
  // In place of shared_store for lanes that write their CTA's own memory. values: `bytes` of each
  // lane of the warp, one lane after the other.
  virtual void shared_stores(const Execution& x, uint32_t lanes, Cta& owner,
                             const SharedOffsets& offsets, uint32_t bytes,
                             const std::byte* values) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      shared_store(x, lane, owner, offsets[lane], bytes,
                   values + bytes * static_cast<size_t>(lane));
    }
  }
  // kAtomic: read and written. MemoryAt says how strong it is.
  virtual void global_access(const Execution&, int /*lane*/, const MemoryAt&, uint32_t /*bytes*/,
                             AccessKind) {}
  // In place of global_access for lanes that read one buffer. addresses: by lane; `at` is as for
  // global_access, but for the address.
  virtual void global_reads(const Execution& x, uint32_t lanes, const uint64_t* addresses,
                            const MemoryAt& at, uint32_t bytes);
  // Strong accesses besides, with the scope that MemoryAt has: what they order. `updates`: the
  // write of an atomic.
  virtual void strong_write(const Execution&, int /*lane*/, const MemoryAt&, bool /*releases*/,
                            bool /*updates*/) {}
  virtual void strong_read(const Execution&, int /*lane*/, const MemoryAt&, bool /*acquires*/) {}

  // Fences, and statements with .sync, which hold the lanes of a warp together.
  virtual void fence(const Execution&, Scope, bool /*releases*/, bool /*acquires*/) {}
  virtual void fence_proxy_async(const Execution&, uint32_t /*lanes*/, bool /*of_shared*/,
                                 bool /*of_global*/) {}
  // fence.proxy.tensormap::generic: .release, and .acquire of the tensor map at a generic address.
  virtual void tensor_maps_released(const Execution&, uint32_t /*lanes*/) {}
  virtual void tensor_map_acquired(const Execution&, int /*lane*/, uint64_t /*address*/) {}
  virtual void fence_mbarrier_init(const Execution&, uint32_t /*lanes*/) {}
  virtual void fence_tcgen05(const Execution&, uint32_t /*lanes*/, bool /*after_thread_sync*/) {}
  virtual void fence_wgmma(const Execution&, uint32_t /*lanes*/) {}
  // An instruction with a member mask (shfl.sync, vote.sync ...) that these lanes executed
  // together.
  virtual void lanes_met(const Execution&, uint32_t /*lanes*/) {}
  virtual void lanes_synchronized(const Execution&, uint32_t /*lanes*/) {}
  // griddepcontrol.wait and .launch_dependents.
  virtual void waited_for_previous_grid(const Execution&, uint32_t /*lanes*/) {}
  virtual void let_next_grid_start(const Execution&, uint32_t /*lanes*/) {}

  // bar and barrier{.cta}: number 0 to 15 of its CTA.
  virtual void barrier_arrived(const Execution&, uint32_t /*lanes*/, uint32_t /*number*/) {}
  virtual void barrier_completed(Cta&, uint32_t /*number*/) {}
  virtual void barrier_passed(const Execution&, uint32_t /*lanes*/, uint32_t /*number*/) {}
  virtual void cluster_barrier_arrived(const Execution&, uint32_t /*lanes*/, BarrierOrder) {}
  virtual void cluster_barrier_completed(Cluster&) {}
  virtual void cluster_barrier_passed(const Execution&, uint32_t /*lanes*/) {}

  // mbarriers, by Mbarrier::number.
  // Told for each lane of a statement that initialises the same object.
  virtual void mbarrier_initialized(const Execution&, int /*lane*/, Cta& /*owner*/,
                                    uint32_t /*offset*/, const Mbarrier&) {}
  // Any use, before what it does; `from_elsewhere`: by an operation that the statement issues, or
  // by another CTA.
  virtual void mbarrier_used(const Execution&, int /*lane*/, Cta& /*owner*/, uint32_t /*offset*/,
                             const Mbarrier&, bool /*from_elsewhere*/) {}
  virtual void mbarrier_arrived(const Execution&, int /*lane*/, const Mbarrier&, BarrierOrder) {}
  virtual void mbarrier_expects(const Mbarrier&, uint32_t /*bytes*/) {}
  virtual void mbarrier_received(const Mbarrier&, uint32_t /*bytes*/) {}
  virtual void mbarrier_phase_completed(const Mbarrier&) {
  }  // Mbarrier::phase is still the number of this phase
  virtual void mbarrier_passed(const Execution&, uint32_t /*lanes*/, const Mbarrier&,
                               BarrierOrder) {}

  // Asynchronous operations: issue, then the accesses, told at issue although they happen by
  // `completed`.
  virtual void issued(const Execution&, int /*lane*/, AsyncOp, AsyncKind) {}
  virtual void async_shared(AsyncOp, const Execution&, Cta& /*owner*/, uint32_t /*offset*/,
                            uint32_t /*bytes*/, AccessKind) {}
  // In place of async_shared for cp.async: the values as they are when it is issued; null: unknown.
  virtual void async_shared_store(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                                  uint32_t bytes, const std::byte* /*values*/) {
    async_shared(op, x, owner, offset, bytes, AccessKind::kWrite);
  }
  virtual void async_global(AsyncOp, const Execution&, uint64_t /*bytes*/, AccessKind) {}
  // The same, where it lies: only to those that ask for accesses to global memory. kAtomic: a
  // reduction.
  virtual void async_global_range(AsyncOp, const Execution&, uint64_t /*address*/,
                                  uint64_t /*bytes*/, AccessKind) {}
  // The operation reads its tensor map at this generic address; told to the same.
  virtual void tensor_map_used(AsyncOp, const Execution&, uint64_t /*address*/) {}
  // Cells [first_lane, +lanes) x [first_column, +columns) of tensor memory.
  virtual void async_tmem(AsyncOp, const Execution&, Cta& /*owner*/, uint32_t /*first_lane*/,
                          uint32_t /*lanes*/, uint32_t /*first_column*/, uint32_t /*columns*/,
                          AccessKind) {}
  // commit_group of cp.async, bulk copies and wgmma; tcgen05.commit is an operation (`issued`).
  virtual void group_committed(const Execution&, uint32_t /*lanes*/, AsyncKind) {}
  // A part of it has completed: a multicast has one for each destination, a bulk store one when its
  // source has been read and one when its destination has been written.
  virtual void completed(AsyncOp) {}
  // The current phase of this barrier completes no earlier than the operation, with all before it
  // of the same issuer when `and_before`. `destination_rank`: only its writes into that CTA, as
  // each destination of a multicast has a barrier of its own; -1: all.
  virtual void arrives_at(AsyncOp, bool /*and_before*/, const Mbarrier&, int /*destination_rank*/) {
  }
  // wait_group, wait::ld, wait::st: these lanes know that the operation and all before it of the
  // same issuer are complete; for bulk stores with `only_reads` that their sources have been read.
  virtual void waited_for(const Execution&, uint32_t /*lanes*/, AsyncOp, bool /*only_reads*/) {}

  // The executing warp allocated or freed columns of tensor memory; told for each CTA of a pair.
  virtual void tmem_allocated(const Execution&, Cta&, uint32_t /*first_column*/,
                              uint32_t /*columns*/) {}
  // The executing warp has come to an allocation that a pair of CTAs makes together.
  virtual void tmem_allocated_with_peer(const Execution&) {}
  virtual void tmem_freed(const Execution&, int /*lane*/, Cta&, uint32_t /*first_column*/,
                          uint32_t /*columns*/) {}
};

// Called when a cluster has its CTAs and warps, before the first statement.
using MakeObserver = std::function<std::unique_ptr<Observer>(Cluster&)>;

// Those of one cluster.
class Observers {
 public:
  void add(std::unique_ptr<Observer> observer) {
    if (observer->wants_statements()) of_statements_.push_back(observer.get());
    any_of_statements_ = !of_statements_.empty();
    if (observer->wants_global_accesses()) of_global_accesses_.push_back(observer.get());
    all_.push_back(std::move(observer));
  }
  bool any() const { return !all_.empty(); }
  bool any_of_statements() const { return any_of_statements_; }
  bool any_of_global_accesses() const { return !of_global_accesses_.empty(); }
  // Inlined, so that an event is put together only where somebody hears it.
  template <class Event>
  [[gnu::always_inline]] void tell(Event&& event) const {
    for (const auto& observer : all_) event(*observer);
  }
  template <class Event>
  void tell_of_statement(Event&& event) const {
    for (Observer* observer : of_statements_) event(*observer);
  }
  template <class Event>
  [[gnu::always_inline]] void tell_of_global_access(Event&& event) const {
    for (Observer* observer : of_global_accesses_) event(*observer);
  }

 private:
  std::vector<std::unique_ptr<Observer>> all_;
  std::vector<Observer*> of_statements_, of_global_accesses_;
  bool any_of_statements_ = false;  // asked for each statement
};

}  // namespace ptxsim
