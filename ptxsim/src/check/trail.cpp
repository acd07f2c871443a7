// What the shadow of global memory holds when a grid has ended, for the grids that may overlap it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "check/state.hpp"

namespace ptxsim {
namespace {

// Makes the ranges of one kind, writes or reads, from granules in ascending order.
class TrailWriter {
 public:
  TrailWriter(const Grid& grid, const Program& program, GridTrail& trail)
      : grid_(grid), program_(program), trail_(trail) {}

  // The newest entry of a byte stands for it.
  void add(const GlobalGranule& granule, uint64_t address, bool writes) {
    std::array<const GlobalEntry*, kGlobalGranule> of_byte{};
    bool any = false;
    for (const GlobalEntry& entry : granule.entries)
      if (entry.writes() == writes)
        for (uint32_t left = entry.bytes; left != 0; left &= left - 1, any = true)
          of_byte[static_cast<size_t>(std::countr_zero(left))] = &entry;
    if (!any) return;
    GridTrail::Ranges& ranges = writes ? trail_.writes : trail_.reads;
    for (uint32_t i = 0; i < kGlobalGranule; ++i)
      if (of_byte[i] != nullptr) append(ranges, address + i, *of_byte[i]);
  }

 private:
  void append(GridTrail::Ranges& ranges, uint64_t at, const GlobalEntry& entry) {
    const uint32_t access = access_of(entry);
    const bool is_strong = entry.scope >= Scope::kGpu;
    if (!ranges.empty() && ranges.back().end == at && ranges.back().access == access &&
        ranges.back().is_strong == is_strong)
      ++ranges.back().end;
    else
      ranges.push_back({at, at + 1, access, is_strong});
  }

  // The first access that is met stands for all of its statement.
  uint32_t access_of(const GlobalEntry& entry) {
    const auto [found, is_new] =
        accesses_.try_emplace(entry.statement, static_cast<uint32_t>(trail_.accesses.size()));
    if (is_new)
      trail_.accesses.push_back(
          fmt::format("'{}' at {}, by {}", program_.entry->statements[entry.statement].text,
                      to_string(place_of(program_, entry.statement)),
                      grid_.actor(entry.cluster, entry.is_async ? entry.epoch : entry.actor,
                                  std::countr_zero(entry.lanes))));
    return found->second;
  }

  const Grid& grid_;
  const Program& program_;
  GridTrail& trail_;
  std::map<uint32_t, uint32_t> accesses_;  // by statement
};

}  // namespace

std::shared_ptr<GridTrail> trail_of(const Grid& grid, const Program& program) {
  auto trail = std::make_shared<GridTrail>();
  trail->kernel = program.entry->name;
  trail->waits = grid.waits;
  trail->lets_next_start = grid.lets_next_start;
  trail->waits_before_that = grid.waits_before_next;
  TrailWriter writer(grid, program, *trail);
  for (const GlobalRegion& region : grid.regions()) {
    const uint64_t first = region.address / kGlobalGranule * kGlobalGranule;
    for (size_t page = 0; page < region.pages.size(); ++page) {
      if (region.pages[page] == nullptr) continue;
      for (size_t i = 0; i < GlobalRegion::kPageGranules; ++i) {
        GlobalGranule& granule = (*region.pages[page])[i];
        granule.divide();
        const uint64_t address =
            first + (page * GlobalRegion::kPageGranules + i) * uint64_t{kGlobalGranule};
        writer.add(granule, address, true);
        writer.add(granule, address, false);
      }
    }
  }
  return trail;
}

}  // namespace ptxsim
