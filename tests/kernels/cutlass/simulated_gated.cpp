#include "kernels/cutlass/simulated_gated.hpp"

#include "kernels/simulation/schedules.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Severity;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

constexpr int64_t kExpertGap = 256;  // prepared weights have a header there

struct Known {
  int rule;
  Severity severity;
  const char* message;  // a part of it
};

// Findings in the stock mainloop, scheduler and release of tensor memory:
// tests/cutlass/kernels_test.cpp has the reasons. Our epilogue waits for what it loads
// before it uses it and stores directly, so what is said there of late waits and of bulk stores is
// not among them.
constexpr Known kKnown[] = {
    {6, Severity::kAdvisory, "overwrites tensor memory"},
    {7, Severity::kAdvisory, "without tcgen05.fence::"},
    {10, Severity::kWarning, "whose initialisation is not ordered"},
    {12, Severity::kAdvisory, "needs a converged warp"},
};

AssertionResult only_known(const ptxsim::Reports& reports) {
  for (const ptxsim::Report& report : reports.list) {
    bool known = false;
    for (const Known& k : kKnown) {
      known = known || (report.rule == k.rule && report.severity == k.severity &&
                        report.message.find(k.message) != std::string::npos);
    }
    if (!known) return AssertionFailure() << to_string(report);
  }
  return AssertionSuccess();
}

AssertionResult run_gemm(Simulation& simulation, const cuda::GridLaunch& launch,
                         const ptxsim::Options& options) {
  const auto program = program_of(launch.kernel);
  if (program == nullptr) return AssertionFailure() << launch.kernel.entry << " was not decoded";
  ptxsim::Launch grid;
  grid.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  grid.cluster = {launch.cluster_ctas, 1, 1};
  grid.block = {launch.threads, 1, 1};
  grid.dynamic_shared_bytes = launch.dynamic_smem_bytes;
  grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
  AssertionResult result = simulation.run(program, grid, options);
  return result ? only_known(simulation.last_run().reports) : result;
}

}  // namespace

AssertionResult simulate(RandomCase& data, GatedRun& run) {
  namespace gated = cuda::gated;
  const Problem& p = data.problem;
  if (const Status status = gated::supports(p); !status.ok()) {
    return AssertionFailure() << status.message();
  }
  Simulation simulation(data, run.misalign);
  gated::Weights weights;
  if (run.prepared) {
    weights.expert_bytes = gated::weight_layout(p.n, p.k).bytes() + kExpertGap;
    auto* const memory =
        static_cast<uint8_t*>(simulation.scratch("prepared weights", weights.expert_bytes * p.l));
    AssertionResult result =
        simulation.run(gated::interleave_weights(data.resolved, simulation.buffers(), memory,
                                                 weights.expert_bytes),
                       run.options);
    if (!result) return result;
    weights.first = memory;
  }
  const gated::Workspace workspace =
      gated::plan_workspace(data.resolved, run.misalign % 16 != 0, run.prepared);
  void* const memory = simulation.scratch("workspace", workspace.bytes);
  const auto launches =
      gated::build_launches(data.resolved, simulation.buffers(), weights, workspace, memory,
                            run.instance, simulated_encode_tiled());
  if (!launches) {
    return AssertionFailure() << launches.status().message() << "\n" << ptxsim::last_encode_error();
  }
  run.copies = launches->copies.size();
  for (const cuda::KernelLaunch& copy : launches->copies) {
    AssertionResult result = simulation.run(copy, run.options);
    if (!result) return result;
  }
  AssertionResult result = run_gemm(simulation, launches->gemm, run.options);
  if (result) simulation.download_d(data);
  return result;
}

void expect_same_gated_bits_in_schedules(RandomCase& data, const cuda::gated::Instance& instance) {
  constexpr uint64_t kSeeds = 10;  // of the random and of the lazy schedule
  expect_same_bits_in_schedules(
      data, GatedRun{.instance = instance}, kSeeds, reference::Accumulation::kTensorCoreStep, {},
      [](GatedRun& run) { run.options.resident_clusters = run.options.seed % 4 == 2 ? 4 : 1; });
}

}  // namespace dualgemm::test
