#include "kernels/sm100a/simulated_run.hpp"

namespace dualgemm::test {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;

std::shared_ptr<const ptxsim::Program> fused_program(int tile_n, DataType d_type) {
  const auto* instance = cuda::sm100a::find_instance(tile_n, d_type);
  return program_of({"dual_gemm_sm100a", instance->entry, instance->kernel});
}

AssertionResult simulate(RandomCase& data, SimulatedRun& run) {
  namespace blackwell = cuda::blackwell;
  namespace sm100a = cuda::sm100a;
  if (const Status status = sm100a::supports(data.problem); !status.ok()) {
    return AssertionFailure() << status.message();
  }
  Simulation simulation(data, run.misalign);
  const blackwell::Copies copies = blackwell::plan_copies(data.resolved, run.misalign % 16 != 0);
  void* const workspace = simulation.scratch("workspace", copies.workspace_bytes);
  const auto launches = sm100a::build_launches(
      data.resolved, simulation.buffers(), copies, workspace,
      *sm100a::find_instance(run.tile_n, data.problem.d.type), simulated_encode_tiled());
  return run_launches(simulation, launches, data, run);
}

}  // namespace dualgemm::test
