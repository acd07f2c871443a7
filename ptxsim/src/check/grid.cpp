#include "check/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "machine/execution.hpp"

namespace ptxsim::check {
namespace {

Dim3 unflatten(uint64_t index, const Dim3& extent) {
  return {static_cast<uint32_t>(index % extent[0]),
          static_cast<uint32_t>(index / extent[0] % extent[1]),
          static_cast<uint32_t>(index / extent[0] / extent[1])};
}

}  // namespace

void GlobalGranule::divide_spread() {
  std::vector<GlobalEntry> divided;
  divided.reserve(entries.size() + hidden);
  uint8_t divided_run = run;
  for (size_t i = 0; i < entries.size(); ++i) {
    GlobalEntry part = entries[i];
    if (i == run) divided_run = static_cast<uint8_t>(divided.size());
    if (!std::exchange(part.is_spread, false)) {
      divided.push_back(part);
      continue;
    }
    const uint32_t each = kGlobalGranule / static_cast<uint32_t>(std::popcount(part.lanes));
    uint32_t bytes = (1u << each) - 1;
    for (uint32_t left = part.lanes; left != 0; left &= left - 1, bytes <<= each) {
      part.lanes = left & (0 - left);
      part.bytes = static_cast<uint16_t>(bytes);
      divided.push_back(part);
    }
  }
  entries = std::move(divided);
  run = divided_run;
  hidden = 0;
}

GlobalGranule& GlobalRegion::granule(uint64_t index) {
  if (pages.empty()) {
    const uint64_t granules =
        (bytes + address % kGlobalGranule + kGlobalGranule - 1) / kGlobalGranule;
    pages.resize((granules + kPageGranules - 1) / kPageGranules);
  }
  std::unique_ptr<Page>& page = pages[index / kPageGranules];
  if (page == nullptr) page = std::make_unique<Page>();
  return (*page)[index % kPageGranules];
}

Grid::Grid(Machine& machine)
    : machine_(machine),
      extents_(machine.launch().grid),
      block_(machine.launch().block),
      cluster_(machine.launch().cluster),
      earlier_grids_(machine.launch().earlier_grids) {
  for (const GlobalBuffer& buffer : machine.global().buffers()) {
    GlobalRegion& region = regions_.emplace_back();
    region.address = buffer.address;
    region.bytes = buffer.data.size();
    region.name = buffer.name;
    region.read_only = buffer.read_only;
  }
  const auto mark = [&](const std::vector<std::string>& names, bool GlobalRegion::*flag) {
    for (const std::string& name : names) {
      const auto found = std::ranges::find(regions_, name, &GlobalRegion::name);
      if (found == regions_.end())
        throw Fault(fmt::format("previous grid: there is no buffer '{}'", name), ErrorKind::kInput);
      (*found).*flag = true;
    }
  };
  mark(machine.launch().previous_grid.writes, &GlobalRegion::previous_writes);
  mark(machine.launch().previous_grid.reads, &GlobalRegion::previous_reads);
}

GlobalRegion* Grid::region_of(uint64_t address, uint64_t bytes) {
  const auto holds = [&](const GlobalRegion& region) {
    const uint64_t offset = address - region.address;
    return offset < region.bytes && region.bytes - offset >= bytes;
  };
  if (last_ < regions_.size() && holds(regions_[last_])) return &regions_[last_];
  const auto next =
      std::upper_bound(regions_.begin(), regions_.end(), address,
                       [](uint64_t a, const GlobalRegion& region) { return a < region.address; });
  if (next == regions_.begin() || !holds(*std::prev(next))) return nullptr;
  last_ = static_cast<size_t>(next - regions_.begin()) - 1;
  return &regions_[last_];
}

std::string Grid::actor(uint32_t cluster, uint32_t warp, int lane) const {
  const uint32_t warps = static_cast<uint32_t>((volume(block_) + kWarpSize - 1) / kWarpSize);
  const uint32_t rank = warp / warps;
  const Dim3 of_cluster = unflatten(
      cluster, {extents_[0] / cluster_[0], extents_[1] / cluster_[1], extents_[2] / cluster_[2]});
  const Dim3 inside = unflatten(rank, cluster_);
  std::string text =
      fmt::format("CTA ({},{},{})", of_cluster[0] * cluster_[0] + inside[0],
                  of_cluster[1] * cluster_[1] + inside[1], of_cluster[2] * cluster_[2] + inside[2]);
  if (volume(cluster_) > 1) text += fmt::format(" rank {}", rank);
  return text + fmt::format(", warp {}, lane {}", warp % warps, lane);
}

std::string Grid::place(uint64_t address) {
  const GlobalRegion* region = region_of(address, 1);
  if (region == nullptr) return fmt::format("global memory 0x{:x}", address);
  return fmt::format("global memory 0x{:x} ({} + 0x{:x})", address, region->name,
                     address - region->address);
}

}  // namespace ptxsim::check
