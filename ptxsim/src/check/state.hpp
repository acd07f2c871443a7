// What the sanitizer keeps: clocks of the warps, records of asynchronous operations, and shadows of
// shared and tensor memory. Private to check/.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/clock.hpp"
#include "check/foreign_clock.hpp"
#include "check/grid.hpp"
#include "check/read_log.hpp"
#include "check/record.hpp"
#include "check/sanitizer.hpp"
#include "check/shared_granule.hpp"
#include "machine/execution.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace check {

// Lanes of a warp that have the same clock.
struct LaneGroup {
  uint32_t lanes = 0;
  SharedClock clock;
};
using LaneGroups = std::vector<LaneGroup>;  // disjoint masks

// A warp's epoch rises whenever one of its lanes releases, fences or issues, so that an access is
// named by (lane, epoch of the warp). What a lane knows of itself is not in its clock: its own
// accesses always happened before, and those up to `own_async` are visible to the async proxy.
struct WarpClocks {
  uint32_t epoch = 1;
  LaneGroups groups;
  LaneGroups after_fence;  // the clocks at the last tcgen05.fence::after_thread_sync
  std::array<uint32_t, kWarpSize> own_async{};
  uint32_t met_lanes = 0, met_epoch = 0;  // the last shfl.sync or the like: who, and after what
  uint32_t epoch_before = 1;              // when its last statement had ended
  // The same for global memory.
  std::array<uint32_t, kWarpSize> own_async_global{}, own_tensor_maps{};
  std::unique_ptr<OwnScOrder> own_sc;  // where the kernel has fence.sc
  std::vector<Signal> signals;         // that its lanes received (signals.hpp)
};

// What a thread knows of others: a lane of a warp, or (warp < 0) all threads of a CTA together when
// it ends.
struct ThreadKnowledge {
  const ClockValues* clock;
  int warp = -1;
  int lane = -1;
  uint32_t own_async = 0;
  uint32_t own_async_global = 0, own_tensor_maps = 0;
  bool is_lane(uint32_t other_warp, int other_lane) const {
    return warp == static_cast<int>(other_warp) && lane == other_lane;
  }
};

// An ordinary load of shared memory. Its words are there when a statement needs them, and need not
// be there when its thread arrives on an mbarrier.
struct Load {
  static constexpr uint32_t kNotYet = 0xffffffffu;
  uint32_t used = kNotYet;  // epoch of its warp when a result was used, or it was waited for
  std::unique_ptr<Report> overwritten;  // R4, if a result is used after all
};

// Results of a load that its warp has not used: a shared load, or a tcgen05.ld before its wait.
struct PendingResults {
  bool is_tensor;
  uint32_t index;                   // of `loads`, or of the record
  std::vector<uint32_t> registers;  // offsets in the register file
};

struct Queue {
  uint32_t last_sequence = 0;
  uint32_t write_queue = 0;    // of its records
  uint32_t fenced_before = 0;  // operations up to this one lie before a fence::before_thread_sync
  std::deque<uint32_t> with_clock;  // records that hold one, oldest first
};

struct RemoteArrival {
  uint32_t warp, epoch, statement;
  int lane;
};
struct Commitment {  // an arrival that operations will make when they are complete
  uint32_t phase, queue, sequence, record;
};

// What the arrivals of the current phase release, and what a wait for the last completed one
// acquires.
struct BarrierClocks {
  SyncClock arriving, completed;
};

// Who used a barrier last: threads of a warp, and the operations of a queue.
struct BarrierUse {
  uint32_t warp = 0;
  std::array<uint32_t, kWarpSize> epochs{};  // by lane; 0: it has not
  std::array<uint32_t, kWarpSize> statements{};
};

struct BarrierObject {
  BarrierClocks clocks;
  uint32_t rank = 0, offset = 0;
  uint32_t warp = 0, epoch = 0, statement = 0;  // of its initialisation
  int lane = 0;                                 // the first that initialised it, and
  uint32_t lanes = 0;                           // all of them
  uint32_t fenced_at = 0;  // epoch of the initialising warp at fence.mbarrier_init; 0: none yet
  std::vector<RemoteArrival> remote;
  std::vector<Commitment> commitments;
  // Where the kernel has an mbarrier.inval:
  std::vector<BarrierUse> uses;
  std::vector<uint32_t> operations;  // records that arrive at it, the newest of each queue
  // Once another CTA has arrived: what its own CTA's arrivals release, for waits whose scope is the
  // CTA.
  bool has_remote_arrivals = false;
  BarrierClocks local;
};

inline constexpr uint32_t kMbarrierBytes = 8;

// Tensor memory: 16 lanes of one column. Indices of records.
inline constexpr uint32_t kTensorRows = 16;
inline constexpr uint32_t kTensorColumns = 512;
struct TensorCell {
  uint32_t writer = kNobody;
  std::vector<uint32_t> readers;
};

// Registers that hold what a load brought.
struct FollowedResults {
  uint32_t load;                    // index in Grid::followed
  uint32_t lanes;                   // that loaded
  std::vector<uint32_t> registers;  // offsets in the register file
};

struct CtaShadow {
  std::vector<Granule> shared;
  // Barriers that every thread of the CTA has waited at. What its threads did before one is in
  // order before all that they do after it.
  uint32_t generation = 0;
  ReadLog log;                             // where State::only_own_threads_share
  std::vector<TensorCell> tensor;          // [16 lanes][column]
  uint32_t pair_allocation = kNobody;      // record of its part of the last one with its peer
  SharedClock at_exit;                     // what its exited threads knew
  bool lets_next_grid_start = false;       // a thread has
  std::array<BarrierClocks, 16> barriers;  // bar and barrier{.cta}
  // Release and acquire patterns through memory. What was released at an address of its shared
  // memory; by thread: fenced but not written, read but not fenced.
  std::map<uint64_t, Releases> released;
  std::map<uint32_t, Reach> to_release, to_acquire;
  std::map<uint32_t, TakenOver> taken_over;
  std::unordered_map<uint64_t, ScFlag> sc_flags;              // of its shared memory, by address
  std::unordered_map<uint64_t, std::vector<Signal>> signals;  // sent through that
};

// An access under way. `record`: that of the asynchronous operation that makes it, null for an
// ordinary access.
struct Access {
  const Execution& x;
  int lane;
  const Cta& owner;
  AccessKind kind;
  ThreadKnowledge who;
  uint32_t warp;
  const Record* record = nullptr;
  uint32_t record_index = kNobody;
  uint32_t begin = 0;                 // offset of its first byte
  const std::byte* values = nullptr;  // what a write writes, if that is known
};
struct GlobalAccess {
  const Execution& x;
  int lane;
  AccessKind kind;
  ThreadKnowledge who;
  uint32_t warp;
  const MemoryAt* at = nullptr;    // of an ordinary access
  const Record* record = nullptr;  // of an operation's, and
  uint32_t record_index = kNobody;
  bool reads_tensor_map = false;  // through the tensormap proxy, at `map`
  uint64_t map = 0;

  Scope scope() const {
    // "Each reduction operation performed by cp.reduce.async.bulk has .relaxed.gpu semantics."
    if (at == nullptr) return kind == AccessKind::kAtomic ? Scope::kGpu : Scope::kNone;
    return at->scope;
  }
  bool writes() const { return kind != AccessKind::kRead; }
  bool is_async_proxy() const { return record != nullptr && record->kind != AsyncKind::kCpAsync; }
};
enum class Verdict : uint8_t { kInOrder, kTolerated, kReported };

struct TensorAccess {
  const Execution& x;
  const Cta& owner;
  AccessKind kind;
  ThreadKnowledge who;
  const Record& record;
  const ClockValues*
      after_fence;  // what was known at the last fence::after_thread_sync; null: there was none
};

struct TensorCells {
  uint32_t first_lane, lanes, first_column, columns;
};

struct Finding {
  int rule;
  Severity severity;
  std::string message, missing, fix;
};

}  // namespace check
using namespace check;  // in check/*.cpp only

const SharedClock& shared_clock_of(const LaneGroups& groups, int lane);
const ClockValues* clock_of(const LaneGroups& groups, int lane);
// Whether threads may learn of each other by strong accesses; whether on every way from the load to
// such a write a statement uses its result, or waits for it.
bool may_signal(const Program& program);
bool is_strong_write(const Traits& traits);
bool is_used_before_signals(const Program& program, uint32_t load);
// By statement: loads from which the program may go on without using what they have loaded. Empty:
// none.
std::vector<bool> loads_that_may_stay_unused(const Program& program);
// Whether `clock` has reached `epoch` for each of `lanes` of the warp that begins at the index
// `first`.
bool knows(const std::vector<uint32_t>& clock, uint32_t first, uint32_t lanes, uint32_t epoch);
const char* verb(AccessKind kind);        // "reads"
const char* participle(AccessKind kind);  // "read"
uint64_t queue_key(AsyncKind kind, uint32_t issuer);
std::string place_in(const Cta& owner, uint32_t offset);  // "shared memory 0x1c400 of CTA rank 1"
// Whether results have to be followed: tcgen05.ld; loads of shared memory beside arrivals on
// mbarriers and bulk copies.
bool has_loads_to_follow(const Program& program);
// Guesses (guesses.cpp): loads whose value an atomic of the same thread makes sure of.
bool is_guess(const Program& program, uint32_t load);
Finding race_of_a_guess(int rule, AccessKind kind, const std::string& place);
bool has_any(const Program& program, Trait trait);  // a statement with it

struct Sanitizer::State {
  State(Cluster& cluster, Reports& reports, bool strict, std::shared_ptr<Grid> grid);

  // Threads (threads.cpp).
  uint32_t warp_of(const Execution& x) const { return x.cta.rank * warps_per_cta + x.warp.index; }
  uint32_t index_of(uint32_t warp, int lane) const {
    return warp * kWarpSize + static_cast<uint32_t>(lane);
  }
  uint32_t rank_of(uint32_t warp) const { return warp / warps_per_cta; }
  ThreadKnowledge knowledge_of(const Execution& x, int lane) const;
  template <class F>
  void change(LaneGroups& groups, uint32_t lanes,
              F&& f);  // f(LaneGroup&) for groups that hold just these lanes
  // A proxy fence of these lanes; `own`: what of their own accesses the proxy sees.
  void show(WarpClocks& clocks, uint32_t lanes, ProxyClock proxy,
            std::array<uint32_t, kWarpSize>& own);
  void mark_own(ClockValues& clock, uint32_t warp, uint32_t lanes, uint32_t epoch) const;

  void release(const Execution& x, uint32_t lanes, SyncClock& into,
               BarrierOrder order = BarrierOrder::kAcquireRelease);
  void acquire(const Execution& x, uint32_t lanes, const SyncClock& from,
               BarrierOrder order = BarrierOrder::kAcquireRelease);

  // What is known (knowledge.cpp).
  bool ordered(const ThreadKnowledge& who, uint32_t warp, uint32_t lanes, uint32_t epoch) const;
  bool seen_by_async(const ThreadKnowledge& who, uint32_t warp, uint32_t lanes,
                     uint32_t epoch) const;
  bool executed(const ClockValues& clock, uint32_t warp, uint32_t lanes, uint32_t epoch) const;
  // Whether any lane of the warp is known to have come that far: a warp waits as a whole for what
  // one of its lanes needs.
  bool reached(const std::vector<uint32_t>& known, uint32_t warp, uint32_t epoch) const;
  // Whether a tcgen05.ld without tcgen05.wait::ld is over all the same, as every register of it had
  // been read before.
  bool all_read(const ThreadKnowledge& who, const std::vector<uint32_t>& known,
                const Record& load) const;
  // `rank`: that of the CTA that was written; -1: an access to any.
  bool complete(const std::vector<uint32_t>& known, const Record& record, int rank) const;

  // Operations (operations.cpp).
  uint32_t new_record(const Execution& x, int lane, AsyncKind kind);
  Record& record_of(AsyncOp op) { return records[record_of_op[op.number]]; }
  uint32_t slot_of(const Mbarrier& barrier) const { return mbarrier_slots[barrier.number]; }
  void learn(const Execution& x, uint32_t lanes, const Record& record, bool only_reads = false);
  void forget_clocks(uint32_t queue, uint32_t sequence);  // of operations before this one
  void check_initialized(const Execution& x, const ThreadKnowledge& who,
                         const BarrierObject& object, bool must_be_visible, bool by_operation);
  void note_commitment(BarrierObject& object, uint32_t phase);
  void note_remote_arrival(BarrierObject& object, const ThreadKnowledge& who, uint32_t statement);

  // mbarriers as memory (barrier_memory.cpp).
  void note_use(BarrierObject& object, const ThreadKnowledge& who, uint32_t statement,
                bool by_operation);
  void check_invalidation(const Execution& x, int lane, Cta& owner, uint32_t slot);

  // Loads on the way (loads.cpp).
  void open_load();  // the statement under way reads shared memory
  void note_results(const Execution& x, const Insn& insn);
  void use_results(const Execution& x, const Insn& insn, std::vector<PendingResults>& list);
  void finish_loads(const Execution& x);  // something that waits for them
  void check_load(const Access& access, const ShadowEntry& entry, uint32_t at);

  // Accesses (shared_shadow.cpp, shared_order.cpp, shared_findings.cpp, tensor_shadow.cpp).
  // `stays`: those that come after it are judged by it.
  void access_shared(const Access& access, uint32_t bytes, bool stays = true);
  void access_shared_by(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset, uint32_t bytes,
                        AccessKind kind, const std::byte* values);
  void access_tensor(uint32_t index, const Execution& x, const Cta& owner, const TensorCells& where,
                     AccessKind kind);
  void enter(const Access& access, Granule& granule, uint16_t bytes, bool is_agreed) const;
  void enter_read(const ShadowEntry& entry, Granule& granule) const;
  Granule& granule_at(const Cta& owner, uint32_t offset);
  // The same without what the log has of it.
  Granule& granule_without_log(const Cta& owner, uint32_t offset);
  ReadLog& log_of(const Cta& owner);
  // Whether the access is in order after the earlier one.
  bool follows(const Access& access, const ShadowEntry& entry) const;
  bool is_seen(const Access& access, const ShadowEntry& entry) const;
  bool agrees(const Access& access, const ShadowEntry& entry, uint32_t begin, uint16_t bytes) const;
  // Atomics of one proxy, which do not race, and whether what comes after the later one comes after
  // the earlier, too.
  bool are_atomics(const Access& access, const ShadowEntry& entry) const;
  bool stands_for(const Access& access, const ShadowEntry& entry) const;
  bool is_excused(const Access& access, const Granule& granule, const ShadowEntry& entry) const;
  void report_after_generic(const Access& access, const ShadowEntry& entry, uint32_t at,
                            bool is_agreed);
  void report_after_async(const Access& access, const ShadowEntry& entry, uint32_t at,
                          bool is_agreed);
  Severity severity_of_race(const Access& access, const ShadowEntry& entry);
  bool is_race_of_a_guess(uint32_t statement, AccessKind kind, uint32_t other,
                          AccessKind other_kind);
  void check_remote(const Execution& x, int lane, const Cta& owner, uint32_t offset);
  void check_cell(const TensorAccess& access, uint32_t earlier_index, bool earlier_writes,
                  uint32_t row, uint32_t column);
  void check_peer_has_allocated(const Execution& x, int lane, const ThreadKnowledge& who);

  // Order by fence.sc (sc_fences.cpp). `reaches`: how far it does, of three.
  void acquire_by_sc_fence(const Execution& x, size_t reaches);
  void release_by_sc_fence(const Execution& x, size_t reaches);
  void mark_own_sc(ClockValues& clock, uint32_t warp, uint32_t lanes) const;
  const ScClocks& fenced_before(const Execution& x, int lane);
  void observe(const Execution& x, int lane, Scope scope, const std::vector<ScFlag::By>& list);
  void note_strong_access(const Execution& x, int lane, const MemoryAt& at, bool writes);

  // Loads that are over by what was sent after them (signals.cpp).
  std::vector<Signal>& signals_through(const MemoryAt& at);
  void send_signal(const Execution& x, int lane, const MemoryAt& at, bool updates);
  void receive_signals(const Execution& x, int lane, const MemoryAt& at);
  bool is_over_by_signal(const ThreadKnowledge& who, uint32_t of_cluster, uint32_t warp,
                         uint32_t lanes, uint32_t epoch, uint32_t load);

  // Scopes of mbarriers (mbarrier_scope.cpp).
  void release_into(const Execution& x, int lane, BarrierObject& object, BarrierOrder order);
  void acquire_within_cta(const Execution& x, uint32_t lanes, BarrierObject& object);
  bool is_beyond_scope(const Access& access, const ShadowEntry& entry) const;
  void report_beyond_scope(const Access& access, const ShadowEntry& entry, uint32_t at);
  bool is_beyond_scope(const GlobalAccess& access, const GlobalEntry& entry) const;
  Severity severity_beyond_scope(AccessKind kind, bool is_async_proxy) const;
  Finding beyond_scope(int rule, AccessKind kind, Severity severity,
                       const std::string& place) const;

  // Racing loads whose results no statement uses (unused_loads.cpp).
  void follow_load(const Execution& x);  // the statement under way reads memory
  void note_followed(const Execution& x, const Insn& insn);
  // Where the error of a finding is kept until somebody uses what was loaded. nullptr: somebody
  // has, or may have.
  std::vector<Deferred>* unused_load(uint32_t load, uint32_t lanes);
  std::vector<Deferred>* unused_copy(uint32_t of_cluster, uint32_t record);
  void defer(std::vector<Deferred>& list, uint32_t lanes, Report report);
  void note_copy_read(Record& record);

  // Global memory (global_shadow.cpp, global_findings.cpp, tensor_map_proxy.cpp,
  // previous_grid.cpp).
  GlobalEntry entry_of(const GlobalAccess& access);  // of no bytes yet
  void access_global(const GlobalAccess& access, uint64_t address, uint64_t bytes);
  bool happened_before(const ThreadKnowledge& who, const GlobalEntry& entry) const;
  bool seen_by_proxy(const ThreadKnowledge& who, const GlobalEntry& entry, ProxyClock proxy) const;
  // Judges the access to these bytes of a granule against an earlier one.
  Verdict judge(const GlobalAccess& access, const GlobalEntry& entry, uint64_t granule,
                uint16_t bytes);
  Verdict judge_after_async(const GlobalAccess& access, const GlobalEntry& entry, uint64_t at);
  bool stores_what_is_there(const GlobalAccess& access, uint64_t granule, uint16_t bytes) const;
  bool is_tolerated_race(const GlobalAccess& access, const GlobalEntry& entry, uint64_t granule,
                         uint16_t bytes) const;
  void report_global(const GlobalAccess& access, const GlobalEntry& entry, uint32_t other_statement,
                     Finding finding, std::vector<Deferred>* unused);
  std::vector<Deferred>* unused_read(const GlobalAccess& access, const GlobalEntry& entry);
  bool is_read_over(const GlobalAccess& access, const GlobalEntry& entry);
  void check_previous_grid(const GlobalAccess& access, const GlobalRegion& region, uint64_t at,
                           uint64_t bytes);
  void check_earlier_grid(const GlobalAccess& access, const EarlierGrid& earlier, uint64_t at,
                          uint64_t bytes);
  bool is_acquired(const GlobalAccess& access, const GlobalEntry& entry, uint64_t map) const;
  // The scope that reaches from `rank` of this cluster to that CTA.
  Scope scope_to(uint32_t rank, uint32_t other_cluster, uint32_t other_rank) const;

  // Ends (exits.cpp).
  void check_exit_of_shared(const Cta& cta, const ClockValues& known);
  void check_exit_of_tensor(const Cta& cta, const ClockValues& known);
  // Whether all that the commitment is about is complete, and only its arrival may be late.
  bool only_arrival_is_open(const Commitment& commitment, const std::vector<uint32_t>& known) const;
  void check_exit_of_barriers(const Cta& cta, const ClockValues& known);

  // Release and acquire (memory_order.cpp).
  std::map<uint64_t, Releases>& released_through(const MemoryAt& at);
  void acquire_from(const Execution& x, int lane, Releases& releases, Scope scope, bool acquires);

  // Reports (findings.cpp).
  // Counts up a report of these statements that is at least as severe, if there is one.
  bool seen_before(int rule, Severity severity, uint32_t statement, uint32_t other_statement);
  void report(const Execution& x, int lane, uint32_t other_statement, const std::string& other,
              Finding finding);
  void report_or_defer(const Execution& x, int lane, uint32_t other_statement,
                       const std::string& other, Finding finding, std::vector<Deferred>* unused,
                       uint32_t lanes);
  Report written(const Execution& x, int lane, uint32_t other_statement, const std::string& other,
                 Finding finding) const;
  void report_at_exit(uint32_t statement, const std::string& who, Finding finding);
  void report_uninitialized(const Execution& x, int lane, const BarrierObject& object,
                            bool is_ordered, Severity severity);
  std::string text_of(uint32_t statement) const;
  std::string actor(uint32_t warp, int lane) const;
  std::string describe(uint32_t statement, uint32_t warp, int lane) const;
  std::string describe(const ShadowEntry& entry) const;
  std::string describe(const Record& record) const {
    return describe(record.statement, record.warp, record.lane);
  }

  Cluster& cluster;
  Reports& reports;
  bool strict;
  std::shared_ptr<Grid> grid;
  uint32_t warps_per_cta;
  uint32_t next_slot;  // clock indices: threads, then one for each queue and mbarrier
  std::vector<WarpClocks> warps;
  std::vector<CtaShadow> ctas;
  BarrierClocks cluster_barrier;
  uint32_t narrow_read =
      kNobody;  // the last read that found a release whose scope, or its own, is too narrow
  std::shared_ptr<std::vector<Record>> own_records;  // that outlive the cluster in the grid
  std::vector<Record>& records = *own_records;
  bool has_global_operations = false;    // some of them may be named by the grid's shadow
  std::vector<uint32_t> record_of_op;    // by AsyncOp::number
  std::vector<uint32_t> mbarrier_slots;  // by Mbarrier::number
  bool follows_results;                  // whether any load needs it
  bool only_own_threads_share;           // of shared memory: no operation, no other CTA uses it
  bool has_invalidations;                // mbarrier.inval
  bool has_non_coherent_loads;           // ld.global.nc, ldu
  bool has_sc_fences;                    // membar, fence.sc
  bool has_signals;                      // strong reads of what strong writes have left
  uint32_t narrow_use = kNobody;         // the last mbarrier operation whose scope did not reach
  std::unordered_map<uint32_t, bool> used_before_signals;  // by statement, of loads
  std::vector<bool> may_stay_unused;                       // by statement, of loads; empty: none
  std::vector<std::vector<FollowedResults>> followed_results;  // by warp
  uint32_t open_followed = kNobody;                            // of the statement under way
  std::vector<Load> loads;
  std::vector<std::vector<PendingResults>> pending;  // by warp
  // For the statement under way: its index in `loads`, and that of its tcgen05.ld's record.
  uint32_t open_shared = kNobody, open_tensor = kNobody;
  std::unordered_map<uint32_t, bool> guesses;  // by statement, of loads that race with atomics
  std::unordered_map<uint64_t, uint32_t> queue_slots;    // of (kind, warp or thread)
  std::unordered_map<uint32_t, Queue> queues;            // by slot
  std::unordered_map<uint32_t, BarrierObject> barriers;  // by slot
};

// Splits the groups so that `lanes` are groups of their own, calls f for each of those, and joins
// equal ones again.
template <class F>
void Sanitizer::State::change(LaneGroups& groups, uint32_t lanes, F&& f) {
  const size_t before = groups.size();
  for (size_t i = 0; i < before; ++i) {
    const uint32_t inside = groups[i].lanes & lanes;
    if (inside == 0 || inside == groups[i].lanes) continue;
    groups.push_back({groups[i].lanes & ~inside, groups[i].clock});
    groups[i].lanes = inside;
  }
  for (LaneGroup& group : groups)
    if ((group.lanes & lanes) != 0) f(group);
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = groups.size(); --j > i;) {
      if (groups[j].clock != groups[i].clock) continue;
      groups[i].lanes |= groups[j].lanes;
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
    }
  }
}

}  // namespace ptxsim
