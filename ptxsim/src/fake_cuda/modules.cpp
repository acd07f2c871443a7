#include "fake_cuda/modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include "fake_cuda/fatbin/container.hpp"
#include "fake_cuda/fatbin/select.hpp"
#include "fake_cuda/machine_code.hpp"

namespace ptxsim::cuda {
namespace {

// As Machine looks for them: a variable of that name is the module's, with what earlier launches
// have left in it.
std::string name_in_use(const std::string& name) { return "module variable " + name; }

// cooperative_groups finds the driver's workspace of a grid in %envreg1 and %envreg2, the high and
// the low half of its address, which here is always the same.
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
    std::string text(static_cast<const char*>(image));
    if (const Status status = check_target(text, device); status != kSuccess) return status;
    return parse(std::move(text), Bodies::kAtOnce, memory);
  }
  auto entries = read_fatbin({static_cast<const std::byte*>(image), bytes});
  if (!entries.ok()) return fail(kInvalidImage, entries.error().message);
  auto selection = select_ptx(*entries, device.architecture());
  if (!selection.ok()) return fail(kInvalidImage, selection.error().message);
  if (selection->ptx.empty())
    return fail(kNoBinaryForGpu, fmt::format("no PTX that runs on sm_{}; the fat binary has {}",
                                             device.architecture(), selection->contents));
  return parse(std::move(selection->ptx), Bodies::kAsUsed, memory);
}

Status LoadedModule::load_as_used(std::string ptx, const DeviceModel& device,
                                  DeviceMemory& memory) {
  if (const Status status = check_target(ptx, device); status != kSuccess) return status;
  return parse(std::move(ptx), Bodies::kAsUsed, memory);
}

Status LoadedModule::check_target(const std::string& ptx, const DeviceModel& device) {
  const auto target = target_of(ptx);
  if (!target) return fail(kInvalidImage, "the image is neither a fat binary nor PTX");
  if (runs_on(*target, device.architecture())) return kSuccess;
  return fail(kInvalidPtx, fmt::format("PTX of sm_{}{} does not run on sm_{}", target->architecture,
                                       std::string(target->suffix == 0 ? 0 : 1, target->suffix),
                                       device.architecture()));
}

// Variables outside bodies belong to all kernels, and are known by the bodies that name them: then
// all are read.
Status LoadedModule::parse(std::string ptx, Bodies reading, DeviceMemory& memory) {
  if (!ptx_folder_.empty()) std::ofstream(ptx_folder_ + "/" + name_, std::ios::binary) << ptx;
  text_ = with_workspace(std::move(ptx));
  auto module = reading == Bodies::kAsUsed ? ptxsim::load_entry(text_, name_, {})
                                           : ptxsim::load(text_, name_);
  if (module.ok() && (*module)->has_variables &&
      !std::ranges::all_of((*module)->entries, &Entry::is_read))
    module = ptxsim::load(text_, name_);
  if (!module.ok()) return fail(kInvalidPtx, to_string(module.error()));
  module_ = module.value();
  std::vector<const Entry*> bodies;
  for (const Entry& entry : module_->entries) {
    kernels_[entry.name] = Kernel{this, &entry, nullptr, {}, 0, false, nullptr};
    bodies.push_back(&entry);
  }
  for (const Function& function : module_->functions) bodies.push_back(&function.body);
  for (const Entry* body : bodies)
    if (const Status status = allocate_variables(*body, memory); status != kSuccess) return status;
  for (const Entry* body : bodies) set_addresses(*body, memory);
  status_ = kSuccess;
  return kSuccess;
}

// Variables of a function alone are left to the interpreter: the host has no name for them.
Status LoadedModule::allocate_variables(const Entry& body, DeviceMemory& memory) {
  const bool is_function = kernels_.count(body.name) == 0;
  for (uint32_t i = body.num_params; i < body.variables.size(); ++i) {
    const Variable& v = body.variables[i];
    if ((v.space != Space::kGlobal && v.space != Space::kConst) || variables_.count(v.name) != 0 ||
        (is_function && v.of_module < 0))
      continue;
    ModuleVariable variable{v.space, std::max<uint64_t>(v.bytes, 1), 0};
    const Status status =
        memory.allocate_variable(v.is_managed ? Home::kManagedVariable : Home::kModule, v.name,
                                 v.initial, variable.bytes, variable.address);
    if (status != kSuccess) return fail(status, fmt::format("no memory for variable '{}'", v.name));
    variables_[v.name] = variable;
  }
  return kSuccess;
}

void LoadedModule::set_addresses(const Entry& body, DeviceMemory& memory) const {
  for (const Variable& v : body.variables) {
    const auto own = variables_.find(v.name);
    if (v.space != Space::kGlobal || own == variables_.end()) continue;
    for (const InitialAddress& a : v.addresses) {
      uint64_t value = code_address(a.symbol);
      if (!a.is_function) {
        const auto named = variables_.find(body.variables[a.symbol].name);
        if (named == variables_.end()) continue;
        value = named->second.address + a.offset;
      }
      std::memcpy(memory.global().find(own->second.address)->data.data() + a.at, &value,
                  sizeof value);
    }
  }
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
  ModuleVariable variable{constant ? Space::kConst : Space::kGlobal, bytes, 0};
  memory.allocate_variable(Home::kModule, name, {}, bytes, variable.address);
  return variables_[name] = variable;
}

std::shared_ptr<const Program> LoadedModule::program_of(Kernel& kernel) {
  if (kernel.program == nullptr && kernel.refusal.empty()) {
    const LoadedModule& own = *kernel.module;
    auto module = kernel.entry->is_read()
                      ? own.module_
                      : ptxsim::load_entry(own.text_, own.name_, kernel.entry->name);
    auto program = module.ok() ? decode(*module, kernel.entry->name) : module.error();
    if (program.ok()) {
      kernel.program = program.value();
    } else {
      kernel.refusal = to_string(program.error());
    }
  }
  return kernel.program;
}

std::shared_ptr<const Program> LoadedModule::with_constants(
    const std::shared_ptr<const Program>& program, DeviceMemory& memory) const {
  struct Owned {
    Entry entry;
    Program program;
  };
  std::shared_ptr<Owned> copy;
  for (size_t i = 0; i < program->entry->variables.size(); ++i) {
    const Variable& v = program->entry->variables[i];
    const auto found = v.space == Space::kConst ? variables_.find(v.name) : variables_.end();
    if (found == variables_.end()) continue;
    const std::vector<std::byte>& data = memory.global().find(found->second.address)->data;
    std::vector<uint8_t> initial = v.initial;
    initial.resize(data.size());
    if (std::memcmp(initial.data(), data.data(), data.size()) == 0) continue;
    if (copy == nullptr) {
      copy = std::make_shared<Owned>(Owned{*program->entry, *program});
      copy->program.entry = &copy->entry;
    }
    std::memcpy(initial.data(), data.data(), data.size());
    copy->entry.variables[i].initial = std::move(initial);
    copy->entry.variables[i].has_initializer = true;
  }
  if (copy == nullptr) return program;
  return {copy, &copy->program};
}

void LoadedModule::name_variables(DeviceMemory& memory, bool in_use) const {
  for (const auto& [name, variable] : variables_)
    if (variable.space == Space::kGlobal && variable.address != 0)
      memory.global().find(variable.address)->name =
          in_use ? name_in_use(name) : "variable " + name + " of another module";
}

void LoadedModule::release_variables(DeviceMemory& memory) const {
  for (const auto& [name, variable] : variables_) memory.release_variable(variable.address);
}

}  // namespace ptxsim::cuda
