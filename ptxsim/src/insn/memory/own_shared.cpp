#include "insn/memory/own_shared.hpp"

namespace ptxsim {

bool find_own_shared(const Execution& x, const AccessDetail& a, SharedOffsets& offsets) {
  const uint64_t window = a.address.space.space == Space::kGeneric ? kSharedWindow : 0;
  if (window == 0 && a.address.space.space != Space::kShared) return false;
  const SharedMemory& shared = x.cta.shared;
  const uint32_t bytes = a.bytes();
  if (!x.cta.mbarriers.empty() || shared.bytes() < shared.begin() + bytes) return false;
  const uint64_t own = window + (uint64_t{x.cta.rank} << kSharedRankShift) + shared.begin();
  const uint64_t most = shared.bytes() - shared.begin() - bytes, misaligned = bytes - 1;
  const auto find = [&](const auto* base) {
    uint32_t others = 0;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {  // of all, so that the loop is vectorised
      const uint64_t offset = base[lane] + static_cast<uint64_t>(a.address.offset) - own;
      const bool is_other = offset > most || ((offset + shared.begin()) & misaligned) != 0;
      others |= static_cast<uint32_t>(is_other) << lane;
      offsets[lane] = static_cast<uint32_t>(offset + shared.begin());
    }
    return (others & x.mask) == 0;
  };
  return a.address.base_bytes == 8 ? find(x.source<uint64_t>(a.address.base))
                                   : find(x.source<uint32_t>(a.address.base));
}

bool all_written(const Execution& x, const SharedOffsets& offsets, uint32_t bytes) {
  const SharedMemory& shared = x.cta.shared;
  bool is_written = true;
  x.for_lanes([&](int lane) {
    is_written &= shared.is_written(offsets[static_cast<size_t>(lane)], bytes);
  });
  return is_written;
}

}  // namespace ptxsim
