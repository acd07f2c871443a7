// What the asynchronous copies share: groups of a thread's copies, and loads that complete on
// mbarriers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "insn/async/shared_operand.hpp"

namespace ptxsim {

// ---- Groups: commit_group and wait_group (PTX ISA 9.0, "Async-group mechanism") ----

struct CopyGroup {
  uint32_t unread = 0;  // copies whose source has not been read
  uint32_t unfinished = 0;
  AsyncOp newest;  // when observed
};

// The groups of the threads of one CTA. Bulk and other copies have groups of their own.
struct CopyGroups : FamilyState {
  struct Thread {
    std::shared_ptr<CopyGroup> open = std::make_shared<CopyGroup>();
    std::deque<std::shared_ptr<CopyGroup>> committed;
    AsyncOp newest_waited_for;
  };
  std::vector<Thread> threads;
  Thread& of(const Execution& x, int lane) {
    if (threads.empty()) threads.resize(x.cta.threads);
    return threads[x.thread_of(lane)];
  }
};
struct BulkGroups : CopyGroups {
  static constexpr const char* kFamilyKey = "bulk groups";
  static constexpr AsyncKind kKind = AsyncKind::kTmaStore;
};
struct CpAsyncGroups : CopyGroups {
  static constexpr const char* kFamilyKey = "cp.async groups";
  static constexpr AsyncKind kKind = AsyncKind::kCpAsync;
  std::vector<uint64_t> channels;  // one for each warp: its copies complete in order
};

void commit_groups(Execution& x, CopyGroups& groups);
// Whether for every lane all groups but the newest `pending` are complete (`only_reads`: have read
// their sources). When they are, the lanes learn it.
bool groups_are_done(Execution& x, CopyGroups& groups, size_t pending, bool only_reads);

// ---- Loads into shared memory that signal an mbarrier ----

struct LoadTarget {
  Cta* cta = nullptr;
  uint32_t offset = 0;
  Cta* barrier_cta = nullptr;
  uint32_t barrier = 0;
};

struct LoadRoute {
  SharedOperand destination;
  SharedOperand barrier;
  Slot multicast;     // 16-bit mask; absent: one destination
  bool pair = false;  // .cta_group::2
};
// The destinations of one lane's copy, checked: who may signal whom (ISA reference 8.3).
std::vector<LoadTarget> route_load(const Execution& x, int lane, const LoadRoute& route,
                                   uint32_t shared_bytes, uint32_t alignment);

// Bytes of global memory that a copy reads or writes: for observers, where there are any that ask.
struct GlobalRange {
  uint64_t address = 0, bytes = 0;
};
struct GlobalPart {
  std::vector<GlobalRange> ranges;
  uint64_t tensor_map = 0;  // its generic address; 0: none
};

// Writes the bytes of a copy that begins at `offset` of `cta`, when it completes.
using WriteBytes = std::function<void(Cta& cta, uint32_t offset)>;
struct Load {
  uint32_t shared_bytes = 0;               // that are written at each destination
  uint32_t counted_bytes = 0;              // for complete_tx
  AccessKind access = AccessKind::kWrite;  // kAtomic: a reduction; nothing is poisoned
  WriteBytes write;
  WriteBytes poison = nullptr;         // what `write` will change; nullptr: all of shared_bytes
  const LoadTarget* source = nullptr;  // a source in shared memory, of `shared_bytes`
  GlobalPart global = {};
};
void start_load(Execution& x, int lane, const std::vector<LoadTarget>& targets, Load load);

// ---- Stores from shared memory to global memory, of the thread's bulk groups ----

struct Store {
  uint32_t offset = 0;  // of the source in the CTA's own shared memory
  uint32_t shared_bytes = 0;
  uint32_t global_bytes = 0;
  AccessKind access = AccessKind::kWrite;  // of global memory; kAtomic: a reduction
  GlobalPart global = {};
  // First the source is read, later the bytes are written: two moments that the schedule chooses.
  std::function<std::vector<std::byte>(Cta& cta)> read;
  std::function<void(GlobalMemory& global, const std::vector<std::byte>& bytes)> write;
};
void start_store(Execution& x, int lane, Store store);

// Reads of unwritten bytes, or of a CTA's memory after its end, are Faults.
void check_source(const Cta& cta, uint32_t offset, uint32_t bytes);
// The size and the addresses of a bulk copy are multiples of 16.
void check_multiple_of_16(const Execution& x, const char* what, uint64_t value, int lane);
void take_cache_hint(Decode& d, size_t& operand);  // .L2::cache_hint and its 64-bit operand

void decode_cp_async(Decode& d);         // cp_async.cpp
void decode_bulk_copy(Decode& d);        // cp_async_bulk.cpp
void decode_bulk_reduce(Decode& d);      // cp_async_bulk.cpp
void decode_tensor_copy(Decode& d);      // cp_async_bulk_tensor.cpp
void decode_tensor_reduce(Decode& d);    // cp_async_bulk_tensor_store.cpp
void decode_tensor_store(Decode& d);     // cp_async_bulk_tensor_store.cpp
void decode_tensor_prefetch(Decode& d);  // cp_async_bulk_tensor.cpp

}  // namespace ptxsim
