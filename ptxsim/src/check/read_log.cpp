#include "check/read_log.hpp"

#include <bit>

namespace ptxsim::check {

bool ReadLog::take(const ShadowEntry& entry, const SharedOffsets& offsets, uint32_t bytes) {
  constexpr size_t kMostReads = 4096;  // 700 kB
  if (reads_.size() == kMostReads) return false;
  const uint32_t first = offsets.least / kGranule, last = (offsets.most + bytes - 1) / kGranule;
  if (!written_.has_any(first, last)) {
    read_.add(first, last);
  } else {
    for (uint32_t left = entry.lanes; left != 0; left &= left - 1)
      if (written_.has(offsets[std::countr_zero(left)] / kGranule)) return false;
    for (uint32_t left = entry.lanes; left != 0; left &= left - 1)
      read_.add(offsets[std::countr_zero(left)] / kGranule);
  }
  reads_.push_back({entry, bytes, offsets.of_lane});
  return true;
}

}  // namespace ptxsim::check
