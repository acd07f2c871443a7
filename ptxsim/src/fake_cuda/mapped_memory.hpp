// Memory by handles (cuMemCreate): physical memory, ranges of addresses that the program reserves,
// and what of the one is mapped where in the other.
//
// What is mapped side by side with the same access is one buffer of the interpreter, so that copies
// and accesses may go from one piece to the next, as they may on a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/device_memory.hpp"
#include "fake_cuda/status.hpp"

namespace ptxsim::cuda {

class MappedMemory {
 public:
  enum Access : int { kNone = 0, kRead = 1, kReadWrite = 3 };  // CUmemAccess_flags
  static constexpr uint64_t kGranularity = 2 << 20;            // bytes, of sizes and addresses

  explicit MappedMemory(DeviceMemory& memory) : memory_(memory) {}

  // kInvalidValue, of these and of all below: what the arguments name is not there, is not a whole
  // number of granules, or is in use. kNotSupported: CUDA would do it.
  Status create(uint64_t bytes, const abi::PhysicalProperties& properties, uint64_t& handle);
  Status retain(uint64_t address, uint64_t& handle);  // of what is mapped there
  // Gives a descriptor, for another process, of memory that was created for it; and a handle of
  // what such a descriptor stands for. kNotSupported: it is this process' own.
  Status export_to(uint64_t handle, int& descriptor) const;
  Status import_from(int descriptor, uint64_t& handle);
  // The memory goes when no handle and no mapping is left.
  Status release(uint64_t handle);
  const abi::PhysicalProperties* properties_of(uint64_t handle) const;

  Status reserve(uint64_t bytes, uint64_t alignment, uint64_t& address);
  Status free_range(uint64_t address, uint64_t bytes);  // all of a reservation, with nothing mapped

  // All of the physical memory, and nowhere else at the time.
  Status map(uint64_t address, uint64_t bytes, uint64_t handle);
  // Whole pieces, side by side.
  Status unmap(uint64_t address, uint64_t bytes);
  Status set_access(uint64_t address, uint64_t bytes, Access access);
  Status access_of(uint64_t address, Access& access) const;

  // What has handles, and is mapped nowhere.
  std::vector<Allocation> unmapped() const;

 private:
  struct Physical {
    uint64_t number = 0;  // of all allocations
    uint64_t bytes = 0;
    abi::PhysicalProperties properties = {};
    uint64_t handles = 1;
    bool is_mapped = false;
    DeviceMemory::Contents contents;                // while no buffer has it
    std::shared_ptr<SharedBytes> shared = nullptr;  // with other processes: in place of contents
  };
  struct Piece {
    uint64_t bytes = 0;
    uint64_t physical = 0;
    Access access = kNone;
  };
  struct Run {  // a buffer of adjacent pieces, or of one that is shared
    uint64_t bytes = 0;
    Access access = kNone;
    uint64_t shared = 0;  // its handle
    bool operator==(const Run&) const = default;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by address

  // The pieces that make up [address, address + bytes). False: others than whole ones, or gaps.
  bool find_pieces(uint64_t address, uint64_t bytes, std::vector<Pieces::iterator>& found);
  std::map<uint64_t, Run> runs() const;  // as the pieces have it
  void rebuild();                        // the buffers
  void drop_unused(uint64_t physical);
  Status keep(Physical physical, uint64_t& handle);

  DeviceMemory& memory_;
  std::map<uint64_t, Physical> physical_;  // by handle
  std::map<uint64_t, uint64_t> reserved_;  // address -> bytes
  Pieces pieces_;
  std::map<uint64_t, Run> built_;
  uint64_t next_handle_ = 1;
};

}  // namespace ptxsim::cuda
