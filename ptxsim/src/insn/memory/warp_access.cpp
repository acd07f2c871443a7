#include "insn/memory/warp_access.hpp"

#include <algorithm>

#include "machine/vector_clones.hpp"

namespace ptxsim {
namespace {

// offsets[lane] = base[lane] + add, with the least and the most of them. Returns the bits that any
// of the sums has.
template <class Base>
[[gnu::always_inline]] inline uint64_t add_to_lanes(const Base* base, uint64_t add,
                                                    SharedOffsets& offsets) {
  uint64_t bits = 0;
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    const uint64_t offset = base[lane] + add;
    bits |= offset;
    offsets.of_lane[lane] = static_cast<uint32_t>(offset);
  }
  uint32_t least = ~0u, most = 0;  // a loop of their own: 32 bits wide
  for (const uint32_t offset : offsets.of_lane) {
    least = std::min(least, offset);
    most = std::max(most, offset);
  }
  offsets.least = least;
  offsets.most = most;
  return bits;
}

PTXSIM_VECTOR_CLONES uint64_t add_to_all(const uint32_t* base, uint64_t add,
                                         SharedOffsets& offsets) {
  return add_to_lanes(base, add, offsets);
}
PTXSIM_VECTOR_CLONES uint64_t add_to_all(const uint64_t* base, uint64_t add,
                                         SharedOffsets& offsets) {
  return add_to_lanes(base, add, offsets);
}

// addresses[lane] = base[lane] + add.
struct AddressBounds {
  uint64_t least, most;
  uint64_t bits;  // that any of them has
};
template <class Base>
[[gnu::always_inline]] inline AddressBounds add_to_lanes(const Base* base, uint64_t add,
                                                         uint64_t* __restrict addresses) {
  AddressBounds bounds{~uint64_t{0}, 0, 0};
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    const uint64_t address = addresses[lane] = base[lane] + add;
    bounds.least = std::min(bounds.least, address);
    bounds.most = std::max(bounds.most, address);
    bounds.bits |= address;
  }
  return bounds;
}

PTXSIM_VECTOR_CLONES AddressBounds add_to_all(const uint32_t* base, uint64_t add,
                                              uint64_t* addresses) {
  return add_to_lanes(base, add, addresses);
}
PTXSIM_VECTOR_CLONES AddressBounds add_to_all(const uint64_t* base, uint64_t add,
                                              uint64_t* addresses) {
  return add_to_lanes(base, add, addresses);
}

// add_to_all for the register `slot`, of whose lanes without an access nothing is looked at.
template <class Base, class To>
auto add_to_register(const Execution& x, Slot slot, uint64_t add, To& to) {
  const Base* const base = x.source<Base>(slot);
  if (x.mask == kAllLanes) return add_to_all(base, add, to);
  std::array<Base, kWarpSize> of_mask;
  of_mask.fill(base[x.first_lane()]);
  x.for_lanes([&](int lane) { of_mask[static_cast<size_t>(lane)] = base[lane]; });
  return add_to_all(of_mask.data(), add, to);
}
template <class To>
auto add_to_base(const Execution& x, const AddressOperand& address, uint64_t add, To& to) {
  return address.base_bytes == 8 ? add_to_register<uint64_t>(x, address.base, add, to)
                                 : add_to_register<uint32_t>(x, address.base, add, to);
}

}  // namespace

bool find_own_shared(const Execution& x, const AccessDetail& a, SharedOffsets& offsets) {
  const uint64_t window = a.address.space.space == Space::kGeneric ? kSharedWindow : 0;
  if (window == 0 && a.address.space.space != Space::kShared) return false;
  if (!x.cta.mbarriers.empty()) return false;
  const uint64_t own = window + (uint64_t{x.cta.rank} << kSharedRankShift);
  const uint64_t add = static_cast<uint64_t>(a.address.offset) - own;
  const uint64_t bits = add_to_base(x, a.address, add, offsets);
  const SharedMemory& shared = x.cta.shared;
  const uint32_t bytes = a.bytes();
  return bits >> 32 == 0 && (bits & (bytes - 1)) == 0 && offsets.least >= shared.begin() &&
         uint64_t{offsets.most} + bytes <= shared.bytes();
}

bool all_written(const Execution& x, const SharedOffsets& offsets, uint32_t bytes) {
  SharedMemory& shared = x.cta.shared;
  if (shared.is_range_written(offsets.least, offsets.most + bytes)) return true;
  bool is_written = true;
  x.for_lanes([&](int lane) { is_written &= shared.is_written(offsets[lane], bytes); });
  return is_written;
}

bool find_global_reads(const Execution& x, const AccessDetail& a, GlobalReads& reads) {
  const Space space = a.address.space.space;
  if (space != Space::kGlobal && space != Space::kGeneric) return false;
  uint64_t* const addresses = reads.addresses.data();
  const AddressBounds bounds =
      add_to_base(x, a.address, static_cast<uint64_t>(a.address.offset), addresses);
  const uint32_t bytes = a.bytes();
  if ((bounds.bits & (bytes - 1)) != 0 || bounds.most - bounds.least > UINT32_MAX) return false;
  reads.from = x.machine.global().read_range(bounds.least, bounds.most + bytes);
  if (reads.from == nullptr) return false;
  for (size_t lane = 0; lane < kWarpSize; ++lane)
    reads.offsets[lane] = static_cast<uint32_t>(addresses[lane] - bounds.least);
  return true;
}

}  // namespace ptxsim
