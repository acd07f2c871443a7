// A run of a Blackwell kernel with what stands in front of it: weights packed if it wants them so,
// the copies, the table of groups.
#pragma once

#include <algorithm>
#include <utility>

#include "core/scale_padding.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

// With groups a copy of A's scales reads them as far as operand_sizes() says, whatever the offsets
// are.
inline void enlarge_scales_of_a(RandomCase& data) {
  const Problem& p = data.problem;
  if (p.grouping != Grouping::kContiguous || p.a.scale_layout != ScaleLayout::kSwizzled128x4 ||
      !data.row_experts.empty())
    return;
  const ScaleMap map(p.a.scale_layout, core::most_padded_rows(p.m, p.l), data.resolved.a.sf_cols);
  if (map.required_span_size() <= data.a.scales.size()) return;
  Guarded<uint8_t> larger(map.required_span_size());
  larger.fill(kPoison);
  std::copy(data.a.scales.begin(), data.a.scales.end(), larger.begin());
  data.a.scales = std::move(larger);
}

// Runs the launches that build(simulation, buffers, packed weights or null) gives, with `copies`,
// and stores D in data.d, whose other bytes stay as they are. The grid before is taken to be still
// at work on everything that the kernel reads, but for packed weights, and to be reading what it
// writes, until griddepcontrol.wait.
template <class Run, class Build>
::testing::AssertionResult run_prepared(RandomCase& data, Run& run,
                                        const cuda::blackwell::Copies& copies, const Build& build) {
  if (copies.sf_a != cuda::blackwell::Copies::kDirect) enlarge_scales_of_a(data);
  Simulation simulation(data, run.misalign);
  PackedInSimulation packed;
  if (run.prepared) {
    ::testing::AssertionResult result =
        packed.pack(data, simulation, {}, PackedInSimulation::Format::kSm100a);
    if (!result) return result;
  }
  const Buffers& buffers = run.prepared ? packed.buffers() : simulation.buffers();
  const auto launches = build(simulation, buffers, packed.units());
  simulation.let_previous_grid_own_everything(PackedInSimulation::kName);
  return run_launches(simulation, launches, data, run);
}

}  // namespace dualgemm::test
