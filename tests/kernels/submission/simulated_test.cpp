// A submission's kernels in the interpreter: the PTX of the file that is written, launched by its
// own host part, every element of D within the bound of docs/numerics.md.
#include "cuda/kernels/sm90a/params.hpp"
#include "kernels/simulation/simulation.hpp"
#include "kernels/submission/submitted.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

// The main kernel's launch.
cuda::KernelLaunch expect_right(const std::string& name, const Extents& extents, int num_sms) {
  SCOPED_TRACE(::testing::Message()
               << name << ": m " << extents.m << " n " << extents.n << " k " << extents.k << " l "
               << extents.l << ", " << num_sms << " SMs");
  Rng rng;
  RandomCase data(problem_of(extents), rng, Values::kChallenge);
  data.alpha_gate = data.alpha_up = 1.0f;
  Simulation simulation(data, 0);
  const auto ask = [&](void* workspace) {
    return submitted(name, data.problem, simulation.buffers(), num_sms, workspace,
                     simulated_encode_tiled());
  };
  void* const workspace = simulation.scratch(
      "workspace", ask(reinterpret_cast<void*>(uint64_t{1} << 20)).workspace_bytes);
  ProbeAnswer answer = ask(workspace);
  EXPECT_STREQ(answer.error, nullptr);
  const std::string module = "submission_" + name;
  for (size_t i = 0; i < answer.count; ++i) {
    answer.launches[i].kernel.module = module.c_str();
    EXPECT_TRUE(simulation.run(answer.launches[i], {}));
  }
  simulation.download_d(data);
  EXPECT_TRUE(
      within_bound(data.problem, data.buffers(),
                   name == "sm100a" ? Accumulation::kTensorCoreStep : Accumulation::kAnyOrder));
  return answer.count == 0 ? cuda::KernelLaunch{} : answer.launches[answer.count - 1];
}

// One of the challenge's shapes whole, others a sixth to a fortieth of their size with the same
// remainders, ragged ones, batches; narrow tiles and wide ones.
TEST(SubmittedSm100a, ComputesTheChallenge) {
  expect_right("sm100a", {256, 512, 256}, 148);
  int wide = 0;
  for (const Extents& extents :
       {Extents{192, 64, 1792}, Extents{384, 128, 256}, Extents{384, 192, 512},
        Extents{384, 48, 576}, Extents{129, 200, 320, 2}, Extents{1, 1, 64}}) {
    for (const int num_sms : {148, 2}) {
      const cuda::KernelLaunch launch = expect_right("sm100a", extents, num_sms);
      wide += std::string(launch.kernel.entry).find("t128x128") != std::string::npos;
    }
  }
  EXPECT_GT(wide, 0);
}

cuda::sm90a::Params sm90a_params(const cuda::KernelLaunch& launch) {
  cuda::sm90a::Params params;
  std::memcpy(&params, launch.params.data(), sizeof params);
  return params;
}

TEST(SubmittedSm90a, ComputesTheChallenge) {
  expect_right("sm90a", {256, 512, 256}, 132);
  for (const Extents& extents : {Extents{192, 64, 1792}, Extents{384, 48, 576},
                                 Extents{129, 200, 320, 2}, Extents{1, 1, 64}}) {
    expect_right("sm90a", extents, 132);
  }
}

TEST(SubmittedSm90a, SharesTilesInPairsThroughMemoryAndNotAtAll) {
  const cuda::KernelLaunch pairs = expect_right("sm90a", {200, 130, 1088}, 13);
  EXPECT_EQ(pairs.cluster_ctas, 2u);
  EXPECT_TRUE(sm90a_params(pairs).schedule.paired);
  const cuda::KernelLaunch shared = expect_right("sm90a", {200, 130, 1792}, 5);
  EXPECT_NE(sm90a_params(shared).schedule.shared_k_tiles, 0u);
  const cuda::KernelLaunch whole = expect_right("sm90a", {200, 130, 320}, 6);
  EXPECT_EQ(sm90a_params(whole).schedule.shared_k_tiles, 0u);
  EXPECT_EQ(whole.cluster_ctas, 1u);
}

TEST(SubmittedSm90a, TilesOf96Columns) {
  const cuda::KernelLaunch launch = expect_right("sm90a", {200, 130, 1792}, 4);
  EXPECT_NE(std::string(launch.kernel.entry).find("_t128_g3_"), std::string::npos);
  EXPECT_EQ(sm90a_params(launch).schedule.shared_k_tiles, 0u);
}

TEST(SubmittedSm90a, TilesOf256Rows) {
  const cuda::KernelLaunch launch = expect_right("sm90a", {2000, 40, 320}, 4);
  EXPECT_NE(std::string(launch.kernel.entry).find("_t256_"), std::string::npos);
}

}  // namespace
}  // namespace dualgemm::test
