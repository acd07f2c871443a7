#include "kernels/sm100a_skinny/simulated_run.hpp"

#include <fmt/format.h>

#include "kernels/simulation/prepared_run.hpp"
#include "ptxsim/tensor_map.hpp"

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

AssertionResult simulate(RandomCase& data, SkinnyRun& run) {
  if (const Status status = skinny::supports(data.problem); !status.ok())
    return AssertionFailure() << status.message();
  const cuda::blackwell::Copies copies =
      skinny::plan_copies(data.resolved, run.misalign % 16 != 0, run.prepared, run.persistent);
  const skinny::Instance& instance = instance_of(data.problem, run);
  const int64_t ctas = skinny::ctas_for(data.problem, instance.config, run.max_ctas);
  return run_prepared(data, run, copies,
                      [&](Simulation& simulation, const Buffers& buffers, const uint8_t* packed) {
                        void* const workspace = simulation.scratch(
                            "workspace", skinny::workspace_bytes(data.problem, copies, instance));
                        return skinny::build_launches(data.resolved, buffers, copies, workspace,
                                                      instance, ctas, simulated_encode_tiled(),
                                                      packed);
                      });
}

}  // namespace dualgemm::test
