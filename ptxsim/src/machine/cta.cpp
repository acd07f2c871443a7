#include "machine/cta.hpp"

#include "machine/machine.hpp"
#include "machine/tensor_core/tmem.hpp"

namespace ptxsim {

Cta::Cta(Cluster& cluster, uint32_t rank, uint32_t shared_bytes, uint32_t threads)
    : cluster(cluster),
      machine(cluster.machine),
      rank(rank),
      threads(threads),
      live_threads(threads),
      shared(machine.program().uses_reserved_shared ? kReservedForGroups : kSharedBegin,
             shared_bytes) {}

Cta::~Cta() = default;

Cluster::Cluster(Machine& machine, uint32_t index, uint64_t seed)
    : machine(machine), index(index), random(seed) {
  async.observers = &observers;
  async.eager = machine.options().schedule == Schedule::kEager;
}

Cluster::~Cluster() = default;

}  // namespace ptxsim
