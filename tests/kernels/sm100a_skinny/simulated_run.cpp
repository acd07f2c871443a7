#include "kernels/sm100a_skinny/simulated_run.hpp"

#include <fmt/format.h>

#include "ptxsim/driver/tensor_map.hpp"

namespace dualgemm::test {

namespace skinny = cuda::sm100a_skinny;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

const skinny::Instance& instance_of(const Problem& problem, const SkinnyRun& run) {
  if (run.tile_m != 0) return *skinny::find_instance(problem, run.tile_m, run.tile_n);
  int64_t tile_m = 8;
  const skinny::Instance* found = nullptr;
  while (found == nullptr) {
    found = skinny::find_instance(problem, tile_m, run.tile_n);
    tile_m *= 2;
  }
  return *found;
}

std::string describe(const Problem& p, const SkinnyRun& run) {
  return fmt::format("m {} n {} k {} l {}, d {}, {}, bias {}, tile {} x {}, misalign {}", p.m, p.n,
                     p.k, p.l, name_of(p.d.type), name_of(p.act.kind), name_of(p.bias),
                     instance_of(p, run).config.tile_m, run.tile_n, run.misalign);
}

AssertionResult simulate(RandomCase& data, SkinnyRun& run) {
  if (const Status status = skinny::supports(data.problem); !status.ok())
    return AssertionFailure() << status.message();
  Simulation simulation(data, run.misalign);
  const cuda::sm100a::Copies copies =
      cuda::sm100a::plan_copies(data.resolved, run.misalign % 16 != 0);
  void* const workspace = simulation.scratch("workspace", copies.workspace_bytes);
  const auto launches =
      skinny::build_launches(data.resolved, simulation.buffers(), copies, workspace,
                             instance_of(data.problem, run), simulated_encode_tiled());
  if (!launches) {
    return AssertionFailure() << launches.status().message() << "\n" << ptxsim::last_encode_error();
  }
  run.launches = launches->size();
  simulation.let_previous_grid_own_everything();
  for (const cuda::KernelLaunch& launch : *launches) {
    AssertionResult result = simulation.run(launch, run.options, run.mutant);
    run.result = simulation.last_run();
    run.stats = run.result.stats;
    if (!result) return result;
  }
  simulation.download_d(data);
  return AssertionSuccess();
}

}  // namespace dualgemm::test
