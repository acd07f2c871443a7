// The sm_80 kernel in the interpreter.
#pragma once

#include "cuda/kernels/sm80/launch.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

using cuda::sm80::Pass;

// The launches of a strategy, in order.
using Passes = std::vector<Pass>;
inline const Passes kPasses[] = {{Pass::kFused}, {Pass::kSequential}, {Pass::kGate, Pass::kUp}};

inline const char* name_of(const Passes& passes) {
  return passes[0] == Pass::kFused        ? "fused"
         : passes[0] == Pass::kSequential ? "fused_sequential"
                                          : "fused_epilogue";
}

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_m = 0;  // 0: what the host chooses
  int64_t misalign = 0;
  Passes passes = {Pass::kFused};
};

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are.
inline ::testing::AssertionResult simulate(RandomCase& data, const SimulatedRun& run) {
  namespace sm80 = cuda::sm80;
  const bool fused = cuda::sm80::is_fused(run.passes[0]);
  for (const Status& status : {sm80::supports(data.problem), sm80::supports_r1(data.problem)}) {
    if (!status.ok()) return ::testing::AssertionFailure() << status.message();
  }
  Simulation simulation(data, run.misalign);
  void* const r1 =
      run.passes.size() == 2 ? simulation.scratch("r1", sm80::r1_bytes(data.problem)) : nullptr;
  for (const Pass given : run.passes) {
    const Pass pass = fused ? sm80::fused_pass(data.problem) : given;
    const sm80::Instance* const instance =
        run.tile_m == 0 ? &sm80::choose_instance(data.problem, pass)
                        : sm80::find_instance(data.problem, run.tile_m, 0, pass);
    if (instance == nullptr) return ::testing::AssertionFailure() << "no such instance";
    std::vector<cuda::KernelLaunch> launches;
    if (fused) {
      void* const table =
          simulation.scratch("table", sm80::workspace_bytes(data.problem, *instance));
      launches = sm80::build_fused(data.resolved, simulation.buffers(), table, *instance);
    } else {
      launches = {sm80::build_launch(data.resolved, simulation.buffers(), r1, *instance)};
    }
    for (const cuda::KernelLaunch& launch : launches) {
      if (auto result = simulation.run(launch, run.options); !result) return result;
    }
  }
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

}  // namespace dualgemm::test
