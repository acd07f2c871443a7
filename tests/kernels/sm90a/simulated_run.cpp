#include "kernels/sm90a/simulated_run.hpp"

#include "kernels/simulation/packed_weights.hpp"

namespace dualgemm::test {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

AssertionResult simulate(RandomCase& data, SimulatedRun& run) {
  namespace sm90a = cuda::sm90a;
  if (const Status status = sm90a::supports(data.problem); !status.ok()) {
    return AssertionFailure() << status.message();
  }
  const bool bf16 = cuda::multiplies_bf16(data.problem);
  const sm90a::Instance* const instance =
      run.tile_m == 0 ? &sm90a::choose_instance(data.problem, run.max_ctas, run.prepared)
                      : sm90a::find_instance(sm90a::instances_for(data.problem), run.tile_m,
                                             run.tile_n, run.k_warpgroups, bf16, run.prepared);
  if (instance == nullptr) return AssertionFailure() << "no such instance";
  const sm90a::Schedule schedule =
      sm90a::make_schedule(data.problem, instance->config, run.max_ctas);
  run.shares_tiles = schedule.shared_k_tiles != 0;
  run.pairs_ctas = schedule.paired;
  Simulation simulation(data, run.misalign);
  const sm90a::Workspace pieces =
      sm90a::plan_workspace(data.resolved, instance->config, schedule, run.misalign % 16 != 0);
  void* const workspace = simulation.scratch("workspace", pieces.bytes);
  PackedInSimulation packed;
  if (run.prepared) {
    if (AssertionResult result = packed.pack(data, simulation, run.options); !result) return result;
  }
  const auto launches = sm90a::build_launches(
      data.resolved, run.prepared ? packed.buffers() : simulation.buffers(), pieces, workspace,
      *instance, schedule, simulated_encode_tiled(), packed.units());
  if (!launches) {
    return AssertionFailure() << launches.status().message() << "\n" << ptxsim::last_encode_error();
  }
  run.launches = launches->size();
  for (const cuda::KernelLaunch& launch : *launches) {
    AssertionResult result = simulation.run(launch, run.options);
    run.stats = simulation.last_run().stats;
    run.reports = simulation.last_run().reports.list;
    if (!result) return result;
  }
  simulation.download_d(data);
  return AssertionSuccess();
}

}  // namespace dualgemm::test
