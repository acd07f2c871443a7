#include "kernels/sm100a_skinny/simulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/scale_padding.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "ptxsim/driver/tensor_map.hpp"

namespace dualgemm::test {

namespace skinny = cuda::sm100a_skinny;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;

const skinny::Instance& instance_of(const Problem& problem, const SkinnyRun& run) {
  const auto find = [&](int tile_m) {
    return skinny::find_instance(problem, tile_m, run.tile_n, run.prepared, run.persistent);
  };
  if (run.tile_m != 0) return *find(run.tile_m);
  const skinny::Instance* found = nullptr;
  for (int tile_m = 8; found == nullptr; tile_m *= 2) found = find(tile_m);
  return *found;
}

std::string describe(const Problem& p, const SkinnyRun& run) {
  return fmt::format("m {} n {} k {} l {}, d {}, {}, bias {}, tile {} x {}, misalign {}{}", p.m,
                     p.n, p.k, p.l, name_of(p.d.type), name_of(p.act.kind), name_of(p.bias),
                     instance_of(p, run).config.tile_m, run.tile_n, run.misalign,
                     run.prepared ? ", prepared" : "") +
         (run.persistent ? fmt::format(", {} CTAs", run.max_ctas) : "");
}

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

}  // namespace

AssertionResult simulate(RandomCase& data, SkinnyRun& run) {
  if (const Status status = skinny::supports(data.problem); !status.ok())
    return AssertionFailure() << status.message();
  const cuda::sm100a::Copies copies =
      skinny::plan_copies(data.resolved, run.misalign % 16 != 0, run.prepared, run.persistent);
  if (copies.sf_a != cuda::sm100a::Copies::kDirect && data.row_experts.empty())
    enlarge_scales_of_a(data);
  Simulation simulation(data, run.misalign);
  PackedInSimulation packed;
  if (run.prepared) {
    AssertionResult result = packed.pack(data, simulation, {}, PackedInSimulation::Format::kSm100a);
    if (!result) return result;
  }
  const Buffers& buffers = run.prepared ? packed.buffers() : simulation.buffers();
  const skinny::Instance& instance = instance_of(data.problem, run);
  void* const workspace =
      simulation.scratch("workspace", skinny::workspace_bytes(data.problem, copies, instance));
  const int64_t ctas = skinny::ctas_for(data.problem, instance.config, run.max_ctas);
  const auto launches = skinny::build_launches(data.resolved, buffers, copies, workspace, instance,
                                               ctas, simulated_encode_tiled(), packed.units());
  simulation.let_previous_grid_own_everything(PackedInSimulation::kName);
  return run_launches(simulation, launches, data, run);
}

}  // namespace dualgemm::test
