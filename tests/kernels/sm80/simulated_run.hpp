// The sm_80 kernel in the interpreter.
#pragma once

#include "cuda/kernels/sm80/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
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
  int tile_m = 0, k_parts = 0;  // 0: what the host chooses
  int ctas = 0;                 // of equal shares, or with k_parts = 1 of turns; with tile_m
  int64_t misalign = 0;
  Passes passes = {Pass::kFused};
  bool prepared = false;  // weights; fused alone
};

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are.
inline ::testing::AssertionResult simulate(RandomCase& data, const SimulatedRun& run) {
  namespace sm80 = cuda::sm80;
  DeviceCaps caps;  // of an A100
  caps.kind = DeviceKind::kCuda;
  caps.compute_capability = 80;
  caps.num_sms = 108;
  for (const Status& status : {sm80::supports(data.problem), sm80::supports_r1(data.problem)}) {
    if (!status.ok()) return ::testing::AssertionFailure() << status.message();
  }
  Simulation simulation(data, run.misalign);
  PackedInSimulation packed;
  if (run.prepared) {
    if (auto result = packed.pack(data, simulation, run.options); !result) return result;
  }
  const Buffers& buffers = run.prepared ? packed.buffers() : simulation.buffers();
  void* const r1 =
      run.passes.size() == 2 ? simulation.scratch("r1", sm80::r1_bytes(data.problem)) : nullptr;
  for (const Pass pass : run.passes) {
    const sm80::InstanceRequest request{data.problem, pass, run.prepared};
    const sm80::Instance* const instance =
        run.tile_m == 0 ? &sm80::choose_instance(request, caps)
                        : sm80::find_instance(request, {run.tile_m, 0, run.k_parts});
    if (instance == nullptr) return ::testing::AssertionFailure() << "no such instance";
    const sm80::Division division =
        run.ctas > 0 && run.k_parts == instance->config.warps_k
            ? sm80::turns_of(instance->config, data.problem, run.ctas)
        : run.ctas > 0     ? sm80::shares_of(instance->config, data.problem, run.ctas)
        : run.k_parts == 0 ? sm80::division_for(instance->config, data.problem, caps)
                           : sm80::Division{run.k_parts / instance->config.warps_k};
    sm80::LaunchParts parts{data.resolved, buffers, *instance, r1, packed.units(), division};
    if (pass == Pass::kFused) {
      parts.workspace =
          simulation.scratch("workspace", sm80::workspace_bytes(data.problem, *instance, division));
    }
    for (const cuda::KernelLaunch& launch : sm80::build_fused(parts)) {
      if (auto result = simulation.run(launch, run.options); !result) return result;
    }
  }
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

}  // namespace dualgemm::test
