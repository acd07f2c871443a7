#include "fake_cuda/session.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "fake_cuda/patch/static_runtime.hpp"

namespace ptxsim::cuda {
namespace {

const DeviceModel& model_of(const std::string& key) {
  const DeviceModel* device = find_device(key);
  return device == nullptr ? *find_device(Settings{}.device) : *device;
}

Settings settings_of_environment() {
  const char* text = std::getenv(kSettingsVariable);
  return text == nullptr ? Settings{} : settings_of(text);
}

}  // namespace

Session& Session::get() {
  static Session* session = new Session(settings_of_environment());
  return *session;
}

Session::Session(Settings from)
    : settings(std::move(from)),
      device(model_of(settings.device)),
      memory(device.memory_bytes),
      recorder(settings.report),
      clock(settings.time ? LaunchClock::of(settings.device, settings.gpu_file, settings.sass,
                                            settings.options.sample != 0)
                          : std::nullopt) {
  settings.options.num_sms = device.sms;
  settings.options.sm = {device.threads_per_sm, device.blocks_per_sm, device.shared_bytes_per_sm};
  settings.options.most_clusters = settings.max_clusters;
  for (const std::string& problem : redirection_problems())
    recorder.refused("start", kNotSupported, problem, false);
}

LoadedModule* Session::add_module() {
  auto module = std::make_unique<LoadedModule>(fmt::format("module{}.ptx", ++num_modules_),
                                               settings.ptx_folder);
  LoadedModule* handle = module.get();
  modules_[handle] = std::move(module);
  return handle;
}

Kernel* Session::substitute(const std::string& name) {
  if (substitutes_.empty()) {
    for (const std::string& file : settings.substitutes) {
      if (std::filesystem::is_directory(file))
        continue;  // of what is compiled while the program runs
      std::ifstream in(file, std::ios::binary);
      std::error_code error;
      const uintmax_t bytes = std::filesystem::file_size(file, error);
      std::string text(error ? 0 : bytes, '\0');
      in.read(text.data(), static_cast<std::streamsize>(text.size()));
      auto module = std::make_unique<LoadedModule>(file, "");
      // PTX for another GPU is passed over, so that one list of files does for all of them.
      const Status status =
          in ? module->load_as_used(std::move(text), device, memory) : Status{kNotFound};
      if (status != kSuccess && status != kInvalidPtx)
        recorder.refused("loading " + file, status, in ? module->message() : "cannot be read");
      substitutes_.push_back(module.get());
      LoadedModule* const handle = module.get();
      modules_[handle] = std::move(module);
    }
  }
  for (LoadedModule* module : substitutes_)
    if (Kernel* kernel = module->kernel(name)) return kernel;
  return nullptr;
}

LoadedModule* Session::find_module(void* handle) const {
  const auto found = modules_.find(static_cast<LoadedModule*>(handle));
  return found == modules_.end() ? nullptr : found->second.get();
}

Status Session::unload(void* handle) {
  if (last_launched_ == handle) last_launched_ = nullptr;
  LoadedModule* module = find_module(handle);
  if (module == nullptr) return kInvalidHandle;
  module->release_variables(memory);
  modules_.erase(module);
  return kSuccess;
}

Kernel* Session::find_kernel(void* handle) const {
  for (const auto& [key, module] : modules_)
    if (Kernel* kernel = module->own(handle)) return kernel;
  return nullptr;
}

void Session::ended() {
  for (const auto& [address, allocation] : memory.allocations())
    if (!is_variable(allocation.home) && allocation.home != Home::kCondition)
      recorder.leaked(allocation);
  for (const Allocation& allocation : mapped.unmapped()) recorder.leaked(allocation);
  recorder.ended(memory.highest());
}

}  // namespace ptxsim::cuda
