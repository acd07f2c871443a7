// The one GPU of the process: everything that the driver's and the runtime's calls share.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fake_cuda/device_memory.hpp"
#include "fake_cuda/device_model.hpp"
#include "fake_cuda/images.hpp"
#include "fake_cuda/launch_clock.hpp"
#include "fake_cuda/mapped_memory.hpp"
#include "fake_cuda/modules.hpp"
#include "fake_cuda/recorder.hpp"
#include "fake_cuda/settings.hpp"
#include "fake_cuda/streams.hpp"

namespace ptxsim::cuda {

struct LaunchRequest {
  Kernel* kernel = nullptr;
  Dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool has_cluster = false;
  bool cooperative = false;
  bool overlaps = false;  // the grid before it (programmatic stream serialization)
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> params;
};

struct MemoryRange {
  const void* begin = nullptr;
  uint64_t bytes = 0;
};

class Session {
 public:
  // Made by the first call, and never destroyed: destructors of the program may still call.
  static Session& get();

  // cudaLimit: stack of a thread, printf's buffer, heap, depth and number of launches by kernels,
  // L2's fetches and what persists there; CUDA's defaults.
  static constexpr int kHeapLimit = 2;
  std::array<size_t, 7> limits{1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

  std::recursive_mutex mutex;
  Settings settings;
  const DeviceModel& device;
  DeviceMemory memory;
  MappedMemory mapped{memory};
  DeviceImages images{memory};
  Recorder recorder;
  std::optional<LaunchClock> clock;  // with settings.time
  Streams streams;
  // A kernel that faulted leaves no call working: the status that all of them give from then on.
  Status sticky = kSuccess;

  LoadedModule* add_module();
  LoadedModule* find_module(void* handle) const;
  Status unload(void* handle);
  // The kernel `name` in the files of PTX that the user gave for kernels that come as machine code
  // only. nullptr: no file has it.
  Kernel* substitute(const std::string& name);
  Kernel* find_kernel(void* handle) const;  // nullptr: the handle is no kernel of a loaded module

  // Bytes of the kernel's parameters from pointers to each of them. False: the kernel cannot be
  // decoded.
  bool take_parameters(const Kernel& kernel, void** arguments, std::vector<uint8_t>& params) const;
  // What CUDA refuses before anything runs. The reason is recorded.
  Status check_launch(const LaunchRequest& request) const;
  Status launch(const LaunchRequest& request, GridChain& chain);  // of its stream
  // A copy or a fill of the work under way, `from` null: judged beside other streams.
  void touched(const char* call, const void* to, const void* from, size_t bytes);
  void touched(const char* call, const std::vector<MemoryRange>& writes,
               const std::vector<MemoryRange>& reads);
  // Blocks of one SM, by threads and shared memory. Registers are not known: as many as are needed
  // are there.
  uint32_t blocks_per_sm(const Kernel& kernel, uint32_t threads,
                         uint64_t dynamic_shared_bytes) const;

  void ended();  // the program is: leaks are recorded

 private:
  explicit Session(Settings from);
  Status refuse_launch(const LaunchRequest& request, Status status,
                       const std::string& message) const;
  bool has_run(const LaunchRequest& request);
  void forget_launched();
  bool launched_saw(const GridTrail::Ranges& writes) const;

  std::map<LoadedModule*, std::unique_ptr<LoadedModule>> modules_;
  std::vector<LoadedModule*> substitutes_;  // of settings.substitutes, from the first use on
  uint32_t num_modules_ = 0;                // that were ever loaded
  const LoadedModule* last_launched_ = nullptr;
  // With settings.once: what has been run since its memory changed, and what it touched; nullptr
  // among that: not known, and so any.
  std::set<std::string> launched_;
  std::vector<std::shared_ptr<const GridTrail>> trails_of_launched_;
  uint64_t changes_of_launched_ = 0;  // DeviceMemory::changes() then
};

}  // namespace ptxsim::cuda
