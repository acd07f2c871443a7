// Loaded code: the PTX of a fat binary (or a bare PTX text), its kernels and its variables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake_cuda/device_memory.hpp"
#include "fake_cuda/device_model.hpp"
#include "fake_cuda/status.hpp"
#include "ptxsim/ptxsim.hpp"

namespace ptxsim::cuda {

// Where the barrier of cooperative_groups' grid_group::sync() lies, while a cooperative launch
// runs; below all allocations.
inline constexpr uint64_t kGridWorkspace = 0xf0'0000'0000;
inline constexpr uint64_t kGridWorkspaceBytes = 64;

class LoadedModule;
struct KernelCosts;  // launch_clock.hpp

// CUfunction, CUkernel and cudaKernel_t point to one.
struct Kernel {
  LoadedModule* module = nullptr;
  const Entry* entry = nullptr;
  std::shared_ptr<const Program> program;  // nullptr: not decoded yet, or it cannot be
  std::string refusal;                     // why it cannot be decoded
  uint32_t max_dynamic_shared_bytes = 0;   // what was allowed beyond 48 KiB; 0: nothing
  bool non_portable_cluster_size = false;
  std::shared_ptr<const KernelCosts> costs;  // nullptr: the clock has not been asked
};

struct ModuleVariable {
  Space space = Space::kGlobal;
  uint64_t bytes = 0;
  // What the host is given as its address. A .const variable is read elsewhere by kernels that name
  // it: each launch has the bytes that are here.
  uint64_t address = 0;
};

class LoadedModule {
 public:
  // `name`: of the PTX in messages, and of the file below `ptx_folder` that it is written to,
  // unless that is empty.
  LoadedModule(std::string name, std::string ptx_folder)
      : name_(std::move(name)), ptx_folder_(std::move(ptx_folder)) {}
  // `image`: the container of a fat binary, or PTX that ends with a zero. What is wrong with it is
  // in message(). The PTX of a fat binary has been assembled by a compiler, so a kernel's body is
  // read only when the kernel is used.
  Status load(const void* image, const DeviceModel& device, DeviceMemory& memory);
  // PTX beside a program, of which a kernel's body is read when the kernel is used.
  Status load_as_used(std::string ptx, const DeviceModel& device, DeviceMemory& memory);
  // What the first use of a module found: kSuccess, or the status that load() gave.
  Status status() const { return status_; }
  const std::string& message() const { return message_; }
  const std::string& text() const { return text_; }  // of the PTX

  Kernel* kernel(const std::string& name);  // nullptr: the module has none of this name
  std::map<std::string, Kernel>& kernels() { return kernels_; }
  Kernel* own(const void* handle);  // nullptr: the handle is no kernel of this module
  ModuleVariable* variable(const std::string& name);
  // A variable that no kernel names, so that the PTX says nothing of it.
  ModuleVariable& add_variable(const std::string& name, uint64_t bytes, bool constant,
                               DeviceMemory& memory);

  // Decodes the kernel when that has not been done. nullptr: Kernel::refusal says why.
  static std::shared_ptr<const Program> program_of(Kernel& kernel);
  // The program with the .const variables as the host has written them.
  std::shared_ptr<const Program> with_constants(const std::shared_ptr<const Program>& program,
                                                DeviceMemory& memory) const;
  // Names of the interpreter's buffers say which module's variables a launch sees.
  void name_variables(DeviceMemory& memory, bool in_use) const;
  void release_variables(DeviceMemory& memory) const;

 private:
  Status fail(Status status, std::string message);
  enum class Bodies { kAtOnce, kAsUsed };
  Status parse(std::string ptx, Bodies reading, DeviceMemory& memory);
  Status check_target(const std::string& ptx, const DeviceModel& device);
  Status allocate_variables(const Entry& body, DeviceMemory& memory);
  void set_addresses(const Entry& body, DeviceMemory& memory) const;  // among initial values

  std::string name_, ptx_folder_;
  Status status_ = kNotFound;
  std::string message_;
  std::shared_ptr<const Module> module_;
  std::string text_;
  std::map<std::string, Kernel> kernels_;
  std::map<std::string, ModuleVariable> variables_;
};

}  // namespace ptxsim::cuda
