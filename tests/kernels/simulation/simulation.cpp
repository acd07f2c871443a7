#include "kernels/simulation/simulation.hpp"

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

template <class T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

const std::string& ptx_text(const std::string& module) {
  static std::map<std::string, std::string> texts;
  const auto [found, is_first] = texts.try_emplace(module);
  if (!is_first) return found->second;
  std::ostringstream text;
  text << std::ifstream(std::string(DUALGEMM_PTX_FOLDER) + "/" + module + ".ptx").rdbuf();
  return found->second = std::move(text).str();
}

std::shared_ptr<const ptxsim::Program> decoded_entry(const std::string& text,
                                                     const std::string& name,
                                                     const std::string& entry) {
  auto module = ptxsim::load_entry(text, name, entry);
  if (!module.ok()) {
    ADD_FAILURE() << ptxsim::to_string(module.error());
    return nullptr;
  }
  auto program = ptxsim::decode(*module, entry);
  if (program.ok()) return *program;
  ADD_FAILURE() << ptxsim::to_string(program.error());
  return nullptr;
}

std::shared_ptr<const ptxsim::Program> program_of(const cuda::Kernel& kernel) {
  static std::map<std::string, std::shared_ptr<const ptxsim::Program>> programs;
  auto& program = programs[kernel.entry];
  if (program == nullptr) {
    const std::string module(kernel.module);
    program = decoded_entry(ptx_text(module), module + ".ptx", kernel.entry);
  }
  return program;
}

cuda::EncodeTiled simulated_encode_tiled() {
  return reinterpret_cast<cuda::EncodeTiled>(&ptxsim::encode_tiled_abi);
}

std::string describe(const ptxsim::Options& options) {
  const char* schedule = options.schedule == ptxsim::Schedule::kEager  ? "eager"
                         : options.schedule == ptxsim::Schedule::kLazy ? "lazy"
                                                                       : "random";
  return std::string(schedule) + " schedule, seed " + std::to_string(options.seed);
}

Simulation::Simulation(RandomCase& data, int64_t misalign, int64_t misalign_a_scales)
    : misalign_(misalign), buffers_(data.buffers()) {
  const Problem& p = data.problem;
  const int64_t floats = static_cast<int64_t>(sizeof(float));
  const bool codes = p.a.type == DataType::kE2M1;
  const int64_t a_element = codes ? 1 : core::bytes_of(p.a.type, 1);
  buffers_.a = reinterpret_cast<const void*>(
      add("a", data.a.data.data(), data.a.data.size_bytes(), misalign * a_element, true, true));
  if (codes) {
    buffers_.a_scales = reinterpret_cast<const uint8_t*>(
        add("a_scales", data.a.scales.data(), data.a.scales.size_bytes(),
            misalign + misalign_a_scales, true, true));
  }
  buffers_.gate = input("gate", data.gate.data.data(), data.gate.data.size_bytes());
  buffers_.gate_scales =
      input("gate_scales", data.gate.scales.data(), data.gate.scales.size_bytes());
  buffers_.up = input("up", data.up.data.data(), data.up.data.size_bytes());
  buffers_.up_scales = input("up_scales", data.up.scales.data(), data.up.scales.size_bytes());
  buffers_.a_row_scale = input("a_row_scale", data_or_null(data.a_row_scale),
                               static_cast<int64_t>(data.a_row_scale.size()) * floats);
  buffers_.alpha_gate_per_batch =
      input("alpha_gate_per_batch", data_or_null(data.alpha_gate_per_batch), p.l * floats);
  buffers_.alpha_up_per_batch =
      input("alpha_up_per_batch", data_or_null(data.alpha_up_per_batch), p.l * floats);
  buffers_.expert_offsets =
      input("expert_offsets", data_or_null(data.expert_offsets), (p.l + 1) * 4);
  buffers_.expert_rows = input("expert_rows", data_or_null(data.expert_rows), p.l * 4);
  buffers_.row_experts = input("row_experts", data_or_null(data.row_experts), p.m * 4);
  buffers_.a_row_index = input("a_row_index", data_or_null(data.a_row_index), p.m * 4);
  if (p.bias != BiasType::kNone) {
    const auto bias = [&](const char* name, const Guarded<uint8_t>& numbers) {
      return reinterpret_cast<const void*>(add(name, numbers.data(), numbers.size_bytes(),
                                               misalign * core::bytes_of(p.bias), true, true));
    };
    buffers_.bias_gate = bias("bias_gate", data.bias_gate);
    buffers_.bias_up = bias("bias_up", data.bias_up);
  }
  const bool d_codes = p.d.type == DataType::kE2M1;
  const int64_t d_element = d_codes ? 1 : core::bytes_of(p.d.type, 1);
  buffers_.d = reinterpret_cast<void*>(
      add("d", data.d.data.data(), data.d.data.size_bytes(), misalign * d_element, true, false));
  if (p.residual) {
    buffers_.residual = data.in_place
                            ? buffers_.d
                            : reinterpret_cast<const void*>(add("residual", data.residual.data(),
                                                                data.residual.size_bytes(),
                                                                misalign * d_element, true, true));
  }
  if (d_codes) {
    buffers_.d_scales = reinterpret_cast<uint8_t*>(
        add("d_scales", data.d.scales.data(), data.d.scales.size_bytes(), misalign, true, false));
  }
}

void* Simulation::scratch(const char* name, int64_t bytes) {
  if (bytes == 0) return nullptr;
  const std::vector<uint8_t> nothing(static_cast<size_t>(bytes));
  return reinterpret_cast<void*>(add(name, nothing.data(), bytes, 0, false, false));
}

AssertionResult Simulation::run(const cuda::KernelLaunch& launch, const ptxsim::Options& options,
                                const std::shared_ptr<const ptxsim::Program>& instead) {
  auto program = program_of(launch.kernel);
  if (program == nullptr) return AssertionFailure() << launch.kernel.entry << " was not decoded";
  if (instead != nullptr && instead->entry->name == program->entry->name) program = instead;
  ptxsim::Launch grid;
  grid.grid = {launch.ctas, 1, 1};
  grid.cluster = {launch.cluster_ctas, 1, 1};
  grid.block = {launch.threads, 1, 1};
  grid.dynamic_shared_bytes = launch.dynamic_smem_bytes;
  grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
  if (previous_owns_everything_ && launch.overlaps_previous) {
    std::vector<std::string> owned = names_;
    std::erase(owned, complete_);
    grid.previous_grid = {.writes = owned, .reads = owned};
  }
  return run(program, grid, options);
}

AssertionResult Simulation::run(const std::shared_ptr<const ptxsim::Program>& program,
                                const ptxsim::Launch& grid, const ptxsim::Options& options) {
  last_run_ = ptxsim::run(program, grid, memory_, options);
  if (last_run_.clean()) return AssertionSuccess();
  AssertionResult failure = AssertionFailure();
  failure << program->entry->name << ", " << describe(options) << ":\n";
  if (last_run_.error) failure << ptxsim::to_string(*last_run_.error) << "\n";
  for (const ptxsim::Report& report : last_run_.reports.list) {
    failure << ptxsim::to_string(report) << "\n";
  }
  return failure;
}

void Simulation::download_d(RandomCase& data) const {
  auto& memory = const_cast<ptxsim::GlobalMemory&>(memory_);
  const ptxsim::GlobalBuffer* const d = memory.find("d");
  std::memcpy(data.d.data.data(), d->data.data(), d->data.size());
  const ptxsim::GlobalBuffer* const scales = memory.find("d_scales");
  if (scales != nullptr)
    std::memcpy(data.d.scales.data(), scales->data.data(), scales->data.size());
}

std::vector<uint8_t> Simulation::download_scratch(const char* name, uint8_t unwritten) const {
  const ptxsim::GlobalBuffer* const from = const_cast<ptxsim::GlobalMemory&>(memory_).find(name);
  std::vector<uint8_t> bytes(from->data.size(), unwritten);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (from->written[i]) bytes[i] = static_cast<uint8_t>(from->data[i]);
  }
  return bytes;
}

uint64_t Simulation::add(const char* name, const void* from, int64_t bytes, int64_t misalign,
                         bool initialized, bool read_only) {
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  std::memcpy(data.data(), from, data.size());
  const uint64_t address = next_ + static_cast<uint64_t>(misalign);
  next_ += (static_cast<uint64_t>(bytes) / 4096 + 3) * 4096;
  if (bytes == 0) return address;  // where any access is outside
  memory_.add(name, address, std::move(data), initialized, read_only);
  names_.emplace_back(name);
  return address;
}

// Where a copy lies; null for none.
template <class T>
const T* Simulation::input(const char* name, const T* from, int64_t bytes) {
  if (from == nullptr) return nullptr;
  return reinterpret_cast<const T*>(
      add(name, from, bytes, sizeof(T) == 1 ? misalign_ : 0, true, true));
}

}  // namespace dualgemm::test
