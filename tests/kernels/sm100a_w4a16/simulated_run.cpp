#include "kernels/sm100a_w4a16/simulated_run.hpp"

#include <fmt/format.h>

#include "kernels/simulation/prepared_run.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {

namespace w4a16 = cuda::sm100a_w4a16;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;

const w4a16::Instance& instance_of(const Problem& problem, const W4a16Run& run) {
  if (run.tile_m != 0) return *w4a16::find_instance(problem, run.tile_m, run.persistent);
  const w4a16::Instance* found = nullptr;
  for (int tile_m = 16; found == nullptr; tile_m *= 2)
    found = w4a16::find_instance(problem, tile_m, run.persistent);
  return *found;
}

std::string describe(const Problem& p, const W4a16Run& run) {
  return fmt::format(
      "m {} n {} k {} l {}, a {}, d {}, {}, bias {}, tile {} x 64, {}, misalign {}{}", p.m, p.n,
      p.k, p.l, name_of(p.a.type), name_of(p.d.type), name_of(p.act.kind), name_of(p.bias),
      instance_of(p, run).config.tile_m,
      run.persistent ? fmt::format("{} CTAs", run.max_ctas) : fmt::format("split {}", run.split),
      run.misalign, run.prepared ? ", prepared" : "");
}

AssertionResult simulate(RandomCase& data, W4a16Run& run) {
  if (const Status status = w4a16::supports(data.problem); !status.ok())
    return AssertionFailure() << status.message();
  const cuda::blackwell::Copies copies =
      w4a16::plan_copies(data.resolved, run.misalign % 16 != 0, run.prepared, run.persistent);
  const w4a16::Instance& instance = instance_of(data.problem, run);
  const bool in_turn = run.persistent || data.problem.grouping != Grouping::kNone;
  const int64_t ctas = w4a16::persistent_ctas(data.problem, instance.config.tile_m, run.max_ctas);
  return run_prepared(
      data, run, copies,
      [&](Simulation& simulation, const Buffers& buffers, const uint8_t* packed) {
        void* const workspace =
            simulation.scratch("workspace", w4a16::workspace_bytes(data.problem, copies, instance));
        return in_turn ? w4a16::build_persistent_launches(data.resolved, buffers, copies, workspace,
                                                          instance, ctas, simulated_encode_tiled(),
                                                          packed)
                       : w4a16::build_launches(data.resolved, buffers, copies, workspace, instance,
                                               run.split, simulated_encode_tiled(), packed);
      });
}

}  // namespace dualgemm::test
