#include "fake_cuda/mapped_memory.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ptxsim::cuda {
namespace {

// CUmemAllocationType, CUmemLocationType, CUmemAllocationHandleType
constexpr int kPinned = 1, kDevice = 1, kPosixDescriptor = 1;

bool is_whole(uint64_t bytes) { return bytes != 0 && bytes % MappedMemory::kGranularity == 0; }

}  // namespace

Status MappedMemory::create(uint64_t bytes, const abi::PhysicalProperties& properties,
                            uint64_t& handle) {
  if (!is_whole(bytes) || properties.type != kPinned) return kInvalidValue;
  if (properties.location.type != kDevice) return kNotSupported;
  if (properties.location.id != 0) return kInvalidValue;
  if ((properties.handle_types & ~kPosixDescriptor) != 0) return kNotSupported;
  if (properties.handle_types != 0)
    return keep({0, bytes, properties, 1, false, {}, SharedBytes::make(bytes)}, handle);
  DeviceMemory::Contents contents;
  if (const Status status = memory_.take(bytes, contents); status != kSuccess) return status;
  const uint64_t number = contents.number;
  handle = next_handle_++;
  physical_[handle] = {number, bytes, properties, 1, false, std::move(contents)};
  return kSuccess;
}

// Memory that other processes see.
Status MappedMemory::keep(Physical physical, uint64_t& handle) {
  if (physical.shared == nullptr) return kOutOfMemory;
  const Status status = memory_.take(physical.bytes, physical.number);
  if (status != kSuccess) return status;
  handle = next_handle_++;
  physical_[handle] = std::move(physical);
  return kSuccess;
}

Status MappedMemory::export_to(uint64_t handle, int& descriptor) const {
  const auto found = physical_.find(handle);
  if (found == physical_.end() || found->second.shared == nullptr) return kInvalidValue;
  descriptor = found->second.shared->new_descriptor();
  return descriptor < 0 ? kOutOfMemory : kSuccess;
}

Status MappedMemory::import_from(int descriptor, uint64_t& handle) {
  const auto bytes = SharedBytes::of_descriptor(descriptor);
  if (bytes == nullptr || !is_whole(bytes->bytes())) return kInvalidValue;
  for (const auto& [known, physical] : physical_)
    if (physical.shared != nullptr && physical.shared->identity() == bytes->identity())
      return kNotSupported;
  abi::PhysicalProperties properties{};
  properties.type = kPinned;
  properties.handle_types = kPosixDescriptor;
  properties.location = {kDevice, 0};
  return keep({0, bytes->bytes(), properties, 1, false, {}, bytes}, handle);
}

Status MappedMemory::retain(uint64_t address, uint64_t& handle) {
  const auto next = pieces_.upper_bound(address);
  if (next == pieces_.begin()) return kInvalidValue;
  const auto& [begin, piece] = *std::prev(next);
  if (address - begin >= piece.bytes) return kInvalidValue;
  handle = piece.physical;
  ++physical_.at(handle).handles;
  return kSuccess;
}

Status MappedMemory::release(uint64_t handle) {
  const auto found = physical_.find(handle);
  if (found == physical_.end() || found->second.handles == 0) return kInvalidValue;
  --found->second.handles;
  drop_unused(handle);
  return kSuccess;
}

void MappedMemory::drop_unused(uint64_t physical) {
  const auto found = physical_.find(physical);
  if (found->second.handles != 0 || found->second.is_mapped) return;
  memory_.give_back(found->second.bytes);
  physical_.erase(found);
}

const abi::PhysicalProperties* MappedMemory::properties_of(uint64_t handle) const {
  const auto found = physical_.find(handle);
  return found == physical_.end() ? nullptr : &found->second.properties;
}

Status MappedMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t& address) {
  if (!is_whole(bytes) || (alignment & (alignment - 1)) != 0) return kInvalidValue;
  const Status status = memory_.reserve(bytes, std::max(alignment, kGranularity), address);
  if (status == kSuccess) reserved_[address] = bytes;
  return status;
}

Status MappedMemory::free_range(uint64_t address, uint64_t bytes) {
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second != bytes) return kInvalidValue;
  const auto piece = pieces_.lower_bound(address);
  if (piece != pieces_.end() && piece->first < address + bytes) return kInvalidValue;
  reserved_.erase(found);
  return kSuccess;
}

Status MappedMemory::map(uint64_t address, uint64_t bytes, uint64_t handle) {
  const auto physical = physical_.find(handle);
  const auto next_range = reserved_.upper_bound(address);
  if (physical == physical_.end() || physical->second.handles == 0 || !is_whole(bytes) ||
      address % kGranularity != 0 || next_range == reserved_.begin())
    return kInvalidValue;
  const auto& [begin, length] = *std::prev(next_range);
  if (address - begin > length || bytes > length - (address - begin) ||
      bytes > physical->second.bytes)
    return kInvalidValue;
  const auto next = pieces_.lower_bound(address);
  if (next != pieces_.end() && next->first < address + bytes) return kInvalidValue;
  if (next != pieces_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address)
    return kInvalidValue;
  if (physical->second.is_mapped || bytes != physical->second.bytes) return kNotSupported;
  physical->second.is_mapped = true;
  pieces_[address] = {bytes, handle, kNone};
  return kSuccess;
}

bool MappedMemory::find_pieces(uint64_t address, uint64_t bytes,
                               std::vector<Pieces::iterator>& found) {
  uint64_t at = address;
  for (auto piece = pieces_.find(address); piece != pieces_.end() && piece->first == at; ++piece) {
    if (at >= address + bytes) break;
    found.push_back(piece);
    at += piece->second.bytes;
  }
  return !found.empty() && at == address + bytes;
}

Status MappedMemory::unmap(uint64_t address, uint64_t bytes) {
  std::vector<Pieces::iterator> found;
  if (!find_pieces(address, bytes, found)) return kInvalidValue;
  for (const auto& piece : found) piece->second.access = kNone;
  rebuild();
  for (const auto& piece : found) {
    const uint64_t physical = piece->second.physical;
    physical_.at(physical).is_mapped = false;
    pieces_.erase(piece);
    drop_unused(physical);
  }
  return kSuccess;
}

Status MappedMemory::set_access(uint64_t address, uint64_t bytes, Access access) {
  std::vector<Pieces::iterator> found;
  if (!find_pieces(address, bytes, found)) return kInvalidValue;
  for (const auto& piece : found) piece->second.access = access;
  rebuild();
  return kSuccess;
}

Status MappedMemory::access_of(uint64_t address, Access& access) const {
  const auto next = pieces_.upper_bound(address);
  if (next == pieces_.begin()) return kInvalidValue;
  const auto& [begin, piece] = *std::prev(next);
  if (address - begin >= piece.bytes) return kInvalidValue;
  access = piece.access;
  return kSuccess;
}

std::vector<Allocation> MappedMemory::unmapped() const {
  std::vector<Allocation> found;
  for (const auto& [handle, physical] : physical_)
    if (!physical.is_mapped)
      found.push_back({Home::kMapped, physical.number, 0, physical.bytes, nullptr});
  return found;
}

std::map<uint64_t, MappedMemory::Run> MappedMemory::runs() const {
  std::map<uint64_t, Run> runs;
  auto last = runs.end();
  for (const auto& [address, piece] : pieces_) {
    if (piece.access == kNone) continue;
    const uint64_t shared = physical_.at(piece.physical).shared == nullptr ? 0 : piece.physical;
    const bool goes_on = last != runs.end() && last->second.access == piece.access && shared == 0 &&
                         last->second.shared == 0 && last->first + last->second.bytes == address;
    if (goes_on)
      last->second.bytes += piece.bytes;
    else
      last = runs.emplace(address, Run{piece.bytes, piece.access, shared}).first;
  }
  return runs;
}

// Buffers that stay as they are keep their contents; those that go hand them to their pieces.
void MappedMemory::rebuild() {
  const std::map<uint64_t, Run> wanted = runs();
  for (const auto& [address, run] : built_) {
    const auto same = wanted.find(address);
    if (same != wanted.end() && same->second == run) continue;
    if (run.shared != 0) {
      memory_.detach_shared(address);
      continue;
    }
    DeviceMemory::Contents all = memory_.detach(address);
    uint64_t at = 0;
    for (auto piece = pieces_.find(address); at < run.bytes; ++piece) {
      physical_.at(piece->second.physical).contents = all.part(at, piece->second.bytes);
      at += piece->second.bytes;
    }
  }
  for (const auto& [address, run] : wanted) {
    const auto same = built_.find(address);
    if (same != built_.end() && same->second == run) continue;
    if (run.shared != 0) {
      memory_.attach_shared(address, physical_.at(run.shared).shared, run.access == kRead);
      continue;
    }
    DeviceMemory::Contents all;
    for (auto piece = pieces_.find(address); all.data.size() < run.bytes; ++piece)
      all.append(std::exchange(physical_.at(piece->second.physical).contents, {}));
    memory_.attach(address, std::move(all), run.access == kRead);
  }
  built_ = wanted;
}

}  // namespace ptxsim::cuda
