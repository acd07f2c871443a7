// Accesses to tensor memory: R5, R6, R7 and the deallocation part of R9.
//
// Operations of one thread's queue run in order where PTX ISA, "tcgen05 memory consistency model:
// pipelined instructions" says so: mma -> mma, cp -> mma, shift -> mma. It does not name mma -> cp
// (scale factors overwritten while an earlier mma may read them) nor cp -> cp, on which published
// kernels rely: an advisory.
#include <fmt/format.h>

#include <algorithm>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kTensorLanes = 128;

bool is_warp_access(AsyncKind kind) {
  return kind == AsyncKind::kTcgen05Ld || kind == AsyncKind::kTcgen05St;
}

std::string cell_name(const Cta& owner, uint32_t row, uint32_t column) {
  return fmt::format("tensor memory lanes {}-{} column {} of CTA rank {}", row * kTensorRows,
                     (row + 1) * kTensorRows - 1, column, owner.rank);
}

Finding unfinished(const TensorAccess& access, const Record& earlier, bool earlier_writes,
                   const std::string& cell) {
  const bool reads = access.kind == AccessKind::kRead;
  if (earlier.work == TensorWork::kAllocate)
    return {5, Severity::kError,
            fmt::format("uses {}, and nothing orders this after its allocation", cell),
            "a barrier between tcgen05.alloc and this use",
            "tcgen05.fence::before_thread_sync and bar.sync after tcgen05.alloc, then "
            "tcgen05.fence::after_thread_sync"};
  const bool needs_wait = is_warp_access(earlier.kind);
  return {earlier_writes && reads ? 5 : 6, Severity::kError,
          fmt::format("{} {} while an operation may still {} it", reads ? "reads" : "overwrites",
                      cell, earlier_writes ? "write" : "read"),
          needs_wait
              ? "tcgen05.wait::ld (wait::st) by the warp that issued the earlier one, then an "
                "arrive and a wait"
              : "tcgen05.commit to an mbarrier after the earlier one, and a wait on its phase",
          needs_wait ? "tcgen05.wait, tcgen05.fence::before_thread_sync, then arrive; wait for it "
                       "before this one"
                     : "wait on the mbarrier of the commit, then tcgen05.fence::after_thread_sync"};
}

Finding unpromised_order(const std::string& cell) {
  return {6, Severity::kAdvisory,
          fmt::format("overwrites {}, which an earlier operation of the same thread uses; their "
                      "order is not among "
                      "the pipelined pairs",
                      cell),
          "a wait on the tcgen05.commit of the earlier operation",
          "use other columns for each stage, or wait for the commit that frees them"};
}

Finding missing_fence(bool is_after) {
  const char* name =
      is_after ? "tcgen05.fence::after_thread_sync" : "tcgen05.fence::before_thread_sync";
  return {7, Severity::kAdvisory,
          fmt::format("follows tensor memory work of another thread that was waited for without {}",
                      name),
          name,
          is_after ? "execute the fence after the wait, before this instruction"
                   : "execute the fence after the earlier work's wait, before the arrive that "
                     "hands the cells over"};
}

}  // namespace

void Sanitizer::State::check_cell(const TensorAccess& access, uint32_t earlier_index,
                                  bool earlier_writes, uint32_t row, uint32_t column) {
  const Record& earlier = records[earlier_index];
  const uint32_t statement = access.x.insn->statement;
  const bool same_queue = earlier.queue == access.record.queue;
  // A pair allocates together: who may use its own columns may use those of the other CTA.
  if (earlier.work == TensorWork::kAllocate && access.owner.rank != rank_of(access.record.warp))
    return;
  auto add = [&](Finding finding) {
    if (!seen_before(finding.rule, finding.severity, statement, earlier.statement))
      report(access.x, access.record.lane, earlier.statement, describe(earlier),
             std::move(finding));
  };
  if (!complete(access.who.clock->order, earlier, -1)) {
    if (!same_queue || is_warp_access(earlier.kind)) {
      Finding finding =
          unfinished(access, earlier, earlier_writes, cell_name(access.owner, row, column));
      if (all_read(access.who, access.who.clock->order, earlier))
        finding.severity = Severity::kWarning;
      add(std::move(finding));
    } else if (access.record.work == TensorWork::kCopy) {
      add(unpromised_order(cell_name(access.owner, row, column)));
    }
    return;
  }
  // R7. A warp that waits for its own tcgen05.ld or st, or allocated itself, needs no fence.
  if (same_queue || (earlier.warp == access.record.warp && is_warp_access(earlier.kind))) return;
  if (is_warp_access(earlier.kind) && queues.at(earlier.queue).fenced_before < earlier.sequence)
    add(missing_fence(false));
  if (access.after_fence == nullptr || !complete(access.after_fence->order, earlier, -1))
    add(missing_fence(true));
}

void Sanitizer::tmem_allocated(const Execution& x, Cta& owner, uint32_t first_column,
                               uint32_t columns) {
  // As a store of the whole warp that is complete at once: users must be ordered after it.
  const uint32_t index = state_->new_record(x, x.first_lane(), AsyncKind::kTcgen05St);
  state_->access_tensor(index, x, owner, {0, kTensorLanes, first_column, columns},
                        AccessKind::kWrite);
  state_->learn(x, x.mask, state_->records[index]);
}

void Sanitizer::tmem_allocated_with_peer(const Execution& x) {
  State& s = *state_;
  const uint32_t index = s.new_record(x, x.first_lane(), AsyncKind::kTcgen05St);
  s.learn(x, x.mask, s.records[index]);
  s.ctas[x.cta.rank].pair_allocation = index;
}

// Here no CTA comes back from an allocation before its peer has come to it. A B300 goes on, and the
// launch fails where one CTA frees before the other has allocated (measured in
// NVIDIA/cutlass#3435).
void Sanitizer::State::check_peer_has_allocated(const Execution& x, int lane,
                                                const ThreadKnowledge& who) {
  if (ctas[x.cta.rank].pair_allocation == kNobody) return;
  const uint32_t index = ctas[x.cta.rank ^ 1u].pair_allocation;
  if (index == kNobody) return;
  const Record& earlier = records[index];
  if (complete(execution_of(*who.clock), earlier, -1) ||
      seen_before(9, Severity::kError, x.insn->statement, earlier.statement))
    return;
  report(x, lane, earlier.statement, describe(earlier),
         {9, Severity::kError,
          "frees tensor memory of a pair of CTAs, and nothing orders this after the other CTA's "
          "tcgen05.alloc",
          "barrier.cluster, or an arrive of the other CTA after its tcgen05.alloc and a wait for "
          "it, before the dealloc",
          "let the CTAs of the pair meet after the allocation, or before they free"});
}

void Sanitizer::async_tmem(AsyncOp op, const Execution& x, Cta& owner, uint32_t first_lane,
                           uint32_t lanes, uint32_t first_column, uint32_t columns,
                           AccessKind kind) {
  state_->access_tensor(state_->record_of_op[op.number], x, owner,
                        {first_lane, lanes, first_column, columns}, kind);
}

void Sanitizer::State::access_tensor(uint32_t index, const Execution& x, const Cta& owner,
                                     const TensorCells& where, AccessKind kind) {
  State& s = *this;
  const Record& record = s.records[index];
  if (&owner != &x.cta) s.check_remote(x, record.lane, owner, 0);
  const TensorAccess access{x,      owner,
                            kind,   s.knowledge_of(x, record.lane),
                            record, clock_of(s.warps[record.warp].after_fence, record.lane)};
  std::vector<TensorCell>& cells = s.ctas[owner.rank].tensor;
  if (cells.empty()) cells.resize(size_t{kTensorLanes / kTensorRows} * kTensorColumns);
  const uint32_t last_row = std::min(kTensorLanes, where.first_lane + where.lanes) - 1;
  const uint32_t last_column = std::min(kTensorColumns, where.first_column + where.columns);
  uint32_t checked_writer = kNobody,
           checked_reader = kNobody;  // neighbours mostly have the same ones
  for (uint32_t row = where.first_lane / kTensorRows; row <= last_row / kTensorRows; ++row) {
    for (uint32_t column = where.first_column; column < last_column; ++column) {
      TensorCell& cell = cells[size_t{row} * kTensorColumns + column];
      if (cell.writer != kNobody && cell.writer != index && cell.writer != checked_writer)
        s.check_cell(access, checked_writer = cell.writer, true, row, column);
      if (kind == AccessKind::kRead) {
        std::erase_if(cell.readers,
                      [&](uint32_t reader) { return s.records[reader].queue == record.queue; });
        cell.readers.push_back(index);
        continue;
      }
      for (uint32_t reader : cell.readers)
        if (reader != index && reader != checked_reader)
          s.check_cell(access, checked_reader = reader, false, row, column);
      cell.writer = index;
      cell.readers.clear();
    }
  }
}

void Sanitizer::tmem_freed(const Execution& x, int lane, Cta& owner, uint32_t first_column,
                           uint32_t columns) {
  State& s = *state_;
  const ThreadKnowledge who = s.knowledge_of(x, lane);
  s.check_peer_has_allocated(x, lane, who);
  std::vector<TensorCell>& cells = s.ctas[owner.rank].tensor;
  if (cells.empty()) return;
  const uint32_t warp = s.warp_of(x);
  const ClockValues* after_fence = clock_of(s.warps[warp].after_fence, lane);
  const uint32_t end = std::min(kTensorColumns, first_column + columns);
  auto check = [&](uint32_t index) {
    const Record& earlier = s.records[index];
    auto add = [&](Finding finding) {
      if (!s.seen_before(finding.rule, finding.severity, x.insn->statement, earlier.statement))
        s.report(x, lane, earlier.statement, s.describe(earlier), std::move(finding));
    };
    // Known by a .relaxed barrier, too: nothing of the operation is read.
    if (!s.complete(execution_of(*who.clock), earlier, -1)) {
      const bool is_over = s.all_read(who, execution_of(*who.clock), earlier);
      add({9, is_over ? Severity::kWarning : Severity::kError,
           "frees tensor memory that an operation may still use",
           "a wait for the operation's completion, then a barrier with the warp that frees",
           "wait for the commit (tcgen05.wait::ld for loads) in the user, then bar.sync or "
           "barrier.cluster"});
    } else if (earlier.warp != warp) {
      if (is_warp_access(earlier.kind) &&
          s.queues.at(earlier.queue).fenced_before < earlier.sequence)
        add(missing_fence(false));
      if (after_fence == nullptr || !s.complete(execution_of(*after_fence), earlier, -1))
        add(missing_fence(true));
    }
  };
  for (uint32_t row = 0; row < kTensorLanes / kTensorRows; ++row) {
    uint32_t checked = kNobody;
    for (uint32_t column = first_column; column < end; ++column) {
      TensorCell& cell = cells[size_t{row} * kTensorColumns + column];
      if (cell.writer != kNobody && cell.writer != checked) check(checked = cell.writer);
      for (uint32_t reader : cell.readers) check(reader);
      cell = TensorCell{};
    }
  }
}

}  // namespace ptxsim
