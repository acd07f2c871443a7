// The recorder's state: what it knows of warps, of operations in flight, and of arrivals at
// barriers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "machine/cta.hpp"
#include "machine/execution.hpp"
#include "machine/memory/addresses.hpp"
#include "timing/dataflow.hpp"
#include "timing/l1_cache.hpp"
#include "timing/recorder.hpp"
#include "timing/statements.hpp"

namespace ptxsim::timing {

struct Flight {  // an operation whose piece is not made yet
  AsyncKind kind = AsyncKind::kTmaLoad;
  uint32_t cta = 0, warp = 0, issued = 0, statement = 0;
  uint64_t macs_before = 0;
  uint32_t ordinal = 0;  // of the warp's wgmmas
  int32_t stage = -1;
  double global_bytes = 0, tmem_cells = 0, shared_read = 0;
  uint64_t buffer = 0, address = 0;                  // of the first byte of global memory
  std::vector<std::pair<uint32_t, double>> arrives;  // bytes into the shared memory of a CTA
  bool is_write = false;
  std::optional<uint32_t> piece;
};

struct SharedAccess {
  uint32_t offset, bytes;
};

// A load of shared memory that later ones may be merged with.
struct SharedLoad {
  std::vector<SharedAccess> lanes;
  double accesses = 0;
};

struct WarpState {
  explicit WarpState(const Program& program) : flow(program) {}

  uint32_t actor = 0;
  // Since its last piece.
  double statements = 0, slots = 0, mufu = 0, doubles = 0, mma_sync_macs = 0;
  double shared_bytes = 0;  // 128 for each access of the banks
  std::vector<After> after;
  std::vector<uint32_t> loads;  // that it waited for
  Dataflow flow;
  // The statement under way.
  std::vector<uint64_t> read_sectors, written_sectors, atomics;
  std::vector<SharedAccess> shared;
  std::vector<SharedLoad> shared_loads;  // the latest ones first
  std::vector<uint64_t> latest_written;  // sectors, of the stores before
  bool reads_shared = false, updates_shared = false;
  Chain more;           // until its result can be used, besides its expansion's
  bool copies = false;  // by cp.async
  bool loads_in_bulk = false, multiplies = false, stores = false, has_read = false;
  uint32_t wgmmas = 0;
  int32_t stage = -1;  // the barrier that it passed last
};

struct WarpgroupMma {
  std::vector<After> issued;  // by each of its warps
  uint32_t piece = 0;         // when all of them have
};

struct Warpgroup {
  std::optional<uint32_t> actor;
  std::map<uint32_t, WarpgroupMma> mmas;  // by Flight::ordinal
};

struct CtaState {
  uint32_t tma = 0, global = 0, tmem = 0, tensor = 0;
  bool has_loaded = false;
  std::vector<WarpState> warps;
  std::map<uint32_t, Warpgroup> warpgroups;
};

class Recorder : public Observer {
 public:
  Recorder(Cluster& cluster, std::shared_ptr<Recording> recording, uint64_t l1_bytes,
           std::shared_ptr<const StatementCosts> costs);

  bool wants_statements() const override { return true; }
  bool wants_global_accesses() const override { return true; }

  void executed(const Execution& x, const Insn& insn, bool blocked) override;

  void global_access(const Execution& x, int, const MemoryAt& at, uint32_t bytes,
                     AccessKind kind) override;
  void shared_access(const Execution& x, int, Cta&, uint32_t offset, uint32_t bytes,
                     AccessKind kind) override;

  void issued(const Execution& x, int, AsyncOp op, AsyncKind kind) override;
  void async_global(AsyncOp op, const Execution&, uint64_t, AccessKind kind) override {
    flights_[op.number].is_write = kind != AccessKind::kRead;
  }
  // What a box has outside its tensor is in no range: it comes from no memory.
  void async_global_range(AsyncOp op, const Execution& x, uint64_t address, uint64_t bytes,
                          AccessKind) override {
    Flight& flight = flights_[op.number];
    flight.global_bytes += static_cast<double>(bytes);
    if (flight.buffer != 0) return;
    flight.address = address;
    const GlobalBuffer* buffer = x.machine.global().find(address);
    if (buffer != nullptr) flight.buffer = buffer->address;
  }
  void async_shared(AsyncOp op, const Execution&, Cta& owner, uint32_t, uint32_t bytes,
                    AccessKind kind) override {
    Flight& flight = flights_[op.number];
    if (kind == AccessKind::kRead)
      flight.shared_read += owner.rank == flight.cta ? bytes : 0;
    else
      flight.arrives.emplace_back(owner.rank, bytes);
  }
  void async_tmem(AsyncOp op, const Execution&, Cta&, uint32_t, uint32_t lanes, uint32_t,
                  uint32_t columns, AccessKind) override {
    flights_[op.number].tmem_cells += static_cast<double>(lanes) * columns;
  }

  // Who waits for what.
  void arrives_at(AsyncOp op, bool, const Mbarrier& barrier, int) override {
    const uint32_t piece = piece_of(op.number);
    if (flights_[op.number].kind == AsyncKind::kTmaLoad)
      work().pieces[piece].stage = static_cast<int32_t>(barrier.number);
    arrivals_[barrier.number].push_back(piece);
  }
  void mbarrier_arrived(const Execution& x, int, const Mbarrier& barrier, BarrierOrder) override {
    arrivals_[barrier.number].push_back(flush(x));
  }
  void mbarrier_phase_completed(const Mbarrier& barrier) override {
    phases_[barrier.number] = std::exchange(arrivals_[barrier.number], {});
  }
  void mbarrier_passed(const Execution& x, uint32_t, const Mbarrier& barrier,
                       BarrierOrder) override {
    wait(x, phases_[barrier.number], Delay::kBarrierHop);
    state(x).stage = static_cast<int32_t>(barrier.number);
  }
  void waited_for(const Execution& x, uint32_t, AsyncOp op, bool) override {
    wait(x, {piece_of(op.number)}, Delay::kNone);
  }
  void barrier_arrived(const Execution& x, uint32_t, uint32_t number) override {
    flush(x);
    const Demand one[] = {{Server::kBarrier, x.cta.rank, 1}};
    named_[key(x.cta, number)].push_back(add_piece(state(x), {.what = "arrive"}, one));
  }
  void barrier_completed(Cta& cta, uint32_t number) override {
    passed_[key(cta, number)] = std::exchange(named_[key(cta, number)], {});
  }
  void barrier_passed(const Execution& x, uint32_t, uint32_t number) override {
    wait(x, passed_[key(x.cta, number)], Delay::kNamedBarrier);
  }
  void cluster_barrier_arrived(const Execution& x, uint32_t, BarrierOrder) override {
    named_[kClusterBarrierKey].push_back(flush(x));
  }
  void cluster_barrier_completed(Cluster&) override {
    passed_[kClusterBarrierKey] = std::exchange(named_[kClusterBarrierKey], {});
  }
  void cluster_barrier_passed(const Execution& x, uint32_t) override {
    wait(x, passed_[kClusterBarrierKey], Delay::kClusterBarrier);
  }
  void tmem_allocated(const Execution& x, Cta& cta, uint32_t, uint32_t) override {
    if (&cta != &x.cta) return;
    flush(x);
    add_piece(state(x), {.what = "allocate TMEM", .delay = Delay::kTmemAlloc}, {});
  }
  void threads_exited(const Execution& x, uint32_t) override { flush(x); }
  void cluster_ended() override;

 private:
  static constexpr uint32_t kClusterBarrierKey = 1u << 16;  // beyond all keys of named barriers
  Work& work() { return out_.work; }
  WarpState& state(const Execution& x) { return ctas_[x.cta.rank].warps[x.warp.index]; }
  static uint32_t key(const Cta& cta, uint32_t number) { return cta.rank * 16 + number; }

  void add_actors(const Cta& cta);
  uint32_t flush(const Execution& x);
  void wait(const Execution& x, const std::vector<uint32_t>& pieces, Delay delay);
  uint32_t setup();
  uint32_t add_piece(WarpState& w, Piece piece, std::span<const Demand> demands);
  bool merges_with_earlier(WarpState& w);
  void add_shared(const Insn& insn, WarpState& w);
  void add_global_read(const Execution& x, const Insn& insn, WarpState& w);
  void add_global_write(const Execution& x, WarpState& w);
  void add_atomics(const Execution& x, const Insn& insn, WarpState& w);
  uint32_t add_access(const Execution& x, WarpState& w, const char* what, Delay delay,
                      std::span<const Demand> demands);
  void finish_flights(const Execution&);
  std::optional<uint32_t> same_store(size_t index);
  uint32_t piece_of(uint32_t op);
  uint32_t add_load(const Flight& flight);
  uint32_t add_tcgen05(const Flight& flight);
  void join_warpgroup(uint32_t op);
  void note_written(uint64_t address, uint32_t bytes);
  double written_factor() const;
  void note_use(uint64_t buffer, bool is_write);
  uint64_t buffer_of(uint64_t sector);
  double new_bytes(std::unordered_set<uint64_t>& seen, const std::vector<uint64_t>& sectors,
                   uint64_t block);

  Cluster& cluster_;
  std::shared_ptr<Recording> recording_;
  std::shared_ptr<const StatementCosts> all_costs_;
  const std::vector<StatementCost>& costs_;
  RecordedCluster out_;
  std::vector<CtaState> ctas_;
  uint32_t grid_ = 0, start_ = 0;
  std::optional<uint32_t> setup_;
  std::vector<L1Cache> l1_;                               // by CTA
  std::unordered_map<uint64_t, uint32_t> bytes_written_;  // by sector, a bit each
  std::unordered_set<uint64_t> read_, written_;  // blocks of global memory, by this cluster
  std::map<uint32_t, Flight> flights_;
  std::vector<uint32_t> unfinished_;  // issued by the statement under way
  std::map<uint32_t, std::vector<uint32_t>> arrivals_, phases_;  // by Mbarrier::number
  std::map<uint32_t, std::vector<uint32_t>> named_, passed_;
  uint64_t macs_ = 0;
  bool asynchronous_macs_ =
      false;  // the statement's multiply-adds belong to an operation in flight
};

}  // namespace ptxsim::timing
