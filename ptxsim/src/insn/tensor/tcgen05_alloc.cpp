// tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA 9.0, "Tensor Memory Allocation and
// Management Instructions"). With cta_group::2 a warp of each CTA of the pair executes the
// instruction; the first waits for the second. An allocation waits until there is room.
#include <fmt/format.h>

#include <cstring>

#include "insn/tensor/tcgen05.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

struct AllocDetail : Detail {
  uint32_t cta_group = 1;
  SharedOperand destination;  // alloc
};

// What a blocked warp keeps in its ticket: that it has arrived at the pair's request number n.
constexpr uint64_t kArrived = 2;  // + n; above kTicketTimeout

void require_whole_warp(const Execution& x, const char* what) {
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("{} executed by lanes {:08x}; needs all 32 lanes of a warp (R12)", what,
                        x.mask));
}

void write_address(Execution& x, const AllocDetail& detail, uint32_t first_column) {
  const int lane = x.first_lane();
  const uint64_t address = detail.destination.address(x, lane);
  x.for_lanes([&](int other) {
    if (detail.destination.address(x, other) != address)
      x.fault("destination of tcgen05.alloc differs between lanes (R12)", other);
  });
  const uint64_t shared =
      detail.destination.is_generic ? shared_from_generic(x, address, lane) : address;
  const MemoryAt at = locate(x, {Space::kShared, true}, shared, 4, 4, lane);
  // .sync: the lanes meet here, and what alloc writes is ordered with their later accesses (PTX
  // ISA, "Asynchronous Operations": allocation maintains same-address ordering).
  x.tell([&](Observer& o) { o.lanes_synchronized(x, x.mask); });
  std::memcpy(bytes_to_write(x, at, 4, AccessKind::kWrite, lane), &first_column, 4);
  x.tell([&](Observer& o) { o.lanes_synchronized(x, x.mask); });
}

Outcome wait_for(Execution& x, const char* what) {
  return x.block({.kind = WaitInfo::Kind::kOther, .cta_rank = x.cta.rank, .what = what});
}

PairRequest& request_of(Execution& x) {
  Cta& even = *x.cluster.ctas[x.cta.rank & ~1u];
  return even.state<Tcgen05State>().pair;
}

// Notes this CTA's part of the pair's next request.
void arrive(Execution& x, PairRequest& request, const PairRequest::Side& mine, const char* what) {
  PairRequest::Side& side = request.side[x.cta.rank & 1];
  const PairRequest::Side& other = request.side[~x.cta.rank & 1];
  if (side.arrived)
    x.fault(
        fmt::format("{} while another warp of this CTA waits in a collective tcgen05.alloc or "
                    "dealloc (R9)",
                    what));
  if (other.arrived && (other.kind != mine.kind || other.columns != mine.columns ||
                        other.first_column != mine.first_column))
    x.fault(
        fmt::format("{} of {} columns, but the other CTA of the pair executes {} of {} columns; "
                    "both must do the same (R9)",
                    what, mine.columns,
                    other.kind == PairRequest::Kind::kFree ? "dealloc" : "alloc", other.columns));
  side = mine;
  side.arrived = true;
  x.cluster.changed();
}

// A ticket is only kept by a statement that blocks.
Outcome wait_in_pair(Execution& x, const PairRequest& request, const char* what) {
  x.warp.ticket[x.first_lane()] = kArrived + request.completed;
  return wait_for(x, what);
}

void complete(Execution& x, PairRequest& request) {
  request.side[0] = request.side[1] = {};
  ++request.completed;
  x.cluster.changed();
}

// Tells the observers of one CTA's columns. A pair allocates together: neither alloc returns before
// the other CTA has come, so that the leader may use both CTAs' columns without a barrier with the
// other's warp.
void note_allocated(Execution& x, uint32_t first_column, uint32_t columns) {
  x.tell([&](Observer& o) { o.tmem_allocated(x, x.cta, first_column, columns); });
}

Outcome allocate_pair(Execution& x, const AllocDetail& detail, uint32_t columns) {
  PairRequest& request = request_of(x);
  const uint64_t ticket = x.warp.ticket[x.first_lane()];
  if (ticket < kArrived) {
    tensor_memory(x.cta).check_may_allocate(columns);
    arrive(x, request, {true, PairRequest::Kind::kAllocate, columns, 0}, "tcgen05.alloc");
    x.tell([&](Observer& o) { o.tmem_allocated_with_peer(x); });
  } else if (request.completed > ticket - kArrived) {
    write_address(x, detail, request.allocated_column);
    return Outcome::kNext;
  }
  if (!request.side[~x.cta.rank & 1].arrived)
    return wait_in_pair(x, request, "tcgen05.alloc: the other CTA of the pair");
  TensorMemory& own = tensor_memory(x.cta);
  TensorMemory& other = tensor_memory(peer_of(x, "tcgen05.alloc"));
  const std::optional<uint32_t> room = own.find_room(columns, &other);
  if (!room) return wait_in_pair(x, request, "tcgen05.alloc: room in tensor memory");
  own.take(*room, columns);
  other.take(*room, columns);
  request.allocated_column = *room;
  complete(x, request);
  write_address(x, detail, *room);
  return Outcome::kNext;
}

Outcome execute_alloc(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const AllocDetail&>(*insn.detail);
  require_whole_warp(x, "tcgen05.alloc");
  const uint32_t columns = x.uniform<uint32_t>(insn.slot[0], "column count of tcgen05.alloc");
  x.cta.state<Tcgen05State>();  // which looks for leaks when the CTA exits
  if (detail.cta_group == 2) {
    if (x.warp.ticket[x.first_lane()] < kArrived) peer_of(x, "tcgen05.alloc");
    return allocate_pair(x, detail, columns);
  }
  TensorMemory& tmem = tensor_memory(x.cta);
  tmem.check_may_allocate(columns);
  const std::optional<uint32_t> room = tmem.find_room(columns);
  if (!room) return wait_for(x, "tcgen05.alloc: room in tensor memory");
  tmem.take(*room, columns);
  write_address(x, detail, *room);
  note_allocated(x, *room, columns);
  return Outcome::kNext;
}

// In program order: nothing may still use the columns when this CTA gives them up.
void note_freed(Execution& x, uint32_t first_column, uint32_t columns) {
  x.tell([&](Observer& o) { o.tmem_freed(x, x.first_lane(), x.cta, first_column, columns); });
}

Outcome free_pair(Execution& x, uint32_t first_column, uint32_t columns) {
  PairRequest& request = request_of(x);
  const uint64_t ticket = x.warp.ticket[x.first_lane()];
  if (ticket >= kArrived && request.completed > ticket - kArrived) return Outcome::kNext;
  if (ticket < kArrived) {
    peer_of(x, "tcgen05.dealloc");
    tensor_memory(x.cta).check_may_free(first_column, columns);
    arrive(x, request, {true, PairRequest::Kind::kFree, columns, first_column}, "tcgen05.dealloc");
    note_freed(x, first_column, columns);
  }
  if (!request.side[~x.cta.rank & 1].arrived)
    return wait_in_pair(x, request, "tcgen05.dealloc: the other CTA of the pair");
  tensor_memory(x.cta).free(first_column);
  tensor_memory(peer_of(x, "tcgen05.dealloc")).free(first_column);
  complete(x, request);
  return Outcome::kNext;
}

Outcome execute_dealloc(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const AllocDetail&>(*insn.detail);
  require_whole_warp(x, "tcgen05.dealloc");
  const auto address =
      TmemAddress::of(x.uniform<uint32_t>(insn.slot[0], "address of tcgen05.dealloc"));
  const uint32_t columns = x.uniform<uint32_t>(insn.slot[1], "column count of tcgen05.dealloc");
  if (address.lane != 0)
    x.fault(fmt::format("tcgen05.dealloc at lane {}; an allocation starts at lane 0 (R9)",
                        address.lane));
  if (detail.cta_group == 2) return free_pair(x, address.column, columns);
  TensorMemory& tmem = tensor_memory(x.cta);
  tmem.check_may_free(address.column, columns);
  note_freed(x, address.column, columns);
  tmem.free(address.column);
  x.cluster.changed();
  return Outcome::kNext;
}

Outcome execute_relinquish(Execution& x, const Insn&) {
  require_whole_warp(x, "tcgen05.relinquish_alloc_permit");
  tensor_memory(x.cta).relinquish();
  return Outcome::kNext;
}

AllocDetail* decode_common(Decode& d, Handler handler) {
  auto* detail = d.make_detail<AllocDetail>();
  detail->cta_group = take_cta_group(d);
  if (!d.modifiers().take("sync") || !d.modifiers().take("aligned"))
    d.fail("tcgen05 allocation management needs .sync.aligned");
  d.require_aligned();
  d.insn().execute = handler;
  return detail;
}

}  // namespace

void decode_tcgen05_alloc(Decode& d) {
  AllocDetail* detail = decode_common(d, execute_alloc);
  d.modifiers().take("b32");
  const bool is_shared = d.modifiers().take("shared::cta") || d.modifiers().take("shared");
  d.expect_operands(2, 2);
  detail->destination = shared_operand(d, 0, !is_shared);
  d.insn().slot[0] = d.source(1, Type::kB32);
}

void decode_tcgen05_dealloc(Decode& d) {
  decode_common(d, execute_dealloc);
  d.modifiers().take("b32");
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.source(0, Type::kB32);
  d.insn().slot[1] = d.source(1, Type::kB32);
}

void decode_tcgen05_relinquish(Decode& d) {
  decode_common(d, execute_relinquish);
  d.expect_operands(0, 0);
}

}  // namespace ptxsim
