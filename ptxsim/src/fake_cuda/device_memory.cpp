#include "fake_cuda/device_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ptxsim::cuda {
namespace {

constexpr uint64_t kAlignment =
    512;  // cudaMalloc aligns to at least 256 (Programming Guide, "Device Memory Accesses")
constexpr uint64_t kRedZone = 1 << 16;  // between allocations
constexpr uint64_t kPage = 4096;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
bool is_device_address(uint64_t address) { return address >= kDeviceBegin && address < kDeviceEnd; }
bool is_mapped(Home home) { return is_managed(home) || home == Home::kPinned; }

}  // namespace

const char* name_of(Home home) {
  switch (home) {
    case Home::kDevice:
      return "device memory";
    case Home::kModule:
      return "a variable";
    case Home::kManaged:
      return "managed memory";
    case Home::kManagedVariable:
      return "a managed variable";
    case Home::kPinned:
      return "pinned host memory";
    case Home::kArray:
      return "a CUDA array";
    case Home::kCondition:
      return "a condition of a graph";
    case Home::kGraph:
      return "a graph's memory";
    case Home::kMapped:
      return "mapped memory";
    case Home::kImported:
      return "another process' memory";
    case Home::kRegistered:
      return "registered host memory";
  }
  return "";
}

// Nothing else of the process may lie where device addresses are. Where the range cannot be
// reserved, nothing does either, or a copy will say so.
DeviceMemory::DeviceMemory(uint64_t capacity) : capacity_(capacity) {
  mmap(reinterpret_cast<void*>(kDeviceBegin), kDeviceEnd - kDeviceBegin, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

// Addresses are not used twice: an access to freed memory is one outside of every buffer.
uint64_t DeviceMemory::next_address(uint64_t bytes) {
  const uint64_t address = next_;
  const uint64_t step = (bytes + kAlignment - 1) / kAlignment * kAlignment + kRedZone;
  if (step > kDeviceEnd - address) return 0;
  next_ += step;
  return address;
}

Status DeviceMemory::add(const Allocation& allocation, const std::string& name,
                         std::vector<std::byte> data, bool initialized) {
  ++changes_;
  global_.add(name, allocation.address, std::move(data), initialized, false);
  used_ += allocation.bytes;
  highest_ = std::max(highest_, used_);
  allocations_[allocation.address] = allocation;
  return kSuccess;
}

Status DeviceMemory::place(Allocation& allocation) {
  if (!is_mapped(allocation.home)) {
    allocation.address = next_address(allocation.bytes);
    return allocation.address == 0 ? kOutOfMemory : kSuccess;
  }
  void* host = mmap(reinterpret_cast<void*>(next_host_), allocation.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  next_host_ += (allocation.bytes + kPage - 1) / kPage * kPage + kRedZone;
  if (host == MAP_FAILED) return kOutOfMemory;
  allocation.host = static_cast<std::byte*>(host);
  allocation.address = address_of(host);
  return kSuccess;
}

Status DeviceMemory::allocate(Home home, uint64_t bytes, uint64_t& address) {
  address = 0;
  if (bytes == 0) return kSuccess;
  if (bytes > capacity_ - std::min(used_, capacity_)) return kOutOfMemory;
  Allocation allocation{home, ++count_, 0, bytes, nullptr};
  try {
    std::vector<std::byte> data(bytes);
    if (const Status status = place(allocation); status != kSuccess) return status;
    address = allocation.address;
    const std::string name =
        fmt::format("allocation {} ({} bytes of {})", allocation.number, bytes, name_of(home));
    return add(allocation, name, std::move(data), is_mapped(home));
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

Status DeviceMemory::allocate_variable(Home home, const std::string& name,
                                       const std::vector<uint8_t>& initial, uint64_t bytes,
                                       uint64_t& address) {
  Allocation allocation{home, ++count_, 0, bytes, nullptr};
  if (const Status status = place(allocation); status != kSuccess) return status;
  std::vector<std::byte> data(bytes);
  std::memcpy(data.data(), initial.data(), std::min<uint64_t>(initial.size(), bytes));
  if (allocation.host != nullptr) std::memcpy(allocation.host, data.data(), bytes);
  address = allocation.address;
  return add(allocation, name, std::move(data), true);
}

Status DeviceMemory::register_host(void* host, uint64_t bytes) {
  if (host == nullptr || bytes == 0 || is_device_address(address_of(host))) return kInvalidValue;
  // The kernel's address has the same offset in its page.
  const uint64_t offset = address_of(host) % kPage;
  const uint64_t room = next_address(bytes + 2 * kPage);
  if (room == 0) return kOutOfMemory;
  Allocation allocation{Home::kRegistered, ++count_, (room + kPage - 1) / kPage * kPage + offset,
                        bytes, static_cast<std::byte*>(host)};
  return add(
      allocation,
      fmt::format("allocation {} ({} bytes of registered host memory)", allocation.number, bytes),
      std::vector<std::byte>(bytes), true);
}

Status DeviceMemory::release(uint64_t address, bool of_host) {
  if (address == 0) return kSuccess;
  const auto found = std::find_if(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
    const Allocation& a = entry.second;
    if (!of_host)
      return a.address == address &&
             (a.home == Home::kDevice || a.home == Home::kManaged || a.home == Home::kArray ||
              a.home == Home::kGraph || a.home == Home::kImported);
    return address_of(a.host) == address &&
           (a.home == Home::kPinned || a.home == Home::kRegistered);
  });
  if (found == allocations_.end()) return kInvalidValue;
  if (found->second.home == Home::kImported && --imports_[found->first] != 0) return kSuccess;
  if (is_mapped(found->second.home)) munmap(found->second.host, found->second.bytes);
  erase(found);
  return kSuccess;
}

Status DeviceMemory::promise(uint64_t bytes, uint64_t& address) {
  address = 0;
  if (bytes == 0) return kInvalidValue;
  address = next_address(bytes);
  if (address == 0) return kOutOfMemory;
  promised_[address] = {Home::kGraph, 0, address, bytes, nullptr};
  return kSuccess;
}

Status DeviceMemory::allocate_promised(uint64_t address) {
  const auto found = promised_.find(address);
  if (found == promised_.end() || allocations_.count(address) != 0) return kInvalidValue;
  Allocation allocation = found->second;
  if (allocation.bytes > capacity_ - std::min(used_, capacity_)) return kOutOfMemory;
  allocation.number = ++count_;
  of_graphs.used += allocation.bytes;
  of_graphs.highest_used = std::max(of_graphs.highest_used, of_graphs.used);
  of_graphs.reserved = std::max(of_graphs.reserved, of_graphs.used);
  of_graphs.highest_reserved = std::max(of_graphs.highest_reserved, of_graphs.reserved);
  return add(allocation,
             fmt::format("allocation {} ({} bytes of {})", allocation.number, allocation.bytes,
                         name_of(allocation.home)),
             std::vector<std::byte>(allocation.bytes), false);
}

const Allocation* DeviceMemory::find_promised(const void* pointer, uint64_t bytes) const {
  const auto next = promised_.upper_bound(address_of(pointer));
  if (next == promised_.begin()) return nullptr;
  const Allocation& allocation = std::prev(next)->second;
  const uint64_t offset = address_of(pointer) - allocation.address;
  return offset < allocation.bytes && bytes <= allocation.bytes - offset ? &allocation : nullptr;
}

void DeviceMemory::release_variable(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || !is_variable(found->second.home)) return;
  if (is_mapped(found->second.home)) munmap(found->second.host, found->second.bytes);
  erase(found);
}

void DeviceMemory::erase(std::map<uint64_t, Allocation>::iterator allocation) {
  ++changes_;
  used_ -= allocation->second.bytes;
  if (allocation->second.home == Home::kGraph) of_graphs.used -= allocation->second.bytes;
  global_.remove(allocation->first);
  allocations_.erase(allocation);
}

Status DeviceMemory::locate(const void* pointer, uint64_t bytes, Location& location) const {
  location = {};
  const uint64_t address = address_of(pointer);
  const auto next = allocations_.upper_bound(address);
  if (next != allocations_.begin()) {
    const Allocation& allocation = std::prev(next)->second;
    if (address - allocation.address < allocation.bytes) {
      location = {&allocation, address - allocation.address};
      return bytes <= allocation.bytes - location.offset ? kSuccess : kInvalidValue;
    }
  }
  if (is_device_address(address) || pointer == nullptr) return kInvalidValue;
  for (const auto& [begin, allocation] : allocations_)
    if (allocation.home == Home::kRegistered && address >= address_of(allocation.host) &&
        address - address_of(allocation.host) < allocation.bytes)
      location = {&allocation, address - address_of(allocation.host)};
  return kSuccess;
}

Status DeviceMemory::copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return kSuccess;
  Location target, source;
  if (locate(to, bytes, target) != kSuccess || locate(from, bytes, source) != kSuccess)
    return kInvalidValue;
  GlobalBuffer* into = target.allocation != nullptr && target.allocation->host == nullptr
                           ? &buffer_of(*target.allocation)
                           : nullptr;
  GlobalBuffer* out_of = source.allocation != nullptr && source.allocation->host == nullptr
                             ? &buffer_of(*source.allocation)
                             : nullptr;
  // Registered memory may be named by the kernel's address: the bytes are the host's.
  const auto bytes_at = [](const Location& at, GlobalBuffer* buffer, const void* pointer) {
    if (buffer != nullptr) return buffer->data.data() + at.offset;
    if (at.allocation != nullptr) return at.allocation->host + at.offset;
    return static_cast<std::byte*>(const_cast<void*>(pointer));
  };
  std::memmove(bytes_at(target, into, to), bytes_at(source, out_of, from), bytes);
  if (into == nullptr || into->written.empty()) return kSuccess;
  const auto written = into->written.begin() + static_cast<ptrdiff_t>(target.offset);
  if (out_of == nullptr || out_of->written.empty()) {
    std::fill_n(written, bytes, true);
  } else {
    const std::vector<bool> known(
        out_of->written.begin() + static_cast<ptrdiff_t>(source.offset),
        out_of->written.begin() + static_cast<ptrdiff_t>(source.offset + bytes));
    std::copy(known.begin(), known.end(), written);
  }
  return kSuccess;
}

Status DeviceMemory::fill(void* to, const void* element, uint32_t element_bytes, uint64_t count) {
  if (count == 0) return kSuccess;
  Location target;
  if (count > capacity_ || locate(to, count * element_bytes, target) != kSuccess ||
      target.allocation == nullptr)
    return kInvalidValue;
  const Allocation& allocation = *target.allocation;
  GlobalBuffer& buffer = buffer_of(allocation);
  std::byte* data =
      (allocation.host == nullptr ? buffer.data.data() : allocation.host) + target.offset;
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(data + i * element_bytes, element, element_bytes);
  if (allocation.host == nullptr && !buffer.written.empty())
    std::fill_n(buffer.written.begin() + static_cast<ptrdiff_t>(target.offset),
                count * element_bytes, true);
  return kSuccess;
}

bool DeviceMemory::has_host_memory() const {
  return std::ranges::any_of(allocations_, [](const auto& a) { return a.second.host != nullptr; });
}

void DeviceMemory::load_host_memory() {
  for (const auto& [address, a] : allocations_)
    if (a.host != nullptr) {
      std::vector<std::byte>& data = buffer_of(a).data;
      std::memcpy(data.data(), a.host, a.bytes);
      if (a.shared != nullptr) loaded_[address] = data;
    }
}

void DeviceMemory::store_host_memory() {
  for (const auto& [address, a] : allocations_)
    if (a.shared != nullptr) {
      const std::vector<std::byte>&data = buffer_of(a).data, &before = loaded_.at(address);
      for (uint64_t i = 0; i < a.bytes; ++i)
        if (data[i] != before[i]) a.host[i] = data[i];
    } else if (a.host != nullptr) {
      std::memcpy(a.host, buffer_of(a).data.data(), a.bytes);
    }
  loaded_.clear();
}

}  // namespace ptxsim::cuda
