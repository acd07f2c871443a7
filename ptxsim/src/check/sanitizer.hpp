// The sanitizer: happens-before with vector clocks, over threads, proxies and asynchronous
// operations; rules R1..R22 of docs/rules.md. One for each cluster, an Observer of it: it
// only looks and reports. What concerns global memory is shared by those of a launch (grid.hpp).
//
// Who knows what:
//  - each thread has a clock: for every other thread the epoch up to which its accesses happened
//    before, and the same for the async proxy (raised by fence.proxy.async);
//  - an asynchronous operation is ordered after what its issuer knew when it issued it; that it is
//    complete is known to who waited on the mbarrier phase that it completed, or on its group.
#pragma once

#include <cstdint>
#include <memory>

#include "ptxsim/machine/observer.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim {

class Machine;
struct GridTrail;
struct Program;

namespace check {
class Grid;
}
std::shared_ptr<check::Grid> share_grid(Machine& machine);  // for the clusters of one launch
// When they are over, and with them the machine.
std::shared_ptr<GridTrail> trail_of(const check::Grid& grid, const Program& program);

class Sanitizer final : public Observer {
 public:
  Sanitizer(Cluster& cluster, Reports& reports, bool strict, std::shared_ptr<check::Grid> grid);
  ~Sanitizer() override;
  bool wants_global_accesses() const override;

  bool wants_statements() const override;
  void executed(const Execution& x, const Insn& insn, bool blocked) override;

  void shared_access(const Execution& x, int lane, Cta& owner, uint32_t offset, uint32_t bytes,
                     AccessKind kind) override;
  void shared_reads(const Execution& x, uint32_t lanes, Cta& owner, const SharedOffsets& offsets,
                    uint32_t bytes) override;
  void shared_stores(const Execution& x, uint32_t lanes, Cta& owner, const SharedOffsets& offsets,
                     uint32_t bytes, const std::byte* values) override;
  void shared_store(const Execution& x, int lane, Cta& owner, uint32_t offset, uint32_t bytes,
                    const std::byte* values) override;
  void global_access(const Execution& x, int lane, const MemoryAt& at, uint32_t bytes,
                     AccessKind kind) override;
  void global_reads(const Execution& x, uint32_t lanes, const uint64_t* addresses,
                    const MemoryAt& at, uint32_t bytes) override;
  void strong_write(const Execution& x, int lane, const MemoryAt& at, bool releases,
                    bool updates) override;
  void strong_read(const Execution& x, int lane, const MemoryAt& at, bool acquires) override;

  void fence(const Execution& x, Scope scope, bool releases, bool acquires) override;
  void fence_proxy_async(const Execution& x, uint32_t lanes, bool of_shared,
                         bool of_global) override;
  void tensor_maps_released(const Execution& x, uint32_t lanes) override;
  void tensor_map_acquired(const Execution& x, int lane, uint64_t address) override;
  void waited_for_previous_grid(const Execution& x, uint32_t lanes) override;
  void let_next_grid_start(const Execution& x, uint32_t lanes) override;
  void fence_mbarrier_init(const Execution& x, uint32_t lanes) override;
  void fence_tcgen05(const Execution& x, uint32_t lanes, bool after_thread_sync) override;
  void lanes_met(const Execution& x, uint32_t lanes) override;
  void lanes_synchronized(const Execution& x, uint32_t lanes) override;

  // An arrival releases into the barrier's clock, who passes acquires from it.
  void barrier_arrived(const Execution& x, uint32_t lanes, uint32_t number) override;
  void barrier_completed(Cta& cta, uint32_t number) override;
  void barrier_passed(const Execution& x, uint32_t lanes, uint32_t number) override;
  void cluster_barrier_arrived(const Execution& x, uint32_t lanes, BarrierOrder order) override;
  void cluster_barrier_completed(Cluster& cluster) override;
  void cluster_barrier_passed(const Execution& x, uint32_t lanes) override;

  void mbarrier_initialized(const Execution& x, int lane, Cta& owner, uint32_t offset,
                            const Mbarrier& barrier) override;
  void mbarrier_used(const Execution& x, int lane, Cta& owner, uint32_t offset,
                     const Mbarrier& barrier, bool by_async_or_remote) override;
  void mbarrier_arrived(const Execution& x, int lane, const Mbarrier& barrier,
                        BarrierOrder order) override;
  void mbarrier_phase_completed(const Mbarrier& barrier) override;
  void mbarrier_passed(const Execution& x, uint32_t lanes, const Mbarrier& barrier,
                       BarrierOrder order) override;

  // Operations of one queue (one issuing thread, warp or warpgroup, and kind) complete in order.
  void issued(const Execution& x, int lane, AsyncOp op, AsyncKind kind) override;
  void async_shared(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset, uint32_t bytes,
                    AccessKind kind) override;
  void async_shared_store(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                          uint32_t bytes, const std::byte* values) override;
  void async_global_range(AsyncOp op, const Execution& x, uint64_t address, uint64_t bytes,
                          AccessKind kind) override;
  void tensor_map_used(AsyncOp op, const Execution& x, uint64_t address) override;
  void async_tmem(AsyncOp op, const Execution& x, Cta& owner, uint32_t first_lane, uint32_t lanes,
                  uint32_t first_column, uint32_t columns, AccessKind kind) override;
  void arrives_at(AsyncOp op, bool and_before, const Mbarrier& barrier,
                  int destination_rank) override;
  void waited_for(const Execution& x, uint32_t lanes, AsyncOp op, bool only_reads) override;

  // Users of the columns must be ordered after the allocation (R5, R6, R7), and nothing may still
  // use them when they are freed (R9), nor may the other CTA of a pair have still to allocate them.
  void tmem_allocated(const Execution& x, Cta& owner, uint32_t first_column,
                      uint32_t columns) override;
  void tmem_allocated_with_peer(const Execution& x) override;
  void tmem_freed(const Execution& x, int lane, Cta& owner, uint32_t first_column,
                  uint32_t columns) override;

  void threads_exited(const Execution& x, uint32_t lanes) override;
  void cta_exited(Cta& cta) override;  // leaks, operations that still use its memory

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ptxsim
