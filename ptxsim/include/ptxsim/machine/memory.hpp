// Address spaces. Global memory is what the caller registered; everything else between is a red
// zone.
//
// Generic 64-bit addresses: windows below stand for shared, local, parameter and constant memory;
// the rest is global. shared::cluster 32-bit addresses are (rank of the CTA in its cluster << 24) |
// offset, also those of the own CTA (ISA reference 8.3; checked on an H200, see docs/evidence.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"
#include "ptxsim/machine/image.hpp"

namespace ptxsim {

inline constexpr uint64_t kSharedWindow = 0x0000'7f00'0000'0000;  // + shared::cluster address
inline constexpr uint64_t kLocalWindow = 0x0000'7f10'0000'0000;
inline constexpr uint64_t kParamWindow = 0x0000'7f20'0000'0000;
inline constexpr uint64_t kConstWindow = 0x0000'7f30'0000'0000;  // .const variables
inline constexpr uint64_t kModuleGlobalBase =
    0x0000'7e00'0000'0000;  // .global variables of the module
inline constexpr uint64_t kWindowBytes = 0x10'0000'0000;
inline constexpr uint32_t kSharedRankShift = 24;
inline constexpr uint32_t kSharedOffsetMask = 0x00ff'ffff;
inline constexpr uint32_t kSharedBegin = 1024;  // the first KiB of a CTA belongs to the system
// The part of it that CUDA's cooperative groups use, 288 bytes by their header, from
// %reserved_smem_offset_1 to %reserved_smem_offset_end, which is 288 on an H200. A kernel that does
// not ask for it may not touch it.
inline constexpr uint32_t kReservedForGroups = 0, kReservedEnd = 288;
inline constexpr uint32_t kMaxSharedBytes = 228 * 1024;  // with the reserved KiB

struct GlobalBuffer {
  std::string name;
  uint64_t address = 0;
  std::vector<std::byte> data;
  std::vector<bool> written;  // per byte; empty: all of it counts as written
  bool read_only = false;
};

class GlobalMemory {
 public:
  // Registers a buffer. Overlaps, address 0 and addresses inside the windows are kInput Faults.
  // `initialized` false: bytes count as never written until the kernel writes them, and hold a
  // poison pattern.
  GlobalBuffer& add(std::string name, uint64_t address, std::vector<std::byte> data,
                    bool initialized, bool read_only);
  // Takes the buffer that begins at `address` away. False: none begins there.
  bool remove(uint64_t address);
  // The bytes at [address, address + bytes): a Fault that names the nearest buffer when they are
  // not inside one. A read looks at `written` when check_uninitialized is set; a write marks.
  // With `unwritten`, for at most 32 bytes, the unwritten ones are noted there, a bit each,
  // instead.
  const std::byte* read(uint64_t address, uint64_t bytes, uint32_t* unwritten = nullptr);
  std::string text_of_unwritten(uint64_t address, uint64_t bytes, uint64_t unwritten);
  // Where the byte at `least` lies, if [least, end) is inside one buffer and a read would find each
  // byte of it written; null otherwise.
  const std::byte* read_range(uint64_t least, uint64_t end);
  std::byte* write(uint64_t address, uint64_t bytes);
  void mark_unwritten(uint64_t address);  // one byte, which was just stored
  GlobalBuffer* find(uint64_t address);   // nullptr when no buffer holds it
  GlobalBuffer* find(const std::string& name);
  const std::vector<GlobalBuffer>& buffers() const { return buffers_; }  // by address
  bool check_uninitialized = true;
  Images images;  // texture and surface objects, whose texels lie in buffers

  // The heap of malloc and free in kernels (machine/heap.cpp; CUDA C++ Programming Guide, "Dynamic
  // Global Memory Allocation"). It lives as long as this memory, over several launches. Allocations
  // are unwritten buffers, at multiples of 16 and of nothing more; no address is used
  // twice. `by` says who asks, for messages. 0: no bytes, or more than `limit` in all.
  uint64_t allocate(uint64_t bytes, uint64_t limit, const std::string& by);
  void release(uint64_t address, const std::string& by);  // a Fault for what is not allocated

 private:
  GlobalBuffer* holder(uint64_t address, uint64_t bytes);  // null: none holds all of these
  GlobalBuffer& at(uint64_t address, uint64_t bytes, const char* what);
  std::string heap_text(uint64_t address) const;  // what lies or lay there; empty: nothing
  struct Allocation {
    uint64_t bytes;
    std::string by, freed_by;  // empty: not freed
  };
  std::vector<GlobalBuffer> buffers_;  // by address
  size_t last_ = 0;
  std::map<uint64_t, Allocation> heap_;  // by address, those freed included
  uint64_t heap_used_ = 0;
};

// Shared memory of one CTA: `bytes` from offset 0, the reserved KiB included. Filled with a NaN
// pattern. Nothing before `begin` may be touched; what there is of the reserved KiB is 0:
// cooperative groups update it without writing it first.
class SharedMemory {
 public:
  SharedMemory(uint32_t begin, uint32_t bytes);
  uint32_t begin() const { return begin_; }
  uint32_t bytes() const { return static_cast<uint32_t>(data_.size()); }
  std::byte* at(uint32_t offset) { return data_.data() + offset; }
  const std::byte* at(uint32_t offset) const { return data_.data() + offset; }
  // Throws a Fault when [offset, offset + bytes) is not inside the CTA's allocation.
  void check_range(uint32_t offset, uint64_t bytes) const;
  bool is_written(uint32_t offset, uint32_t bytes) const {  // every byte
    const uint32_t bit = offset % 64;
    if (bit + bytes > 64) return is_written_far(offset, bytes);
    return (~written_[offset / 64] & bits(bit, bytes)) == 0;
  }
  // The same of [least, end); what was found last is remembered.
  bool is_range_written(uint32_t least, uint32_t end) {
    return (least >= known_least_ && end <= known_end_) || find_written(least, end);
  }
  void mark_written(uint32_t offset, uint32_t bytes) {
    mark(offset, bytes, [](uint64_t& word, uint64_t mask) { word |= mask; });
  }
  void mark_unwritten(uint32_t offset) {
    written_[offset / 64] &= ~bits(offset % 64, 1);
    known_least_ = known_end_ = 0;
  }  // one byte, which was just stored
  void poison(uint32_t offset,
              uint32_t bytes);  // NaN pattern; not "written" until the operation completes

 private:
  static constexpr uint64_t bits(uint32_t first, uint32_t count) {  // of 64
    return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
  }
  bool is_written_far(uint32_t offset, uint32_t bytes) const;
  bool find_written(uint32_t least, uint32_t end);
  template <class F>
  void mark(uint32_t offset, uint32_t bytes, F&& f) {  // f(word, mask)
    for (const uint32_t end = offset + bytes; offset < end;) {
      const uint32_t bit = offset % 64, count = std::min(64 - bit, end - offset);
      f(written_[offset / 64], bits(bit, count));
      offset += count;
    }
  }
  uint32_t begin_;
  std::vector<std::byte> data_;
  std::vector<uint64_t> written_;  // a bit a byte
  // Every byte of these is written.
  uint32_t known_least_ = 0, known_end_ = 0;
};

inline constexpr uint32_t kPoisonWord =
    0x7fff'dead;  // a NaN as f32, f16 and bf16 halves of it too (0x7fff)

}  // namespace ptxsim
