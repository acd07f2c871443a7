#include "kernels/sm100a_pair/simulated_run.hpp"

#include "kernels/simulation/prepared_run.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;

namespace {

// The launches of the kernel that the run asks for.
Expected<std::vector<cuda::KernelLaunch>> launches_of(const RandomCase& data,
                                                      const Buffers& buffers,
                                                      const cuda::blackwell::Copies& copies,
                                                      void* workspace, const SimulatedRun& run,
                                                      const uint8_t* packed) {
  const DataType output = data.problem.d.type;
  if (run.one_cta) {
    return cuda::sm100a::build_launches(data.resolved, buffers, copies, workspace,
                                        *cuda::sm100a::find_instance(run.tile_n, output),
                                        simulated_encode_tiled());
  }
  const bool persistent = run.persistent_ctas != 0;
  return cuda::sm100a_pair::build_launches(
      data.resolved, buffers, copies, workspace,
      *cuda::sm100a_pair::find_instance(run.tile_n, output, run.prepared, persistent),
      simulated_encode_tiled(), packed, run.persistent_ctas);
}

}  // namespace

std::shared_ptr<const ptxsim::Program> fused_program(int tile_n, DataType d_type, bool prepared,
                                                     bool persistent) {
  const auto* instance = cuda::sm100a_pair::find_instance(tile_n, d_type, prepared, persistent);
  return program_of(
      {cuda::sm100a_pair::module_of(instance->config), instance->entry, instance->kernel});
}

uint8_t* pack_weights(const RandomCase& data, Simulation& simulation, AssertionResult& result) {
  PackedInSimulation packed;
  result = packed.pack(data, simulation, {}, PackedInSimulation::Format::kSm100a);
  return result ? packed.units() : nullptr;
}

AssertionResult simulate(RandomCase& data, SimulatedRun& run) {
  if (const Status status = cuda::sm100a_pair::supports(data.problem); !status.ok()) {
    return AssertionFailure() << status.message();
  }
  const auto copies = cuda::blackwell::plan_copies(data.resolved, run.misalign % 16 != 0,
                                                   run.prepared, run.prepared);
  return run_prepared(data, run, copies,
                      [&](Simulation& simulation, const Buffers& buffers, const uint8_t* packed) {
                        void* const workspace =
                            simulation.scratch("workspace", copies.workspace_bytes);
                        return launches_of(data, buffers, copies, workspace, run, packed);
                      });
}

}  // namespace dualgemm::test
