// The sm_120a kernel in the interpreter.
#pragma once

#include <memory>
#include <vector>

#include "cuda/kernels/sm120a/choice.hpp"
#include "cuda/kernels/sm120a/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_m = 0, stages = 0;  // 0: what the host chooses
  int64_t max_ctas = 3;        // where CTAs take tiles in turn
  int64_t misalign = 0;        // Simulation's
  bool prepared = false;       // weights
  ptxsim::Stats stats{};       // of the last launch, filled in
  size_t launches = 0;         // filled in
  ptxsim::RunResult result{};  // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// An RTX 5090.
inline DeviceCaps caps_of_rtx5090() {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.compute_capability = 120;
  caps.num_sms = 170;
  return caps;
}

inline const cuda::sm120a::Instance& instance_of(const Problem& problem, const SimulatedRun& run) {
  return run.tile_m == 0 ? cuda::sm120a::choose_instance(problem, caps_of_rtx5090())
                         : *cuda::sm120a::find_instance(run.tile_m);
}

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are. Fails on an
// error of the interpreter and on any report of the sanitizer that counts with the run's options.
inline ::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run) {
  namespace sm120a = cuda::sm120a;
  if (const Status status = sm120a::supports(data.problem); !status.ok())
    return ::testing::AssertionFailure() << status.message();
  Simulation simulation(data, run.misalign);
  PackedInSimulation packed;
  if (run.prepared) {
    auto result = packed.pack(data, simulation, run.options, PackedInSimulation::Format::kSm120a);
    if (!result) return result;
  }
  const sm120a::Instance& instance = instance_of(data.problem, run);
  const int64_t stages = run.stages == 0
                             ? sm120a::stages_for(data.problem, instance.config, caps_of_rtx5090())
                             : run.stages;
  const Expected<std::vector<cuda::KernelLaunch>> launches = sm120a::build_launches(
      {data.resolved, run.prepared ? packed.buffers() : simulation.buffers(), instance, stages,
       sm120a::ctas_for(data.problem, instance.config, run.max_ctas),
       simulation.scratch("table", sm120a::workspace_bytes(data.problem, instance)),
       packed.units()});
  return run_launches(simulation, launches, data, run);
}

}  // namespace dualgemm::test
