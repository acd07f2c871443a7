// The sm_80 kernel in the interpreter.
#pragma once

#include "cuda/kernels/sm80/launch.hpp"
#include "simulation/simulation.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_m = 0;  // 0: what the host chooses
  int64_t misalign = 0;
};

// Runs `data`'s problem and stores d in data.d, whose other bytes stay as they are.
inline ::testing::AssertionResult simulate(RandomCase& data, const SimulatedRun& run) {
  namespace sm80 = cuda::sm80;
  if (const Status status = sm80::supports(data.problem); !status.ok()) {
    return ::testing::AssertionFailure() << status.message();
  }
  Simulation simulation(data, run.misalign);
  const sm80::Instance* const instance = run.tile_m == 0
                                             ? &sm80::choose_instance(data.problem)
                                             : sm80::find_instance(data.problem.a.type, run.tile_m);
  if (instance == nullptr) return ::testing::AssertionFailure() << "no such instance";
  const auto launch = sm80::build_launch(data.resolved, simulation.buffers(), *instance);
  if (auto result = simulation.run(launch, run.options); !result) return result;
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

}  // namespace dualgemm::test
