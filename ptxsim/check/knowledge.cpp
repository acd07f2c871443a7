// What a thread knows of accesses and operations, from its clock.
#include "ptxsim/check/state.hpp"

namespace ptxsim {
namespace {

bool knows(const std::vector<uint32_t>& clock, uint32_t first, uint32_t lanes, uint32_t epoch) {
  for (; lanes != 0; lanes &= lanes - 1)
    if (clock_value(clock, first + static_cast<uint32_t>(std::countr_zero(lanes))) < epoch)
      return false;
  return true;
}

}  // namespace

bool Sanitizer::State::ordered(const Knower& who, uint32_t warp, uint32_t lanes,
                               uint32_t epoch) const {
  if (who.warp == static_cast<int>(warp)) lanes &= ~(1u << who.lane);
  return knows(who.clock->order, index_of(warp, 0), lanes, epoch);
}

bool Sanitizer::State::seen_by_async(const Knower& who, uint32_t warp, uint32_t lanes,
                                     uint32_t epoch) const {
  if (who.warp == static_cast<int>(warp) && (lanes >> who.lane & 1) != 0) {
    if (who.own_async < epoch) return false;
    lanes &= ~(1u << who.lane);
  }
  return knows(who.clock->async, index_of(warp, 0), lanes, epoch);
}

// An operation that completes on barriers, as one that is multicast, shows its effects in a CTA by
// the barrier of that CTA, or of the other CTA of its pair; only if it has neither by any.
bool Sanitizer::State::complete(const std::vector<uint32_t>& known, const Record& record,
                                uint32_t rank) const {
  if (clock_value(known, record.queue) >= record.sequence) return true;
  int closest = 0;
  bool is_known = false;
  for (const Publication& publication : record.publications) {
    const int closeness = publication.rank == rank ? 3 : publication.rank == (rank ^ 1) ? 2 : 1;
    if (closeness < closest) continue;
    if (closeness > closest) is_known = false;
    closest = closeness;
    is_known |= clock_value(known, publication.slot) >= publication.phase;
  }
  return is_known;
}

}  // namespace ptxsim
