// Loads into the shared memory of one or more CTAs, and stores out of it: routing, poison,
// completion.
#include <fmt/format.h>

#include "insn/async/cp.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

Cta& cta_of_rank(const Execution& x, uint32_t rank, const char* what, int lane) {
  if (rank >= x.cluster.ctas.size())
    x.fault(fmt::format("{} names CTA rank {}; the cluster has {} CTAs (R11)", what, rank,
                        x.cluster.ctas.size()),
            lane);
  return *x.cluster.ctas[rank];
}

// "cp.async.bulk.tensor", .cta_group: the mbarrier is in the CTA of the destination, or with
// .cta_group::2 in it or its peer.
void check_barrier_rank(const Execution& x, uint32_t barrier, uint32_t destination, bool pair,
                        int lane) {
  const bool legal = pair ? (barrier | 1) == (destination | 1) : barrier == destination;
  if (!legal)
    x.fault(fmt::format("the mbarrier is in CTA rank {}, the destination in rank {}; {}", barrier,
                        destination,
                        pair ? "with .cta_group::2 they must belong to one pair (R10)"
                             : "without .cta_group::2 it must be the same CTA (R10)"),
            lane);
}

void check_target(const Execution& x, const LoadTarget& target, uint32_t shared_bytes, int lane) {
  for (const Cta* cta : {target.cta, target.barrier_cta})
    if (cta->exited)
      x.fault(fmt::format("a bulk copy to CTA rank {}, which has exited (R11)", cta->rank), lane);
  target.cta->shared.check_range(target.offset, shared_bytes);
  forget_unused_mbarriers(x, lane, *target.cta, target.offset, shared_bytes);
  refuse_live_mbarrier(x, *target.cta, target.offset, shared_bytes, lane);
  mbarrier_at(*target.barrier_cta, target.barrier);
}

void complete_load(const LoadTarget& target, const Load& load, const AsyncOp& op) {
  if (target.cta->exited)
    throw Fault(fmt::format("CTA rank {} has exited before a bulk copy to it is complete (R11)",
                            target.cta->rank));
  load.write(*target.cta, target.offset);
  Mbarrier& barrier = mbarrier_at(*target.barrier_cta, target.barrier);
  Cluster& cluster = target.cta->cluster;
  cluster.observers.tell(
      [&](Observer& o) { o.arrives_at(op, false, barrier, static_cast<int>(target.cta->rank)); });
  mbarrier_complete_tx(*target.barrier_cta, target.barrier, load.counted_bytes);
  cluster.changed();
}

void tell_of_global_part(const Execution& x, AsyncOp op, const GlobalPart& part, AccessKind kind) {
  x.cluster.observers.tell_of_global_access([&](Observer& o) {
    if (part.tensor_map != 0) o.tensor_map_used(op, x, part.tensor_map);
    for (const GlobalRange& range : part.ranges)
      o.async_global_range(op, x, range.address, range.bytes, kind);
  });
}

AsyncOp issue_load(Execution& x, int lane, const std::vector<LoadTarget>& targets,
                   const Load& load) {
  if (!x.is_observed()) return {};
  const AsyncOp op = x.issue(lane, AsyncKind::kTmaLoad);
  x.tell([&](Observer& o) {
    if (load.source != nullptr)
      o.async_shared(op, x, *load.source->cta, load.source->offset, load.shared_bytes,
                     AccessKind::kRead);
    else
      o.async_global(op, x, load.counted_bytes, AccessKind::kRead);
    for (const LoadTarget& target : targets) {
      o.async_shared(op, x, *target.cta, target.offset, load.shared_bytes, load.access);
      o.mbarrier_used(x, lane, *target.barrier_cta, target.barrier,
                      mbarrier_at(*target.barrier_cta, target.barrier), true);
    }
  });
  tell_of_global_part(x, op, load.global, AccessKind::kRead);
  return op;
}

}  // namespace

std::vector<LoadTarget> route_load(const Execution& x, int lane, const LoadRoute& route,
                                   uint32_t shared_bytes, uint32_t alignment) {
  const SharedAt destination = locate(x, route.destination, lane, shared_bytes, alignment);
  const SharedAt barrier = locate(x, route.barrier, lane, 8, 8);
  std::vector<LoadTarget> targets;
  if (!route.multicast.present()) {
    check_barrier_rank(x, barrier.cta->rank, destination.cta->rank, route.pair, lane);
    targets.push_back({destination.cta, destination.offset, barrier.cta, barrier.offset});
  } else {
    const uint16_t mask = x.source<uint16_t>(route.multicast)[lane];
    if (mask == 0) x.fault("multicast to no CTA: its mask is 0 (R11)", lane);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const uint32_t rank = static_cast<uint32_t>(std::countr_zero(left));
      // With .cta_group::2 the signal goes to the member of the destination's pair that has the
      // parity of the mbarrier's CTA.
      const uint32_t barrier_rank = route.pair ? (rank & ~1u) | (barrier.cta->rank & 1) : rank;
      targets.push_back({&cta_of_rank(x, rank, "the multicast mask", lane), destination.offset,
                         &cta_of_rank(x, barrier_rank, "the multicast mask", lane),
                         barrier.offset});
    }
  }
  for (const LoadTarget& target : targets) check_target(x, target, shared_bytes, lane);
  return targets;
}

void start_load(Execution& x, int lane, const std::vector<LoadTarget>& targets, Load load) {
  const AsyncOp op = issue_load(x, lane, targets, load);
  for (const LoadTarget& target : targets) {
    if (load.poison)
      load.poison(*target.cta, target.offset);
    else if (load.access == AccessKind::kWrite)
      target.cta->shared.poison(target.offset, load.shared_bytes);
  }
  Stats& stats = x.machine.stats();
  stats.tma_load_bytes += uint64_t{load.counted_bytes} * targets.size();
  load.source = nullptr;  // not needed any more, and it may not outlive this call
  const auto shared_load = std::make_shared<const Load>(std::move(load));
  for (const LoadTarget& target : targets) {
    ++stats.async_operations;
    x.cluster.async.submit([target, shared_load, op] { complete_load(target, *shared_load, op); });
  }
}

void check_source(const Cta& cta, uint32_t offset, uint32_t bytes) {
  if (cta.machine.options().check_uninitialized && !cta.shared.is_written(offset, bytes))
    throw Fault(fmt::format(
        "a bulk copy reads {} bytes at shared address 0x{:x}, of which some were never written; or "
        "a copy into them has not completed",
        bytes, offset));
}

void start_store(Execution& x, int lane, Store store) {
  const std::shared_ptr<CopyGroup> group = x.cta.state<BulkGroups>().of(x, lane).open;
  if (x.is_observed()) {
    const AsyncOp op = x.issue(lane, AsyncKind::kTmaStore);
    x.tell([&](Observer& o) {
      o.async_shared(op, x, x.cta, store.offset, store.shared_bytes, AccessKind::kRead);
      o.async_global(op, x, store.global_bytes, AccessKind::kWrite);
    });
    tell_of_global_part(x, op, store.global, store.access);
    group->newest = op;
  }
  ++group->unread;
  ++group->unfinished;
  Stats& stats = x.machine.stats();
  ++stats.async_operations;
  stats.tma_store_bytes += store.global_bytes;
  stats.l2_write_bytes += store.global_bytes;
  Cta& cta = x.cta;
  x.cluster.async.submit([&cta, group, statement = x.insn->statement, store = std::move(store)] {
    auto bytes = std::make_shared<const std::vector<std::byte>>(store.read(cta));
    --group->unread;
    cta.cluster.changed();
    const uint32_t outer = std::exchange(cta.cluster.async.statement, statement);
    cta.cluster.async.submit([&cta, group, bytes, write = store.write] {
      write(cta.machine.global(), *bytes);
      --group->unfinished;
      cta.cluster.changed();
    });
    cta.cluster.async.statement = outer;
  });
}

}  // namespace ptxsim
