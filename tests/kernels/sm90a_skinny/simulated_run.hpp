// The sm_90a kernel for few rows in the interpreter.
#pragma once

#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int64_t cols = 0;  // of D per tile; 0: what a GPU of max_ctas SMs gets
  int64_t max_ctas = 3;
  bool prepared = false;  // weights packed in a launch before
  int tile_m = 0;         // 0: what the host chooses
  int64_t misalign_a_scales = 0;
};

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are. Fails on an
// error of the interpreter and on any report of the sanitizer at severity error.
inline ::testing::AssertionResult simulate(RandomCase& data, const SimulatedRun& run) {
  namespace skinny = cuda::sm90a_skinny;
  if (const Status status = skinny::supports(data.problem, run.prepared); !status.ok())
    return ::testing::AssertionFailure() << status.message();
  const skinny::Instance* const instance =
      run.tile_m != 0 ? skinny::find_instance(data.problem, run.tile_m, run.cols, run.prepared)
      : run.cols == 0
          ? &skinny::choose_instance(data.problem, static_cast<int>(run.max_ctas), run.prepared)
          : skinny::find_instance(data.problem, run.cols, run.prepared);
  if (instance == nullptr) return ::testing::AssertionFailure() << "no such instance";
  Simulation simulation(data, 0, run.misalign_a_scales);
  PackedInSimulation packed;
  if (run.prepared) {
    if (auto result = packed.pack(data, simulation, run.options); !result) return result;
  }
  simulation.let_previous_grid_own_everything(PackedInSimulation::kName);
  void* const workspace =
      simulation.scratch("workspace", skinny::workspace_bytes(data.problem, *instance));
  const auto launches = skinny::build_launches(
      data.resolved, run.prepared ? packed.buffers() : simulation.buffers(), workspace, *instance,
      skinny::ctas_for(data.problem, instance->config, run.max_ctas), packed.units());
  if (!launches) return ::testing::AssertionFailure() << launches.status().message();
  for (const cuda::KernelLaunch& launch : *launches) {
    if (auto result = simulation.run(launch, run.options); !result) return result;
  }
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

}  // namespace dualgemm::test
