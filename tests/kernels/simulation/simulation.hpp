// Device memory and launches in the interpreter: the host code that a GPU would run builds the
// launches, with the interpreter's encoder of tensor maps in the driver's place, and ptxsim runs
// the PTX that was emitted for them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "ptxsim/ptxsim.hpp"
#include "ptxsim/tensor_map.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

// The operands of one problem on the device, every one in a buffer of its own, far from the others.
class Simulation {
 public:
  // misalign: elements (codes and scales: bytes) between a multiple of 256 bytes and each operand,
  // so that nothing leans on the allocator's alignment. a_scales: so many bytes further.
  Simulation(RandomCase& data, int64_t misalign, int64_t misalign_a_scales = 0);

  const Buffers& buffers() const { return buffers_; }
  // Uninitialised memory; null for 0 bytes.
  void* scratch(const char* name, int64_t bytes);

  // From now on launches that overlap the one before them are judged by what that one may still do
  // (R21): write and read all operands, D and scratch, but not what has the name `complete`.
  void let_previous_grid_own_everything(const char* complete = "") {
    previous_owns_everything_ = true;
    complete_ = complete;
  }

  // Runs one launch. Fails on an error of the interpreter and on any report of the sanitizer that
  // counts with these options. `instead`: runs in place of the entry that has its name.
  ::testing::AssertionResult run(const cuda::KernelLaunch& launch, const ptxsim::Options& options,
                                 const std::shared_ptr<const ptxsim::Program>& instead = nullptr);
  // The same for any grid of a decoded kernel.
  ::testing::AssertionResult run(const std::shared_ptr<const ptxsim::Program>& program,
                                 const ptxsim::Launch& grid, const ptxsim::Options& options);
  const ptxsim::RunResult& last_run() const { return last_run_; }

  // Copies D back to where it came from; its padding with it.
  void download_d(RandomCase& data) const;

  // What lies from the beginning of scratch() on; bytes that no kernel has written: `unwritten`.
  std::vector<uint8_t> download_scratch(const char* name, uint8_t unwritten) const;

 private:
  uint64_t add(const char* name, const void* from, int64_t bytes, int64_t misalign,
               bool initialized, bool read_only);
  template <class T>
  const T* input(const char* name, const T* from, int64_t bytes);

  ptxsim::GlobalMemory memory_;
  uint64_t next_ = uint64_t{1} << 40;
  int64_t misalign_;
  std::vector<std::string> names_;  // of what is in memory_
  bool previous_owns_everything_ = false;
  std::string complete_;  // what the grid before has nothing to do with
  Buffers buffers_;
  ptxsim::RunResult last_run_;
};

// Runs the launches one after the other, `run.mutant` in place of the entry that has its name, and
// stores D in data.d. Fills in what `run` says of them.
template <class Run>
::testing::AssertionResult run_launches(Simulation& simulation,
                                        const Expected<std::vector<cuda::KernelLaunch>>& launches,
                                        RandomCase& data, Run& run) {
  if (!launches) {
    return ::testing::AssertionFailure() << launches.status().message() << "\n"
                                         << ptxsim::last_encode_error();
  }
  run.launches = launches->size();
  for (const cuda::KernelLaunch& launch : *launches) {
    ::testing::AssertionResult result = simulation.run(launch, run.options, run.mutant);
    run.result = simulation.last_run();
    run.stats = run.result.stats;
    if (!result) return result;
  }
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

// The decoded kernel. Every entry of every PTX file is read and decoded once.
std::shared_ptr<const ptxsim::Program> program_of(const cuda::Kernel& kernel);
// A PTX file of the build; read once.
const std::string& ptx_text(const std::string& module);
// One entry of a PTX text; null, and a failure of the test, where that is not possible.
std::shared_ptr<const ptxsim::Program> decoded_entry(const std::string& text,
                                                     const std::string& name,
                                                     const std::string& entry);

// The interpreter's encoder of tensor maps with the driver's signature.
cuda::EncodeTiled simulated_encode_tiled();

// "<schedule> seed <n>", for messages.
std::string describe(const ptxsim::Options& options);

}  // namespace dualgemm::test
