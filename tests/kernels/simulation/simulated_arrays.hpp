// Loose arrays in the interpreter's memory, and launches that work on them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

// Arrays far from each other; the interpreter refuses whatever is outside of them.
class SimulatedArrays {
 public:
  explicit SimulatedArrays(ptxsim::Options options = {}) : options_(options) {}
  void* put(const char* name, const void* from, int64_t bytes, int64_t shift, bool read_only) {
    if (bytes == 0) return nullptr;
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    std::memcpy(data.data(), from, data.size());
    const uint64_t address = next_ + static_cast<uint64_t>(shift);
    next_ += (static_cast<uint64_t>(bytes) / 4096 + 3) * 4096;
    memory_.add(name + std::to_string(next_), address, std::move(data), true, read_only);
    return reinterpret_cast<void*>(address);
  }
  void get(const void* address, void* to, int64_t bytes) {
    if (bytes == 0) return;
    const ptxsim::GlobalBuffer* buffer = memory_.find(reinterpret_cast<uint64_t>(address));
    std::memcpy(to, buffer->data.data(), static_cast<size_t>(bytes));
  }
  size_t launches() const { return launches_; }
  std::string entry() const { return entry_; }  // of the last launch

 protected:
  ::testing::AssertionResult run(const Expected<std::vector<cuda::KernelLaunch>>& launches) {
    using ::testing::AssertionFailure;
    if (!launches) return AssertionFailure() << launches.status().message();
    launches_ = launches->size();
    for (const cuda::KernelLaunch& launch : *launches) {
      entry_ = launch.kernel.entry;
      const auto program = program_of(launch.kernel);
      if (program == nullptr) return AssertionFailure() << launch.kernel.entry << " not decoded";
      ptxsim::Launch grid;
      grid.grid = {launch.ctas, 1, 1};
      grid.block = {launch.threads, 1, 1};
      grid.dynamic_shared_bytes = launch.dynamic_smem_bytes;
      grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
      const ptxsim::RunResult result = ptxsim::run(program, grid, memory_, options_);
      if (result.clean()) continue;
      ::testing::AssertionResult failure = AssertionFailure() << launch.kernel.entry << ":\n";
      if (result.error) failure << ptxsim::to_string(*result.error) << "\n";
      for (const ptxsim::Report& report : result.reports.list)
        failure << ptxsim::to_string(report) << "\n";
      return failure;
    }
    return ::testing::AssertionSuccess();
  }

 private:
  ptxsim::Options options_;
  ptxsim::GlobalMemory memory_;
  uint64_t next_ = uint64_t{1} << 40;
  size_t launches_ = 0;
  std::string entry_;
};

}  // namespace dualgemm::test
