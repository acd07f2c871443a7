#include "ptxsim/machine/grid_trail.hpp"

#include <algorithm>
#include <utility>

namespace ptxsim {
namespace {

constexpr size_t kMostBeside = 4;  // of grids that never wait for each other

}  // namespace

const GridTrail::Range* find_overlap(const GridTrail::Ranges& ranges, uint64_t begin,
                                     uint64_t end) {
  const auto found =
      std::upper_bound(ranges.begin(), ranges.end(), begin,
                       [](uint64_t at, const GridTrail::Range& range) { return at < range.end; });
  return found != ranges.end() && found->begin < end ? &*found : nullptr;
}

// PTX ISA 9.0, "griddepcontrol": the next grid may start when every CTA has executed
// .launch_dependents or ended, and .wait waits for the grids before to end. "If the prerequisite
// grid is using griddepcontrol.launch_dependents, then the dependent grid must use
// griddepcontrol.wait": without it the next one starts when this one has ended. That a grid has
// ended says nothing of the one before it, unless one of its threads waited.
EarlierGrids GridChain::beside_next() const {
  EarlierGrids beside;
  if (last_ == nullptr) return beside;
  if (last_->lets_next_start) beside.push_back({last_, true});
  const bool is_over = last_->waits,
             is_over_at_start = !last_->lets_next_start ? last_->waits : last_->waits_before_that;
  for (const EarlierGrid& earlier : beside_last_) {
    if (is_over_at_start && earlier.is_waited_for) continue;
    if (beside.size() < kMostBeside)
      beside.push_back({earlier.trail, is_over && earlier.is_waited_for});
  }
  return beside;
}

void GridChain::add(std::shared_ptr<const GridTrail> trail, EarlierGrids beside) {
  last_ = std::move(trail);
  beside_last_ = std::move(beside);
}

void GridChain::clear() { add(nullptr, {}); }

}  // namespace ptxsim
