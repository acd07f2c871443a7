#include "kernels/sm100a_pair_groups/simulated_run.hpp"

#include <algorithm>
#include <utility>

#include "core/scale_padding.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "ptxsim/driver/tensor_map.hpp"

namespace dualgemm::test {

namespace groups = cuda::sm100a_pair_groups;
namespace skinny = cuda::sm100a_skinny;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;

namespace {

// Copies read A's scales as far as operand_sizes() says, whatever the offsets are.
void enlarge_scales_of_a(RandomCase& data) {
  const Problem& p = data.problem;
  if (p.grouping != Grouping::kContiguous || p.a.scale_layout != ScaleLayout::kSwizzled128x4)
    return;
  const ScaleMap map(p.a.scale_layout, core::most_padded_rows(p.m, p.l), data.resolved.a.sf_cols);
  if (map.required_span_size() <= data.a.scales.size()) return;
  Guarded<uint8_t> larger(map.required_span_size());
  larger.fill(kPoison);
  std::copy(data.a.scales.begin(), data.a.scales.end(), larger.begin());
  data.a.scales = std::move(larger);
}

using Launches = Expected<std::vector<cuda::KernelLaunch>>;

// `build(simulation, buffers, copies, packed)`: the launches of a kernel.
template <class Build>
AssertionResult simulate_launches(RandomCase& data, PairGroupsRun& run, const Build& build) {
  const cuda::sm100a::Copies copies =
      skinny::plan_copies(data.resolved, run.misalign % 16 != 0, run.prepared);
  if (copies.sf_a != cuda::sm100a::Copies::kDirect && data.row_experts.empty())
    enlarge_scales_of_a(data);
  Simulation simulation(data, run.misalign);
  PackedInSimulation packed;
  if (run.prepared) {
    AssertionResult result = packed.pack(data, simulation, {}, PackedInSimulation::Format::kSm100a);
    if (!result) return result;
  }
  const Buffers& buffers = run.prepared ? packed.buffers() : simulation.buffers();
  const Launches launches = build(simulation, buffers, copies, packed.units());
  simulation.let_previous_grid_own_everything(PackedInSimulation::kName);
  return run_launches(simulation, launches, data, run);
}

}  // namespace

AssertionResult simulate(RandomCase& data, PairGroupsRun& run) {
  const Problem& p = data.problem;
  if (const Status status = groups::supports(p); !status.ok())
    return AssertionFailure() << status.message();
  return simulate_launches(
      data, run,
      [&](Simulation& simulation, const Buffers& buffers, const cuda::sm100a::Copies& copies,
          const uint8_t* packed) {
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
  return simulate_launches(
      data, run,
      [&](Simulation& simulation, const Buffers& buffers, const cuda::sm100a::Copies& copies,
          const uint8_t* packed) {
        void* const workspace =
            simulation.scratch("workspace", skinny::workspace_bytes(p, copies, instance));
        return skinny::build_launches(data.resolved, buffers, copies, workspace, instance, 3,
                                      simulated_encode_tiled(), packed);
      });
}

}  // namespace dualgemm::test
