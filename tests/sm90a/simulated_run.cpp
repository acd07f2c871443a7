#include "sm90a/simulated_run.hpp"

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include "ptxsim/driver/tensor_map.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

// Every entry of every PTX file is read and decoded once.
std::shared_ptr<const ptxsim::Program> program_of(const cuda::Kernel& kernel) {
  static std::map<std::string, std::shared_ptr<const ptxsim::Module>> modules;
  static std::map<std::string, std::shared_ptr<const ptxsim::Program>> programs;
  auto& program = programs[kernel.entry];
  if (program != nullptr) return program;
  auto& module = modules[kernel.module];
  if (module == nullptr) {
    const std::string path = std::string(DUALGEMM_PTX_FOLDER) + "/" + kernel.module + ".ptx";
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    auto loaded = ptxsim::load(text.str(), std::string(kernel.module) + ".ptx");
    if (!loaded) {
      ADD_FAILURE() << ptxsim::to_string(loaded.error());
      return nullptr;
    }
    module = *loaded;
  }
  auto decoded = ptxsim::decode(module, kernel.entry);
  if (!decoded) {
    ADD_FAILURE() << ptxsim::to_string(decoded.error());
    return nullptr;
  }
  return program = *decoded;
}

// Device memory: every operand in a buffer of its own, far from the others.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(int64_t misalign) : misalign_(misalign) {}

  // Where a copy of `bytes` bytes lies; null for none.
  template <class T>
  const T* input(const char* name, const T* from, int64_t bytes) {
    if (from == nullptr) return nullptr;
    return reinterpret_cast<const T*>(
        add(name, from, bytes, sizeof(T) == 1 ? misalign_ : 0, true, true));
  }
  uint64_t operand(const char* name, const void* from, int64_t bytes, int64_t misalign) {
    return add(name, from, bytes, misalign, true, true);
  }
  uint64_t output(const char* name, const void* from, int64_t bytes, int64_t misalign) {
    return add(name, from, bytes, misalign, true, false);
  }
  uint64_t scratch(const char* name, int64_t bytes) {
    if (bytes == 0) return 0;
    const std::vector<uint8_t> nothing(static_cast<size_t>(bytes));
    return add(name, nothing.data(), bytes, 0, false, false);
  }
  ptxsim::GlobalMemory& memory() { return memory_; }

 private:
  uint64_t add(const char* name, const void* from, int64_t bytes, int64_t misalign,
               bool initialized, bool read_only) {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    std::memcpy(data.data(), from, data.size());
    const uint64_t address = next_ + static_cast<uint64_t>(misalign);
    next_ += (static_cast<uint64_t>(bytes) / 4096 + 3) * 4096;
    memory_.add(name, address, std::move(data), initialized, read_only);
    return address;
  }

  ptxsim::GlobalMemory memory_;
  uint64_t next_ = uint64_t{1} << 40;
  int64_t misalign_;
};

template <class T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

// The operands of `data` on the device; d is registered too.
Buffers upload(RandomCase& data, const SimulatedRun& run, DeviceBuffers& device) {
  const int64_t l = data.problem.l, floats = static_cast<int64_t>(sizeof(float));
  Buffers buffers = data.buffers();
  const int64_t a_element = data.problem.a.type == DataType::kE2M1 ? 1 : 2;
  buffers.a = reinterpret_cast<const void*>(
      device.operand("a", data.a.data.data(), data.a.data.size_bytes(), run.misalign * a_element));

  if (data.problem.a.type == DataType::kE2M1) {
    buffers.a_scales = device.input("a_scales", data.a.scales.data(), data.a.scales.size_bytes());
  }
  buffers.gate = device.input("gate", data.gate.data.data(), data.gate.data.size_bytes());
  buffers.gate_scales =
      device.input("gate_scales", data.gate.scales.data(), data.gate.scales.size_bytes());
  buffers.up = device.input("up", data.up.data.data(), data.up.data.size_bytes());
  buffers.up_scales = device.input("up_scales", data.up.scales.data(), data.up.scales.size_bytes());
  buffers.a_row_scale =
      device.input("a_row_scale", data_or_null(data.a_row_scale), l * data.problem.m * floats);
  buffers.alpha_gate_per_batch =
      device.input("alpha_gate_per_batch", data_or_null(data.alpha_gate_per_batch), l * floats);
  buffers.alpha_up_per_batch =
      device.input("alpha_up_per_batch", data_or_null(data.alpha_up_per_batch), l * floats);
  const int64_t element = core::bytes_of(data.problem.d.type, 1);
  buffers.d = reinterpret_cast<void*>(
      device.output("d", data.d.data.data(), data.d.data.size_bytes(), run.misalign * element));
  return buffers;
}

// Runs one launch; the message names what the interpreter or the sanitizer found.
AssertionResult execute(const cuda::KernelLaunch& launch, DeviceBuffers& device,
                        SimulatedRun& run) {
  const auto program = program_of(launch.kernel);
  if (program == nullptr) return AssertionFailure() << launch.kernel.entry << " was not decoded";
  ptxsim::Launch grid;
  grid.grid = {launch.ctas, 1, 1};
  grid.block = {launch.threads, 1, 1};
  grid.dynamic_shared_bytes = launch.dynamic_smem_bytes;
  grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
  const ptxsim::RunResult result = ptxsim::run(program, grid, device.memory(), run.options);
  run.stats = result.stats;
  if (result.clean()) return AssertionSuccess();
  AssertionResult failure = AssertionFailure();
  failure << launch.kernel.entry << ", " << describe(run.options) << ":\n";
  if (result.error) failure << ptxsim::to_string(*result.error) << "\n";
  for (const ptxsim::Report& report : result.reports.list) {
    failure << ptxsim::to_string(report) << "\n";
  }
  return failure;
}

}  // namespace

std::string describe(const ptxsim::Options& options) {
  const char* schedule = options.schedule == ptxsim::Schedule::kEager  ? "eager"
                         : options.schedule == ptxsim::Schedule::kLazy ? "lazy"
                                                                       : "random";
  return std::string(schedule) + " schedule, seed " + std::to_string(options.seed);
}

AssertionResult simulate(RandomCase& data, SimulatedRun& run) {
  namespace sm90a = cuda::sm90a;
  if (const Status status = sm90a::supports(data.problem); !status.ok()) {
    return AssertionFailure() << status.message();
  }
  DeviceBuffers device(run.misalign);
  const Buffers buffers = upload(data, run, device);
  const bool bf16 = sm90a::multiplies_bf16(data.problem);
  const sm90a::Instance* const instance =
      run.tokens == 0 ? &sm90a::choose_instance(data.problem, run.max_ctas)
                      : sm90a::find_instance(run.tokens, run.cols, run.phases, bf16);
  if (instance == nullptr) return AssertionFailure() << "no such instance";
  const sm90a::Schedule schedule =
      sm90a::make_schedule(data.problem, instance->config, run.max_ctas);
  run.shares_tiles = schedule.shared_blocks != 0;
  const sm90a::Workspace pieces =
      sm90a::plan_workspace(data.resolved, instance->config, schedule, run.misalign % 16 != 0);
  const uint64_t workspace = device.scratch("workspace", pieces.bytes);
  const auto launches = sm90a::build_launches(
      data.resolved, buffers, pieces, reinterpret_cast<void*>(workspace), *instance, schedule,
      reinterpret_cast<cuda::EncodeTiled>(&ptxsim::encode_tiled_abi));
  if (!launches) {
    return AssertionFailure() << launches.status().message() << "\n" << ptxsim::last_encode_error();
  }
  run.launches = launches->size();
  for (const cuda::KernelLaunch& launch : *launches) {
    if (AssertionResult result = execute(launch, device, run); !result) return result;
  }
  const ptxsim::GlobalBuffer* d = device.memory().find("d");
  std::memcpy(data.d.data.data(), d->data.data(), d->data.size());
  return AssertionSuccess();
}

}  // namespace dualgemm::test
