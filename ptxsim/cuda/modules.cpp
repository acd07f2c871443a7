#include "ptxsim/cuda/modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include "ptxsim/cuda/fatbin/container.hpp"
#include "ptxsim/cuda/fatbin/select.hpp"
#include "ptxsim/cuda/machine_code.hpp"

namespace ptxsim::cuda {
namespace {

// As Machine looks for them: a variable of that name is the module's, with what earlier launches have left in it.
std::string name_in_use(const std::string& name) { return "module variable " + name; }

// cooperative_groups finds the driver's workspace of a grid in %envreg1 and %envreg2, the high and the low half of its
// address, which here is always the same.
std::string with_workspace(std::string ptx) {
  const std::pair<const char*, uint64_t> halves[] = {{"%envreg1;", kGridWorkspace >> 32},
                                                     {"%envreg2;", kGridWorkspace & UINT32_MAX}};
  for (const auto& [name, value] : halves)
    for (size_t at = 0; (at = ptx.find(name, at)) != std::string::npos;)
      ptx.replace(at, std::strlen(name), fmt::format("0x{:x};", value));
  return ptx;
}

}  // namespace

Status LoadedModule::fail(Status status, std::string message) {
  status_ = status;
  message_ = std::move(message);
  return status;
}

Status LoadedModule::load(const void* image, const DeviceModel& device, DeviceMemory& memory) {
  if (image == nullptr) return fail(kInvalidValue, "no image");
  if (is_machine_code(image))
    return fail(kNoBinaryForGpu, "the image is machine code, and --ptx names no PTX of it");
  const uint64_t bytes = fatbin_bytes(image);
  if (bytes == 0) {
    const std::string text(static_cast<const char*>(image));
    const auto target = target_of(text);
    if (!target) return fail(kInvalidImage, "the image is neither a fat binary nor PTX");
    if (!runs_on(*target, device.architecture()))
      return fail(kInvalidPtx,
                  fmt::format("PTX of sm_{}{} does not run on sm_{}", target->architecture,
                              std::string(target->suffix == 0 ? 0 : 1, target->suffix),
                              device.architecture()));
    return parse(text, memory);
  }
  auto entries = read_fatbin({static_cast<const std::byte*>(image), bytes});
  if (!entries.ok()) return fail(kInvalidImage, entries.error().message);
  auto selection = select_ptx(*entries, device.architecture());
  if (!selection.ok()) return fail(kInvalidImage, selection.error().message);
  if (selection->ptx.empty())
    return fail(kNoBinaryForGpu, fmt::format("no PTX that runs on sm_{}; the fat binary has {}",
                                             device.architecture(), selection->contents));
  return parse(selection->ptx, memory);
}

Status LoadedModule::parse(const std::string& ptx, DeviceMemory& memory) {
  if (!ptx_folder_.empty()) std::ofstream(ptx_folder_ + "/" + name_, std::ios::binary) << ptx;
  auto module = ptxsim::load(with_workspace(ptx), name_);
  if (!module.ok()) return fail(kInvalidPtx, to_string(module.error()));
  module_ = module.value();
  for (const Entry& entry : module_->entries) {
    kernels_[entry.name] = Kernel{this, &entry, nullptr, {}, 0, false};
    for (uint32_t i = entry.num_params; i < entry.variables.size(); ++i) {
      const Variable& v = entry.variables[i];
      if ((v.space != Space::kGlobal && v.space != Space::kConst) || variables_.count(v.name) != 0)
        continue;
      ModuleVariable variable{v.space, std::max<uint64_t>(v.bytes, 1), 0, {}};
      if (v.space == Space::kGlobal) {
        const Status status =
            memory.allocate_variable(v.name, v.initial, variable.bytes, variable.address);
        if (status != kSuccess)
          return fail(status, fmt::format("no memory for variable '{}'", v.name));
      } else {
        variable.value = v.initial;
        variable.value.resize(variable.bytes);
      }
      variables_[v.name] = std::move(variable);
    }
  }
  status_ = kSuccess;
  return kSuccess;
}

Kernel* LoadedModule::kernel(const std::string& name) {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

Kernel* LoadedModule::own(const void* handle) {
  for (auto& [name, kernel] : kernels_)
    if (&kernel == handle) return &kernel;
  return nullptr;
}

ModuleVariable* LoadedModule::variable(const std::string& name) {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

ModuleVariable& LoadedModule::add_variable(const std::string& name, uint64_t bytes, bool constant,
                                           DeviceMemory& memory) {
  ModuleVariable variable{constant ? Space::kConst : Space::kGlobal, bytes, 0, {}};
  if (constant) {
    variable.value.resize(bytes);
  } else {
    memory.allocate_variable(name, {}, bytes, variable.address);
  }
  return variables_[name] = std::move(variable);
}

std::shared_ptr<const Program> LoadedModule::program_of(Kernel& kernel) {
  if (kernel.program == nullptr && kernel.refusal.empty()) {
    auto program = decode(kernel.module->module_, kernel.entry->name);
    if (program.ok()) {
      kernel.program = program.value();
    } else {
      kernel.refusal = to_string(program.error());
    }
  }
  return kernel.program;
}

std::shared_ptr<const Program> LoadedModule::with_constants(
    const std::shared_ptr<const Program>& program) const {
  if (!constants_written_) return program;
  struct Owned {
    Entry entry;
    Program program;
  };
  auto copy = std::make_shared<Owned>(Owned{*program->entry, *program});
  copy->program.entry = &copy->entry;
  for (Variable& v : copy->entry.variables) {
    const auto found = v.space == Space::kConst ? variables_.find(v.name) : variables_.end();
    if (found == variables_.end()) continue;
    v.initial = found->second.value;
    v.has_initializer = true;
  }
  return {copy, &copy->program};
}

void LoadedModule::name_variables(DeviceMemory& memory, bool in_use) const {
  for (const auto& [name, variable] : variables_)
    if (variable.space == Space::kGlobal && variable.address != 0)
      memory.global().find(variable.address)->name =
          in_use ? name_in_use(name) : "variable " + name + " of another module";
}

void LoadedModule::release_variables(DeviceMemory& memory) const {
  for (const auto& [name, variable] : variables_)
    if (variable.space == Space::kGlobal) memory.release_variable(variable.address);
}

}  // namespace ptxsim::cuda
