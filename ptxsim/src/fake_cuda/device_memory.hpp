// What a program has allocated: device memory, and host memory that kernels see.
//
// The bytes of device memory are buffers of the interpreter. Host memory that kernels see (managed,
// pinned, registered) has a buffer beside it, which is loaded before a launch and stored after it:
// nothing runs at the same time as a kernel. Memory that other processes see, too, but they may run
// then: what a launch has not changed there is not stored. All of it counts as written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "fake_cuda/shared_bytes.hpp"
#include "fake_cuda/status.hpp"
#include "ptxsim/machine/memory.hpp"

namespace ptxsim::cuda {

// Nothing of the host lies here, so that an address says what it is.
inline constexpr uint64_t kDeviceBegin = 0x0100'0000'0000;
inline constexpr uint64_t kDeviceEnd = 0x0200'0000'0000;

enum class Home : uint8_t {
  kDevice,           // cudaMalloc
  kModule,           // a __device__ or __constant__ variable
  kManaged,          // cudaMallocManaged
  kManagedVariable,  // __managed__
  kPinned,           // cudaMallocHost
  kArray,            // cudaMallocArray: texels, which nothing but images and copies reach
  kCondition,        // what a handle of conditional nodes points to
  kGraph,            // a node of a graph that allocates
  kMapped,           // cuMemMap
  kImported,         // of another process
  kRegistered,       // cudaHostRegister: the kernel's address is another than the host's
};
const char* name_of(Home home);
inline bool is_variable(Home home) {
  return home == Home::kModule || home == Home::kManagedVariable;
}
inline bool is_managed(Home home) {
  return home == Home::kManaged || home == Home::kManagedVariable;
}

struct Allocation {
  Home home = Home::kDevice;
  uint64_t number = 0;   // of all, counted from 1
  uint64_t address = 0;  // as kernels see it
  uint64_t bytes = 0;
  std::byte* host = nullptr;  // as the host sees it; nullptr: it does not
  // The GPU's memory that other processes see: its bytes are at `host` as the host's are, but for
  // programs it is not the host's.
  std::shared_ptr<SharedBytes> shared = nullptr;
};
inline bool is_seen_by_host(const Allocation& a) {
  return a.host != nullptr && a.shared == nullptr;
}

// Where a pointer of the host program points to.
struct Location {
  const Allocation* allocation = nullptr;  // nullptr: memory of the host that no kernel sees
  uint64_t offset = 0;
};

// Bytes of what nodes of graphs allocate. What is reserved is used and was, and has not been given
// back since (cudaDeviceGraphMemTrim).
struct GraphMemory {
  uint64_t used = 0, highest_used = 0, reserved = 0, highest_reserved = 0;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t capacity);

  // kDevice, kManaged, kPinned, kArray, kCondition. For 0 bytes: address 0, as cudaMalloc gives it.
  Status allocate(Home home, uint64_t bytes, uint64_t& address);
  Status allocate_variable(Home home, const std::string& name, const std::vector<uint8_t>& initial,
                           uint64_t bytes, uint64_t& address);
  void release_variable(uint64_t address);
  // Memory of a graph's node: it has its address from now on, and is there from the node's run
  // until it is released, time and again. kInvalidValue: no bytes; not promised, or there already.
  Status promise(uint64_t bytes, uint64_t& address);
  Status allocate_promised(uint64_t address);
  // Memory without an address of its own (MappedMemory). take() and give_back() count it, attach()
  // and detach() make it a buffer that kernels see and take it away again.
  struct Contents {
    uint64_t number = 0;  // of all allocations
    std::vector<std::byte> data;
    std::vector<bool> written;
    Contents part(uint64_t offset, uint64_t bytes) const;
    void append(const Contents& other);
  };
  Status take(uint64_t bytes, Contents& contents);
  Status take(uint64_t bytes, uint64_t& number);  // of what lies elsewhere
  void give_back(uint64_t bytes) { used_ -= bytes; }
  Status reserve(uint64_t bytes, uint64_t alignment, uint64_t& address);
  void attach(uint64_t address, Contents contents, bool read_only);
  Contents detach(uint64_t address);
  void attach_shared(uint64_t address, std::shared_ptr<SharedBytes> bytes, bool read_only);
  void detach_shared(uint64_t address);
  // The allocation at `address` becomes memory that other processes may see; it is so once.
  // kInvalidValue: it is none of cudaMalloc's.
  Status share(uint64_t address, std::shared_ptr<SharedBytes>& bytes);
  // Memory of another process has one address until it is released as often as it was imported.
  Status import(const std::shared_ptr<SharedBytes>& bytes, uint64_t& address);
  // What [pointer, pointer + bytes) is, or will be, inside of; nullptr: nothing promised.
  const Allocation* find_promised(const void* pointer, uint64_t bytes) const;
  Status register_host(void* host, uint64_t bytes);
  // `address` as the host has it; 0 is nothing to be freed. kInvalidValue: no allocation of that
  // kind begins there.
  Status release(uint64_t address, bool of_host);

  // kInvalidValue: [pointer, pointer + bytes) is device memory, and not inside one allocation.
  Status locate(const void* pointer, uint64_t bytes, Location& location) const;
  // Both may be any memory; unwritten bytes are copied as unwritten.
  Status copy(void* to, const void* from, uint64_t bytes);
  Status fill(void* to, const void* element, uint32_t element_bytes, uint64_t count);

  bool has_host_memory() const;  // that kernels see, or other processes
  void load_host_memory();
  void store_host_memory();

  GlobalMemory& global() { return global_; }
  GlobalBuffer& buffer_of(const Allocation& allocation) {
    return *global_.find(allocation.address);
  }
  const std::map<uint64_t, Allocation>& allocations() const { return allocations_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }
  GraphMemory of_graphs;
  uint64_t changes() const { return changes_; }  // allocations and releases so far
  uint64_t highest() const { return highest_; }  // that was ever used at once

 private:
  Status place(Allocation& allocation);  // gives it its addresses
  Status add(const Allocation& allocation, const std::string& name, std::vector<std::byte> data,
             bool initialized);
  uint64_t next_address(uint64_t bytes);
  void erase(std::map<uint64_t, Allocation>::iterator allocation);

  GlobalMemory global_;
  std::map<uint64_t, Allocation> allocations_;         // by the kernel's address
  std::map<uint64_t, Allocation> promised_;            // likewise, there or not
  std::map<uint64_t, uint64_t> imports_;               // address -> how often it was imported
  std::map<uint64_t, std::vector<std::byte>> loaded_;  // shared memory as a launch found it
  uint64_t capacity_ = 0, used_ = 0, highest_ = 0;
  uint64_t next_ = kDeviceBegin;
  uint64_t next_host_ = kDeviceEnd;  // below the interpreter's windows, unlike what malloc gives
  uint64_t count_ = 0, changes_ = 0;
};

}  // namespace ptxsim::cuda
