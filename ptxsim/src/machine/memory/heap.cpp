// malloc and free in kernels.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ptxsim/machine/memory.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kHeapBase = 0x0000'7d00'0000'0000;
constexpr uint64_t kAlignment = 16;  // CUDA C++ Programming Guide
constexpr uint64_t kRedZone = 256;   // at least, between allocations

}  // namespace

uint64_t GlobalMemory::allocate(uint64_t bytes, uint64_t limit, const std::string& by) {
  const uint64_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes == 0 || bytes > limit || taken > limit - std::min(limit, heap_used_)) return 0;
  uint64_t address = kHeapBase;
  if (!heap_.empty()) address = heap_.rbegin()->first + heap_.rbegin()->second.bytes + kRedZone;
  address = (address + 2 * kAlignment - 1) / (2 * kAlignment) * (2 * kAlignment) + kAlignment;
  add(fmt::format("malloc of {} bytes by {}", bytes, by), address, std::vector<std::byte>(bytes),
      false, false);
  heap_.emplace_hint(heap_.end(), address, Allocation{bytes, by, {}});
  heap_used_ += taken;
  return address;
}

void GlobalMemory::release(uint64_t address, const std::string& by) {
  if (address == 0) return;
  const auto found = heap_.find(address);
  if (found == heap_.end()) {
    const std::string text = heap_text(address);
    throw Fault(fmt::format("free of 0x{:x}, which malloc has not returned{}{}", address,
                            text.empty() ? "" : "; ", text));
  }
  Allocation& allocation = found->second;
  if (!allocation.freed_by.empty())
    throw Fault(fmt::format("free of 0x{:x} for the second time; {}", address, heap_text(address)));
  allocation.freed_by = by;
  heap_used_ -= (allocation.bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto buffer =
      std::lower_bound(buffers_.begin(), buffers_.end(), address,
                       [](const GlobalBuffer& b, uint64_t a) { return b.address < a; });
  buffers_.erase(buffer);
  last_ = 0;
}

std::string GlobalMemory::heap_text(uint64_t address) const {
  const auto next = heap_.upper_bound(address);
  if (next == heap_.begin()) return {};
  const auto& [begin, allocation] = *std::prev(next);
  if (address - begin >= allocation.bytes + kRedZone) return {};
  std::string text = fmt::format("it is at offset {} of the {} bytes that {} allocated",
                                 address - begin, allocation.bytes, allocation.by);
  if (!allocation.freed_by.empty()) text += fmt::format(", and {} freed", allocation.freed_by);
  return text;
}

}  // namespace ptxsim
