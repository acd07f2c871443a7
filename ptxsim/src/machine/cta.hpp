// A CTA and the cluster it belongs to. All CTAs of a cluster run at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "machine/memory/mbarrier.hpp"
#include "machine/scheduler/async.hpp"
#include "machine/warp.hpp"
#include "ptxsim/machine/launch.hpp"
#include "ptxsim/machine/memory.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

struct Cluster;
class Machine;
class TensorMemory;  // machine/tmem.hpp

// bar / barrier: one of 16 per CTA.
struct NamedBarrier {
  uint32_t expected = 0;  // threads, 0: none has arrived yet
  uint32_t arrived = 0;
  uint32_t arrived_before = 0;  // of these, by warps that have arrived again since
  uint64_t generation = 0;      // completed so far
  bool all_threads = false;     // without a count: every thread that has not exited
  bool reduces = false;         // bar.red
  uint32_t reduction_and = 1, reduction_or = 0, reduction_popc = 0;  // bar.red under way
  // In the phase under way, by warp: lanes that have arrived, and those of them that wait.
  std::array<uint32_t, 32> arrived_lanes{}, waiting_lanes{};
};

// State of one kind of asynchronous operation that families keep per CTA (queues, groups): see
// insn/.
struct Cta;
struct FamilyState {
  virtual ~FamilyState() = default;
  virtual void cta_exits(Cta&) {}  // the last thread has gone; may throw a Fault
};

struct Cta {
  Cta(Cluster& cluster, uint32_t rank, uint32_t shared_bytes, uint32_t threads);
  ~Cta();

  Cluster& cluster;
  Machine& machine;
  uint32_t rank;  // in the cluster
  Dim3 ctaid{};   // in the grid
  uint32_t threads;
  uint32_t live_threads = 0;
  bool exited = false;
  SharedMemory shared;
  std::map<uint32_t, Mbarrier> mbarriers;  // by offset
  std::array<NamedBarrier, 16> barriers;
  std::unique_ptr<TensorMemory> tmem;
  std::vector<std::unique_ptr<Warp>> warps;
  // One object for each family that needs its own state, made on first use: cta.state<T>().
  template <class T>
  T& state() {
    auto& slot = family_states[T::kFamilyKey];
    if (!slot) slot = std::make_unique<T>();
    return static_cast<T&>(*slot);
  }
  std::map<const char*, std::unique_ptr<FamilyState>>
      family_states;  // keyed by T::kFamilyKey, a unique literal
};

// barrier.cluster
struct ClusterBarrier {
  uint32_t arrived = 0;  // threads
  uint64_t generation = 0;
};

struct Cluster {
  Cluster(Machine& machine, uint32_t index, uint64_t seed);
  ~Cluster();

  Machine& machine;
  uint32_t index;  // linear in the grid of clusters
  Dim3 clusterid{};
  std::vector<std::unique_ptr<Cta>> ctas;  // by rank
  ClusterBarrier barrier;
  AsyncEngine async;
  Random random;
  Observers observers;
  uint32_t last_mbarrier = 0;  // Mbarrier::number
  uint32_t last_async_op = 0;  // AsyncOp::number
  // mapa with a rank that the cluster does not have: that rank, and the last such statement.
  std::map<uint32_t, uint32_t> mapa_beyond;
  uint64_t version = 1;  // rises whenever something happens that a blocked lane may wait for
  uint32_t live_threads = 0;
  uint32_t next_warp = 0;       // whose turn it is
  uint64_t polled_version = 0;  // `version` when the polls below began
  uint32_t vain_polls = 0;      // turns since then that ended with a failed poll
  void changed() { ++version; }
};

}  // namespace ptxsim
