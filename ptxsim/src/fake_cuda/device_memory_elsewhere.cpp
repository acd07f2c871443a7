// Memory without an address of its own, and memory that other processes see.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "fake_cuda/device_memory.hpp"

namespace ptxsim::cuda {

DeviceMemory::Contents DeviceMemory::Contents::part(uint64_t offset, uint64_t bytes) const {
  const auto begin = static_cast<ptrdiff_t>(offset), end = begin + static_cast<ptrdiff_t>(bytes);
  return {0,
          {data.begin() + begin, data.begin() + end},
          {written.begin() + begin, written.begin() + end}};
}

void DeviceMemory::Contents::append(const Contents& other) {
  data.insert(data.end(), other.data.begin(), other.data.end());
  written.insert(written.end(), other.written.begin(), other.written.end());
}

Status DeviceMemory::take(uint64_t bytes, uint64_t& number) {
  if (bytes > capacity_ - std::min(used_, capacity_)) return kOutOfMemory;
  number = ++count_;
  used_ += bytes;
  highest_ = std::max(highest_, used_);
  return kSuccess;
}

Status DeviceMemory::take(uint64_t bytes, Contents& contents) {
  try {
    contents.data.resize(bytes);
    contents.written.assign(bytes, false);
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
  for (uint64_t i = 0; i < bytes; ++i)
    contents.data[i] = static_cast<std::byte>(kPoisonWord >> (8 * (i % 4)));
  return take(bytes, contents.number);
}

Status DeviceMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t& address) {
  address = next_address(bytes + alignment);
  if (address == 0) return kOutOfMemory;
  address = (address + alignment - 1) / alignment * alignment;
  return kSuccess;
}

// It was counted when it was taken.
void DeviceMemory::attach(uint64_t address, Contents contents, bool read_only) {
  const Allocation allocation{Home::kMapped, ++count_, address, contents.data.size(), nullptr};
  used_ -= allocation.bytes;
  add(allocation,
      fmt::format("allocation {} ({} bytes of {})", allocation.number, allocation.bytes,
                  name_of(allocation.home)),
      std::move(contents.data), true);
  GlobalBuffer& buffer = buffer_of(allocation);
  buffer.written = std::move(contents.written);
  buffer.read_only = read_only;
}

DeviceMemory::Contents DeviceMemory::detach(uint64_t address) {
  const auto found = allocations_.find(address);
  GlobalBuffer& buffer = buffer_of(found->second);
  Contents contents{0, std::move(buffer.data), std::move(buffer.written)};
  buffer.data.resize(1);  // by which erase() finds it
  used_ += found->second.bytes;
  erase(found);
  return contents;
}

void DeviceMemory::attach_shared(uint64_t address, std::shared_ptr<SharedBytes> bytes,
                                 bool read_only) {
  attach(address, {0, std::vector<std::byte>(bytes->bytes()), {}}, read_only);
  Allocation& allocation = allocations_.at(address);
  allocation.host = bytes->begin();
  allocation.shared = std::move(bytes);
}

void DeviceMemory::detach_shared(uint64_t address) {
  const auto found = allocations_.find(address);
  used_ += found->second.bytes;
  erase(found);
}

Status DeviceMemory::share(uint64_t address, std::shared_ptr<SharedBytes>& bytes) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.home != Home::kDevice) return kInvalidValue;
  Allocation& allocation = found->second;
  if (allocation.shared == nullptr) {
    allocation.shared = SharedBytes::make(allocation.bytes);
    if (allocation.shared == nullptr) return kOutOfMemory;
    allocation.host = allocation.shared->begin();
    GlobalBuffer& buffer = buffer_of(allocation);
    std::memcpy(allocation.host, buffer.data.data(), allocation.bytes);
    buffer.written.clear();
  }
  bytes = allocation.shared;
  return kSuccess;
}

Status DeviceMemory::import(const std::shared_ptr<SharedBytes>& bytes, uint64_t& address) {
  for (const auto& [begin, allocation] : allocations_)
    if (allocation.home == Home::kImported && allocation.shared->identity() == bytes->identity()) {
      address = begin;
      ++imports_[begin];
      return kSuccess;
    }
  Allocation allocation{Home::kImported, ++count_, 0, bytes->bytes(), nullptr};
  if (const Status status = place(allocation); status != kSuccess) return status;
  allocation.host = bytes->begin();
  allocation.shared = bytes;
  address = allocation.address;
  imports_[address] = 1;
  return add(allocation,
             fmt::format("allocation {} ({} bytes of {})", allocation.number, allocation.bytes,
                         name_of(allocation.home)),
             std::vector<std::byte>(allocation.bytes), true);
}

}  // namespace ptxsim::cuda
