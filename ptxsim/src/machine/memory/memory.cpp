#include "ptxsim/machine/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ptxsim {
namespace {

void fill_with_poison(std::byte* data, size_t bytes, size_t offset) {
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(kPoisonWord >> (8 * ((offset + i) % 4)));
}

}  // namespace

GlobalBuffer& GlobalMemory::add(std::string name, uint64_t address, std::vector<std::byte> data,
                                bool initialized, bool read_only) {
  const uint64_t bytes = data.size();
  if (address == 0 || bytes == 0 || address + bytes < address)
    throw Fault(
        fmt::format(
            "buffer '{}' of {} bytes at 0x{:x}; needs an address above 0 and at least one byte",
            name, bytes, address),
        ErrorKind::kInput);
  if (address + bytes > kSharedWindow)
    throw Fault(
        fmt::format(
            "buffer '{}' at 0x{:x} reaches into the windows of other state spaces from 0x{:x}",
            name, address, kSharedWindow),
        ErrorKind::kInput);
  const auto place =
      std::lower_bound(buffers_.begin(), buffers_.end(), address,
                       [](const GlobalBuffer& b, uint64_t a) { return b.address < a; });
  const bool hits_next = place != buffers_.end() && address + bytes > place->address;
  const bool hits_last = place != buffers_.begin() &&
                         std::prev(place)->address + std::prev(place)->data.size() > address;
  if (hits_next || hits_last)
    throw Fault(fmt::format("buffer '{}' at 0x{:x} overlaps buffer '{}'", name, address,
                            hits_next ? place->name : std::prev(place)->name),
                ErrorKind::kInput);
  GlobalBuffer buffer{std::move(name), address, std::move(data), {}, read_only};
  if (!initialized) {
    fill_with_poison(buffer.data.data(), buffer.data.size(), 0);
    buffer.written.assign(buffer.data.size(), false);
  }
  last_ = 0;
  return *buffers_.insert(place, std::move(buffer));
}

bool GlobalMemory::remove(uint64_t address) {
  GlobalBuffer* buffer = find(address);
  if (buffer == nullptr || buffer->address != address) return false;
  buffers_.erase(buffers_.begin() + (buffer - buffers_.data()));
  last_ = 0;
  return true;
}

GlobalBuffer* GlobalMemory::find(uint64_t address) {
  const auto next =
      std::upper_bound(buffers_.begin(), buffers_.end(), address,
                       [](uint64_t a, const GlobalBuffer& b) { return a < b.address; });
  if (next == buffers_.begin()) return nullptr;
  GlobalBuffer& buffer = *std::prev(next);
  return address - buffer.address < buffer.data.size() ? &buffer : nullptr;
}

GlobalBuffer* GlobalMemory::find(const std::string& name) {
  for (GlobalBuffer& buffer : buffers_)
    if (buffer.name == name) return &buffer;
  return nullptr;
}

GlobalBuffer* GlobalMemory::holder(uint64_t address, uint64_t bytes) {
  if (last_ < buffers_.size()) {
    GlobalBuffer& buffer = buffers_[last_];
    const uint64_t offset = address - buffer.address;
    if (offset < buffer.data.size() && buffer.data.size() - offset >= bytes) return &buffer;
  }
  GlobalBuffer* buffer = find(address);
  if (buffer == nullptr || buffer->data.size() - (address - buffer->address) < bytes)
    return nullptr;
  last_ = static_cast<size_t>(buffer - buffers_.data());
  return buffer;
}

GlobalBuffer& GlobalMemory::at(uint64_t address, uint64_t bytes, const char* what) {
  if (GlobalBuffer* const buffer = holder(address, bytes)) return *buffer;
  std::string nearest = "there are none";
  uint64_t best = UINT64_MAX;
  for (const GlobalBuffer& b : buffers_) {
    const uint64_t end = b.address + b.data.size();
    const uint64_t distance = address >= end         ? address - end
                              : address >= b.address ? 0
                                                     : b.address - address;
    if (distance >= best) continue;
    best = distance;
    nearest = fmt::format("the nearest is '{}' at 0x{:x} of {} bytes (offset {})", b.name,
                          b.address, b.data.size(), static_cast<int64_t>(address - b.address));
  }
  if (const std::string heap = heap_text(address); !heap.empty()) nearest = heap;
  throw Fault(fmt::format("global {} of {} bytes at 0x{:x} is not inside a registered buffer; {}",
                          what, bytes, address, nearest));
}

std::string GlobalMemory::text_of_unwritten(uint64_t address, uint64_t bytes, uint64_t unwritten) {
  const GlobalBuffer& buffer = at(address, bytes, "read");
  return fmt::format("global read of {} bytes at 0x{:x}: byte {} of buffer '{}' was never written",
                     bytes, address, unwritten - buffer.address, buffer.name);
}

const std::byte* GlobalMemory::read(uint64_t address, uint64_t bytes, uint32_t* unwritten) {
  GlobalBuffer& buffer = at(address, bytes, "read");
  const uint64_t offset = address - buffer.address;
  if (check_uninitialized && !buffer.written.empty()) {
    for (uint64_t i = 0; i < bytes; ++i) {
      if (buffer.written[offset + i]) continue;
      if (unwritten == nullptr) throw Fault(text_of_unwritten(address, bytes, address + i));
      *unwritten |= 1u << i;
    }
  }
  return buffer.data.data() + offset;
}

const std::byte* GlobalMemory::read_range(uint64_t least, uint64_t end) {
  const GlobalBuffer* const buffer = holder(least, end - least);
  if (buffer == nullptr) return nullptr;
  const uint64_t offset = least - buffer->address;
  if (check_uninitialized && !buffer->written.empty()) {
    // So many bits cost as much to look at as those of 32 lanes one by one.
    constexpr uint64_t kMost = 1024;
    if (end - least > kMost) return nullptr;
    const auto first = buffer->written.begin() + static_cast<ptrdiff_t>(offset);
    const auto last = first + static_cast<ptrdiff_t>(end - least);
    if (std::find(first, last, false) != last) return nullptr;
  }
  return buffer->data.data() + offset;
}

std::byte* GlobalMemory::write(uint64_t address, uint64_t bytes) {
  GlobalBuffer& buffer = at(address, bytes, "write");
  const uint64_t offset = address - buffer.address;
  if (buffer.read_only)
    throw Fault(fmt::format("global write of {} bytes at 0x{:x}: buffer '{}' is read only", bytes,
                            address, buffer.name));
  if (!buffer.written.empty())
    for (uint64_t i = 0; i < bytes; ++i) buffer.written[offset + i] = true;
  return buffer.data.data() + offset;
}

void GlobalMemory::mark_unwritten(uint64_t address) {
  GlobalBuffer& buffer = at(address, 1, "write");
  if (buffer.written.empty()) buffer.written.assign(buffer.data.size(), true);
  buffer.written[address - buffer.address] = false;
}

SharedMemory::SharedMemory(uint32_t begin, uint32_t bytes)
    : begin_(begin), data_(bytes), written_((bytes + 63) / 64) {
  fill_with_poison(data_.data(), data_.size(), 0);
  if (begin < kSharedBegin) {
    std::fill_n(data_.begin() + begin, kSharedBegin - begin, std::byte{0});
    mark_written(begin, kSharedBegin - begin);
  }
}

void SharedMemory::check_range(uint32_t offset, uint64_t bytes) const {
  if (offset < begin_ || offset + bytes > data_.size())
    throw Fault(fmt::format(
        "shared memory access of {} bytes at offset 0x{:x}; the CTA's memory is 0x{:x} .. 0x{:x}",
        bytes, offset, begin_, data_.size()));
}

bool SharedMemory::is_written_far(uint32_t offset, uint32_t bytes) const {
  for (const uint32_t end = offset + bytes; offset < end;) {
    const uint32_t count = std::min(64 - offset % 64, end - offset);
    if (!is_written(offset, count)) return false;
    offset += count;
  }
  return true;
}

bool SharedMemory::find_written(uint32_t least, uint32_t end) {
  // So many bytes cost as much to look at as those of 32 lanes one by one.
  constexpr uint32_t kMost = 16 * 1024;
  if (end - least > kMost || !is_written_far(least, end - least)) return false;
  // With the words around it, so that reads of tiles that lie together are remembered together.
  constexpr uint32_t kWords = 32;
  const auto is_full = [&](uint32_t word) { return written_[word] == ~uint64_t{0}; };
  uint32_t first = least / 64, last = (end - 1) / 64;
  const uint32_t lowest = first - std::min(first, kWords);
  const uint32_t highest = std::min(last + kWords, static_cast<uint32_t>(written_.size()) - 1);
  for (; is_full(first); --first) {
    least = std::min(least, first * 64);
    if (first == lowest) break;
  }
  for (; is_full(last); ++last) {
    end = std::max(end, (last + 1) * 64);
    if (last == highest) break;
  }
  const bool joins = least <= known_end_ && end >= known_least_;
  known_least_ = joins ? std::min(least, known_least_) : least;
  known_end_ = joins ? std::max(end, known_end_) : end;
  return true;
}

void SharedMemory::poison(uint32_t offset, uint32_t bytes) {
  fill_with_poison(data_.data() + offset, bytes, offset);
  mark(offset, bytes, [](uint64_t& word, uint64_t mask) { word &= ~mask; });
  known_least_ = known_end_ = 0;
}

}  // namespace ptxsim
