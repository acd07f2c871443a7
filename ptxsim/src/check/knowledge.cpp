// What a thread knows of accesses and operations, from its clock.
#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {

bool knows(const std::vector<uint32_t>& clock, uint32_t first, uint32_t lanes, uint32_t epoch) {
  for (; lanes != 0; lanes &= lanes - 1)
    if (clock_value(clock, first + static_cast<uint32_t>(std::countr_zero(lanes))) < epoch)
      return false;
  return true;
}

bool Sanitizer::State::ordered(const ThreadKnowledge& who, uint32_t warp, uint32_t lanes,
                               uint32_t epoch) const {
  if (who.warp == static_cast<int>(warp)) lanes &= ~(1u << who.lane);
  return knows(who.clock->order, index_of(warp, 0), lanes, epoch);
}

bool Sanitizer::State::seen_by_async(const ThreadKnowledge& who, uint32_t warp, uint32_t lanes,
                                     uint32_t epoch) const {
  if (who.warp == static_cast<int>(warp) && (lanes >> who.lane & 1) != 0) {
    if (who.own_async < epoch) return false;
    lanes &= ~(1u << who.lane);
  }
  return knows(who.clock->async, index_of(warp, 0), lanes, epoch);
}

bool Sanitizer::State::reached(const std::vector<uint32_t>& known, uint32_t warp,
                               uint32_t epoch) const {
  for (int lane = 0; lane < static_cast<int>(kWarpSize); ++lane)
    if (clock_value(known, index_of(warp, lane)) >= epoch) return true;
  return false;
}

bool Sanitizer::State::all_read(const ThreadKnowledge& who, const std::vector<uint32_t>& known,
                                const Record& load) const {
  if (load.all_read == 0) return false;
  return who.warp == static_cast<int>(load.warp) || reached(known, load.warp, load.all_read);
}

bool Sanitizer::State::complete(const std::vector<uint32_t>& known, const Record& record,
                                int rank) const {
  if (clock_value(known, record.queue) >= record.sequence) return true;
  return std::ranges::any_of(record.publications, [&](const Publication& publication) {
    const bool is_about = rank < 0 || publication.rank < 0 || publication.rank == rank;
    return is_about && clock_value(known, publication.slot) >= publication.phase;
  });
}

}  // namespace ptxsim
