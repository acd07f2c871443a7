#include "machine/memory/addresses.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string>

#include "machine/findings.hpp"

namespace ptxsim {
namespace {

bool in_window(uint64_t address, uint64_t window) {
  return address >= window && address - window < kWindowBytes;
}

void check_alignment(const Execution& x, const char* space, uint64_t address, uint32_t bytes,
                     uint32_t alignment, int lane) {
  if (address % alignment != 0)
    x.fault(fmt::format("misaligned {} address 0x{:x} of an access of {} bytes; must be a multiple "
                        "of {} (R14)",
                        space, address, bytes, alignment),
            lane);
}

MemoryAt at_offset(const Execution& x, Space space, const char* name, uint64_t offset,
                   uint64_t size, uint32_t bytes, uint32_t alignment, int lane) {
  check_alignment(x, name, offset, bytes, alignment, lane);
  if (offset > size || size - offset < bytes)
    x.fault(fmt::format("access of {} bytes at {} offset 0x{:x}; there are {} bytes", bytes, name,
                        offset, size),
            lane);
  return {space, nullptr, offset};
}

// Addresses of the parameter, local and constant spaces may come as offsets (names of variables)
// or, converted by cvta, as generic addresses.
uint64_t offset_in(uint64_t address, uint64_t window) {
  return in_window(address, window) ? address - window : address;
}

Space space_of_generic(uint64_t address) {
  if (in_window(address, kSharedWindow)) return Space::kShared;
  if (in_window(address, kLocalWindow)) return Space::kLocal;
  if (in_window(address, kParamWindow)) return Space::kParam;
  if (in_window(address, kConstWindow)) return Space::kConst;
  return Space::kGlobal;
}

// Global memory throws without knowing the lane.
template <class F>
auto with_lane(int lane, F&& f) {
  try {
    return f();
  } catch (const Fault& fault) {
    throw Fault(fault.error().message, fault.error().kind, lane);
  }
}

void tell_of_global(const Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                    int lane) {
  x.cluster.observers.tell_of_global_access(
      [&](Observer& o) { o.global_access(x, lane, at, bytes, kind); });
}

[[noreturn]] void refuse_write(const Execution& x, const char* space, const MemoryAt& at,
                               int lane) {
  x.fault(fmt::format("write to the {} space at offset 0x{:x}; it is read only", space, at.offset),
          lane);
}

// Where an address of a CTA that does not exist may come from.
std::string origin_of_rank(const Execution& x, uint32_t rank) {
  const auto found = x.cluster.mapa_beyond.find(rank);
  if (found == x.cluster.mapa_beyond.end()) return {};
  return fmt::format(", and the address comes from '{}' at {}",
                     x.program().entry->statements[found->second].text,
                     to_string(x.machine.place_of(found->second)));
}

// R14. Where the low half of a generic address is the shared one, such kernels run.
void advise_of_truncation(const Execution& x, uint64_t address, int lane) {
  add_finding(x, lane,
              {14, Severity::kAdvisory,
               fmt::format("0x{:x} as an address of shared memory, which has 32 bits: the upper "
                           "half is dropped",
                           address),
               "cvta.to.shared, which makes shared addresses of generic ones",
               "convert the address, or leave the state space out to use it as a generic one"});
}

// Shared memory: what all ordinary accesses have in common.
std::byte* shared_bytes(Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                        bool reads, int lane) {
  const uint32_t offset = static_cast<uint32_t>(at.offset);
  refuse_live_mbarrier(x, *at.owner, offset, bytes, lane);
  x.tell([&](Observer& o) {
    if (at.value != nullptr && kind == AccessKind::kWrite)
      o.shared_store(x, lane, *at.owner, offset, bytes, at.value);
    else
      o.shared_access(x, lane, *at.owner, offset, bytes, kind);
  });
  SharedMemory& shared = at.owner->shared;
  if (reads && x.machine.options().check_uninitialized && !shared.is_written(offset, bytes)) {
    if (at.unwritten == nullptr) x.fault(text_of_unwritten(x, at, bytes, 0), lane);
    for (uint32_t i = 0; i < bytes; ++i)
      *at.unwritten |= static_cast<uint32_t>(!shared.is_written(offset + i, 1)) << i;
  }
  return shared.at(offset);
}

}  // namespace

// "Addresses are ... truncated if the register width exceeds the state space address width" (PTX
// ISA 9.0, "Addresses as Operands"): the low 32 bits of a 64-bit address count.
SharedAt resolve_shared(const Execution& x, uint64_t address, uint64_t bytes, uint32_t alignment,
                        bool own_only, int lane) {
  check_alignment(x, "shared", address, static_cast<uint32_t>(bytes), alignment, lane);
  if (address >> 32 != 0) {
    advise_of_truncation(x, address, lane);
    address &= 0xffffffffu;
  }
  const uint32_t rank = static_cast<uint32_t>(address >> kSharedRankShift);
  const uint32_t offset = static_cast<uint32_t>(address) & kSharedOffsetMask;
  if (rank >= x.cluster.ctas.size())
    x.fault(fmt::format("shared address 0x{:x} names CTA rank {}; the cluster has {} CTAs{}",
                        address, rank, x.cluster.ctas.size(), origin_of_rank(x, rank)),
            lane);
  Cta& owner = *x.cluster.ctas[rank];
  if (own_only && &owner != &x.cta)
    x.fault(fmt::format("shared::cta address 0x{:x} names CTA rank {}; the executing CTA has rank "
                        "{} (.shared::cluster is needed for others)",
                        address, rank, x.cta.rank),
            lane);
  if (offset < owner.shared.begin() || offset + bytes > owner.shared.bytes())
    x.fault(fmt::format("shared memory access of {} bytes at address 0x{:x}; the CTA's memory is "
                        "0x{:x} .. 0x{:x}",
                        bytes, address, shared_address(owner, owner.shared.begin()),
                        shared_address(owner, owner.shared.bytes())),
            lane);
  if (owner.exited && &owner != &x.cta)
    x.fault(
        fmt::format("access to shared memory of CTA rank {}, which has exited; a cluster barrier "
                    "before its exit is missing (R11)",
                    rank),
        lane);
  return {&owner, offset};
}

uint64_t shared_from_generic(const Execution& x, uint64_t generic, int lane) {
  if (generic >> 32 == 0) return generic;
  if (!in_window(generic, kSharedWindow))
    x.fault(fmt::format("generic address 0x{:x} is not one of shared memory", generic), lane);
  return generic - kSharedWindow;
}

MemoryAt locate(const Execution& x, AddressSpace space, uint64_t address, uint32_t bytes,
                uint32_t alignment, int lane) {
  Space kind = space.space;
  bool own_shared_only = space.own_shared_only;
  if (kind == Space::kGeneric) {
    kind = space_of_generic(address);
    own_shared_only = false;
    if (kind == Space::kShared) address -= kSharedWindow;
  }
  switch (kind) {
    case Space::kShared: {
      const SharedAt at = resolve_shared(x, address, bytes, alignment, own_shared_only, lane);
      return {kind, at.cta, at.offset};
    }
    case Space::kLocal:
      return at_offset(x, kind, "local", offset_in(address, kLocalWindow), x.warp.local_top[lane],
                       bytes, alignment, lane);
    case Space::kParam:
      return at_offset(x, kind, "parameter", offset_in(address, kParamWindow),
                       x.machine.params().size(), bytes, alignment, lane);
    case Space::kConst:
      return at_offset(x, kind, "constant", offset_in(address, kConstWindow),
                       x.machine.const_bank().size(), bytes, alignment, lane);
    default:
      check_alignment(x, "global", address, bytes, alignment, lane);
  }
  return {Space::kGlobal, nullptr, address};
}

void refuse_live_mbarrier(const Execution& x, const Cta& owner, uint32_t offset, uint32_t bytes,
                          int lane) {
  const auto& barriers = owner.mbarriers;
  if (barriers.empty() || offset >= barriers.rbegin()->first + 8 ||
      offset + bytes <= barriers.begin()->first)
    return;
  const auto next = barriers.lower_bound(offset + bytes);
  if (next == barriers.begin()) return;
  const uint32_t barrier = std::prev(next)->first;
  if (barrier + 8 <= offset) return;
  x.fault(fmt::format("ordinary access of {} bytes at shared address 0x{:x} touches the live "
                      "mbarrier 0x{:x}; only mbarrier instructions may, until mbarrier.inval (R10)",
                      bytes, shared_address(owner, offset), shared_address(owner, barrier)),
          lane);
}

const std::byte* bytes_to_read(Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                               int lane) {
  switch (at.space) {
    case Space::kShared:
      return shared_bytes(x, at, bytes, kind, true, lane);
    case Space::kLocal:
      return x.warp.local_at(lane, at.offset);
    case Space::kParam:
      return reinterpret_cast<const std::byte*>(x.machine.params().data()) + at.offset;
    case Space::kConst:
      return x.machine.const_bank().data() + at.offset;
    default:
      tell_of_global(x, at, bytes, AccessKind::kRead, lane);
      return with_lane(lane,
                       [&] { return x.machine.global().read(at.offset, bytes, at.unwritten); });
  }
}

std::byte* bytes_to_write(Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                          int lane) {
  switch (at.space) {
    case Space::kShared: {
      std::byte* to = shared_bytes(x, at, bytes, kind, false, lane);
      at.owner->shared.mark_written(static_cast<uint32_t>(at.offset), bytes);
      return to;
    }
    case Space::kLocal:
      return x.warp.local_at(lane, at.offset);
    case Space::kParam:
      refuse_write(x, "parameter", at, lane);
    case Space::kConst:
      refuse_write(x, "constant", at, lane);
    default:
      tell_of_global(x, at, bytes, AccessKind::kWrite, lane);
      return with_lane(lane, [&] { return x.machine.global().write(at.offset, bytes); });
  }
}

std::byte* bytes_to_update(Execution& x, const MemoryAt& at, uint32_t bytes, int lane) {
  if (at.space == Space::kShared)
    return shared_bytes(x, at, bytes, AccessKind::kAtomic, true, lane);
  if (at.space != Space::kGlobal)
    x.fault("atomic operation outside global and shared memory", lane);
  tell_of_global(x, at, bytes, AccessKind::kAtomic, lane);
  return with_lane(lane, [&] {
    x.machine.global().read(at.offset, bytes, at.unwritten);
    return x.machine.global().write(at.offset, bytes);
  });
}

void Observer::global_reads(const Execution& x, uint32_t lanes, const uint64_t* addresses,
                            const MemoryAt& at, uint32_t bytes) {
  MemoryAt of_lane = at;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    of_lane.offset = addresses[lane];
    global_access(x, lane, of_lane, bytes, AccessKind::kRead);
  }
}

void forget_bytes(Execution& x, const MemoryAt& at, uint32_t unwritten) {
  for (; unwritten != 0; unwritten &= unwritten - 1) {
    const uint64_t offset = at.offset + static_cast<uint32_t>(std::countr_zero(unwritten));
    if (at.space == Space::kShared) at.owner->shared.mark_unwritten(static_cast<uint32_t>(offset));
    if (at.space == Space::kGlobal) x.machine.global().mark_unwritten(offset);
  }
}

std::string text_of_unwritten(const Execution& x, const MemoryAt& at, uint32_t bytes,
                              uint32_t unwritten) {
  if (at.space == Space::kGlobal)
    return x.machine.global().text_of_unwritten(
        at.offset, bytes, at.offset + static_cast<uint32_t>(std::countr_zero(unwritten)));
  return fmt::format(
      "read of {} bytes at shared address 0x{:x}, of which some were never written; or a copy into "
      "them has not completed",
      bytes, shared_address(*at.owner, static_cast<uint32_t>(at.offset)));
}

std::string text_of_read(const Execution& x, const MemoryAt& at, uint32_t bytes,
                         uint32_t unwritten) {
  return fmt::format("{}; '{}' at {}", text_of_unwritten(x, at, bytes, unwritten),
                     x.program().entry->statements[x.insn->statement].text,
                     to_string(x.machine.place_of(x.insn->statement)));
}

}  // namespace ptxsim
