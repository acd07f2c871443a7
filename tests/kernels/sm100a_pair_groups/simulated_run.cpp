#include "kernels/sm100a_pair_groups/simulated_run.hpp"

#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "kernels/simulation/prepared_run.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {

namespace groups = cuda::sm100a_pair_groups;
namespace skinny = cuda::sm100a_skinny;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;

namespace {

cuda::blackwell::Copies copies_of(const RandomCase& data, const PairGroupsRun& run) {
  return skinny::plan_copies(data.resolved, run.misalign % 16 != 0, run.prepared);
}

}  // namespace

AssertionResult simulate(RandomCase& data, PairGroupsRun& run) {
  const Problem& p = data.problem;
  if (const Status status = groups::supports(p); !status.ok())
    return AssertionFailure() << status.message();
  const cuda::blackwell::Copies copies = copies_of(data, run);
  return run_prepared(
      data, run, copies,
      [&](Simulation& simulation, const Buffers& buffers, const uint8_t* packed) {
        void* const workspace = simulation.scratch("workspace", groups::workspace_bytes(p, copies));
        return groups::build_launches(
            data.resolved, buffers, copies, workspace, groups::instance_for(p.d.type),
            groups::ctas_for(p, run.max_ctas), simulated_encode_tiled(), packed);
      });
}

AssertionResult simulate_few_rows(RandomCase& data, bool prepared) {
  const Problem& p = data.problem;
  const skinny::Instance& instance = *skinny::find_instance(p, 128, 64, prepared);
  PairGroupsRun run{.prepared = prepared};
  const cuda::blackwell::Copies copies = copies_of(data, run);
  return run_prepared(
      data, run, copies,
      [&](Simulation& simulation, const Buffers& buffers, const uint8_t* packed) {
        void* const workspace =
            simulation.scratch("workspace", skinny::workspace_bytes(p, copies, instance));
        return skinny::build_launches(data.resolved, buffers, copies, workspace, instance, 3,
                                      simulated_encode_tiled(), packed);
      });
}

}  // namespace dualgemm::test
