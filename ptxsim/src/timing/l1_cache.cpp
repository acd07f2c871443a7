#include "timing/l1_cache.hpp"

namespace ptxsim::timing {

bool L1Cache::read(uint64_t sector) {
  constexpr uint64_t kSectors = kLineBytes / kSectorBytes;
  if (lines_ == 0) return false;
  const uint64_t line = sector / kSectors;
  const uint32_t bit = 1u << (sector % kSectors);
  auto found = held_.find(line);
  if (found == held_.end()) {
    if (held_.size() == lines_) {
      held_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(line);
    found = held_.emplace(line, Line{order_.begin(), 0}).first;
  } else {
    order_.splice(order_.begin(), order_, found->second.place);
  }
  const bool was_there = (found->second.sectors & bit) != 0;
  found->second.sectors |= bit;
  return was_there;
}

}  // namespace ptxsim::timing
