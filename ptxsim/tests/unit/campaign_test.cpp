// A campaign that is stopped keeps what it has; a run that is stopped says so.
#include <gtest/gtest.h>

#include <atomic>

#include "case/case_outputs.hpp"
#include "ptxsim/mutate/mutation.hpp"
#include "unit/small_kernel.hpp"

namespace {

std::shared_ptr<const ptxsim::Program> program_of(const std::string& body) {
  auto module = ptxsim::load(text_of(ptxsim_test::SmallKernel{body}), "small.ptx");
  auto program = ptxsim::decode(*module, "small");
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  return *program;
}

TEST(Campaign, StopsWithWhatItHas) {
  const auto program = program_of("  bar.sync 0;\n  bar.sync 1;\n  bar.sync 2;");
  std::atomic<bool> stop = false;
  ptxsim::CampaignOptions options;
  options.seeds = 1;
  options.stop = &stop;
  const auto trial = [](std::shared_ptr<const ptxsim::Program> mutant,
                        const ptxsim::Options& run_options) {
    ptxsim::GlobalMemory memory;
    ptxsim::Launch launch;
    launch.block = {64, 1, 1};
    launch.params.resize(24);
    return ptxsim::Trial{true, ptxsim::run(std::move(mutant), launch, memory, run_options), {}};
  };
  const auto campaign = ptxsim::run_campaign(program, {trial}, options,
                                             [&](const ptxsim::MutantResult&) { stop = true; });
  ASSERT_TRUE(campaign.ok()) << to_string(campaign.error());
  EXPECT_TRUE(campaign.value().stopped);
  EXPECT_EQ(campaign.value().mutants.size(), 1u);
  EXPECT_EQ(campaign.value().selected, 3u);
}

TEST(Campaign, AStopBeforeTheFirstMutantIsAnError) {
  const auto program = program_of("  bar.sync 0;");
  std::atomic<bool> stop = true;
  ptxsim::GlobalMemory memory;
  ptxsim::Launch launch;
  launch.params.resize(24);
  ptxsim::Options options;
  options.stop = &stop;
  const ptxsim::RunResult result = ptxsim::run(program, launch, memory, options);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->kind, ptxsim::ErrorKind::kStopped);
  EXPECT_EQ(result.error->message, "stopped after 0 warp instructions");
}

TEST(Campaign, DifferencesNameTheByte) {
  const ptxsim::Outputs a{{{"out", {std::byte{1}, std::byte{2}}, {true, false}, true}}};
  ptxsim::Outputs b = a;
  EXPECT_EQ(difference(a, b), "");
  b.buffers[0].data[1] = std::byte{7};
  EXPECT_EQ(difference(a, b), "");  // the byte is unwritten
  b.buffers[0].written[1] = true;
  EXPECT_EQ(difference(a, b), "out: byte 1 is 0x07; the unchanged kernel leaves unwritten");
}

}  // namespace
