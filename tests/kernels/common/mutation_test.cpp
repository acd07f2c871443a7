// Mutants of the kernel that makes the table of tiles: each drops or weakens one statement that
// moves data or synchronises. Every one that is executed must give another table or be reported.
#include <functional>
#include <utility>
#include <vector>

#include "cuda/kernels/common/group_tiles.hpp"
#include "kernels/simulation/simulation.hpp"
#include "ptxsim/mutate/mutation.hpp"

namespace dualgemm::test {
namespace {

// More experts than a chunk, with rows in both chunks.
class TableRunner {
 public:
  // row_experts: empty, or instead of offsets.
  explicit TableRunner(Grouping grouping, std::vector<int32_t> row_experts = {})
      : data_({.m = 700, .n = 2, .k = 16, .l = 600, .grouping = grouping}, rng_, Values::kRandom,
              {}, std::move(row_experts)) {
    table_ = table({}, {});
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    const std::vector<uint8_t> got = table(std::move(program), options);
    return {ran_ && got == table_, result_};
  }

 private:
  std::vector<uint8_t> table(const std::shared_ptr<const ptxsim::Program>& instead,
                             const ptxsim::Options& options) {
    const Problem& p = data_.problem;
    Simulation simulation(data_, 0);
    void* const to = simulation.scratch("table", cuda::group_tiles_bytes(p, kTileM));
    auto launch = cuda::group_tiles_launch(p, simulation.buffers(), kTileM, to);
    launch.overlaps_previous = true;
    simulation.let_previous_grid_own_everything();
    ran_ = static_cast<bool>(simulation.run(launch, options, instead));
    result_ = simulation.last_run();
    return simulation.download_scratch("table", kPoison);
  }

  static constexpr int64_t kTileM = 16;
  Rng rng_;
  RandomCase data_;
  bool ran_ = false;
  ptxsim::RunResult result_;
  std::vector<uint8_t> table_;
};

TEST(GroupTilesMutants, EveryOneIsNoticed) {
  const auto program =
      program_of({.module = "group_tiles", .entry = "dual_gemm_group_tiles", .handle = nullptr});
  ASSERT_NE(program, nullptr);
  TableRunner contiguous(Grouping::kContiguous), masked(Grouping::kMasked);
  // Runs of 1, 3, 5, ... rows, some of them of no expert.
  std::vector<int32_t> owners;
  for (int32_t run = 0; owners.size() < 700; ++run)
    owners.insert(owners.end(), static_cast<size_t>(2 * run + 1), run % 5 == 3 ? -1 : run);
  owners.resize(700);
  TableRunner named(Grouping::kContiguous, owners);
  const auto look_at = [&](const ptxsim::MutantResult& mutant) {
    EXPECT_NE(mutant.fate, ptxsim::Fate::kSurvived) << ptxsim::to_string(*program, mutant.mutation);
  };
  const auto campaign =
      ptxsim::run_campaign(program, {std::ref(contiguous), std::ref(masked), std::ref(named)},
                           {.seeds = 3, .strict = true}, look_at);
  ASSERT_TRUE(campaign.ok()) << ptxsim::to_string(campaign.error());
  EXPECT_GE(campaign.value().executed, 8u);
}

}  // namespace
}  // namespace dualgemm::test
