// The launches of a submission are those of the library, byte for byte.
#include <gtest/gtest.h>

#include <cstring>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "kernels/submission/submitted.hpp"

namespace dualgemm::test {
namespace {

namespace blackwell = cuda::blackwell;
namespace sm100a = cuda::sm100a;
namespace sm90a = cuda::sm90a;

// All arguments in the map's place, none of them lost.
CUresult record_arguments(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                          void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                          const cuuint32_t* box, const cuuint32_t* element_strides,
                          CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                          CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  auto* words = reinterpret_cast<uint64_t*>(map);
  std::memset(map, 0, sizeof *map);
  *words++ = reinterpret_cast<uint64_t>(address);
  *words++ = uint64_t{static_cast<uint32_t>(type)} << 40 | uint64_t{rank} << 32 |
             static_cast<uint64_t>(interleave) << 24 | static_cast<uint64_t>(swizzle) << 16 |
             static_cast<uint64_t>(promotion) << 8 | static_cast<uint64_t>(fill);
  for (cuuint32_t i = 0; i < rank; ++i) *words++ = dims[i];
  for (cuuint32_t i = 0; i + 1 < rank; ++i) *words++ = strides[i];
  for (cuuint32_t i = 0; i < rank; ++i) *words++ = uint64_t{element_strides[i]} << 32 | box[i];
  return CUDA_SUCCESS;
}

// Addresses that are never read.
Buffers far_buffers() {
  const auto at = [](uint64_t number) { return reinterpret_cast<uint8_t*>(number << 40); };
  Buffers buffers;
  buffers.a = at(1);
  buffers.a_scales = at(2);
  buffers.gate = at(3);
  buffers.gate_scales = at(4);
  buffers.up = at(5);
  buffers.up_scales = at(6);
  buffers.d = at(7);
  return buffers;
}

void* const kWorkspace = reinterpret_cast<void*>(uint64_t{8} << 40);

// Without bytes that no kernel reads: those between members.
template <class Params>
Params params_of(const cuda::KernelLaunch& launch) {
  Params params;
  EXPECT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  __builtin_clear_padding(&params);
  return params;
}

template <class Params>
void expect_same(const cuda::KernelLaunch& launch, const cuda::KernelLaunch& expected) {
  EXPECT_STREQ(launch.kernel.entry, expected.kernel.entry);
  EXPECT_NE(launch.kernel.handle, nullptr);
  EXPECT_EQ(launch.ctas, expected.ctas);
  EXPECT_EQ(launch.threads, expected.threads);
  EXPECT_EQ(launch.dynamic_smem_bytes, expected.dynamic_smem_bytes);
  EXPECT_EQ(launch.cluster_ctas, expected.cluster_ctas);
  const auto params = params_of<Params>(launch), other = params_of<Params>(expected);
  EXPECT_EQ(std::memcmp(&params, &other, sizeof params), 0);
}

const Extents kRagged[] = {{1, 1, 64},         {129, 200, 320, 3}, {300, 64, 1088},
                           {128, 4096, 7168},  {2000, 65, 256, 2}, {5000, 7000, 4096},
                           {2048, 3072, 4096}, {257, 129, 16384}};

std::vector<Extents> all_extents() {
  std::vector<Extents> all(std::begin(kChallenge), std::end(kChallenge));
  all.insert(all.end(), std::begin(kRagged), std::end(kRagged));
  return all;
}

template <class Check>
void for_each_call(std::initializer_list<int> gpus, const Check& check) {
  for (const Extents& extents : all_extents()) {
    for (const int num_sms : gpus) {
      SCOPED_TRACE(::testing::Message()
                   << "m " << extents.m << " n " << extents.n << " k " << extents.k << " l "
                   << extents.l << ", " << num_sms << " SMs");
      check(problem_of(extents), num_sms);
    }
  }
}

TEST(SubmittedSm100a, LaunchesAreTheLibrarys) {
  for_each_call({148, 160, 4, 1}, [](const Problem& problem, int num_sms) {
    const core::ResolvedProblem resolved = core::resolve(problem);
    const blackwell::Copies copies = blackwell::plan_copies(resolved, false);
    ASSERT_TRUE(sm100a::supports(problem).ok());
    ASSERT_EQ(copies.workspace_bytes, 0);
    const auto expected =
        sm100a::build_launches(resolved, far_buffers(), copies, nullptr,
                               sm100a::choose_instance(problem, num_sms), &record_arguments);
    ASSERT_TRUE(expected.ok());
    const ProbeAnswer answer =
        submitted("sm100a", problem, far_buffers(), num_sms, nullptr, &record_arguments);
    ASSERT_STREQ(answer.error, nullptr);
    EXPECT_EQ(answer.workspace_bytes, 0);
    ASSERT_EQ(answer.count, expected->size());
    expect_same<blackwell::Params>(answer.launches[0], expected->front());
  });
}

// The library's choice where the submission has it; where rows are so few that it has not, tiles of
// 128.
TEST(SubmittedSm90a, LaunchesAreTheLibrarys) {
  int chosen = 0, paired = 0, shared = 0;
  for_each_call({132, 114, 78, 8, 1}, [&](const Problem& problem, int num_sms) {
    const sm90a::Instance* instance = &sm90a::choose_instance(problem, num_sms, false);
    if (instance->config.tile_m < 128) {
      instance = sm90a::find_instance(128, 64, 1, false, false);
      EXPECT_LT(problem.m, 256) << "no shape of the challenge";
    }
    chosen |= instance->config.tile_m;
    const core::ResolvedProblem resolved = core::resolve(problem);
    const sm90a::Schedule schedule = sm90a::make_schedule(problem, instance->config, num_sms);
    paired += schedule.paired;
    shared += schedule.shared_k_tiles != 0;
    const sm90a::Workspace pieces =
        sm90a::plan_workspace(resolved, instance->config, schedule, false);
    const auto expected = sm90a::build_launches(resolved, far_buffers(), pieces, kWorkspace,
                                                *instance, schedule, &record_arguments, nullptr);
    ASSERT_TRUE(expected.ok());
    const ProbeAnswer answer =
        submitted("sm90a", problem, far_buffers(), num_sms, kWorkspace, &record_arguments);
    ASSERT_STREQ(answer.error, nullptr);
    EXPECT_EQ(answer.workspace_bytes, pieces.bytes);
    ASSERT_EQ(answer.count, 2u);
    ASSERT_EQ(expected->size(), 2u);
    expect_same<sm90a::PrepareParams>(answer.launches[0], expected->front());
    expect_same<sm90a::Params>(answer.launches[1], expected->back());
  });
  EXPECT_EQ(chosen, 128 | 256);
  EXPECT_GT(paired, 0);
  EXPECT_GT(shared, 0);
}

TEST(Submitted, RefusesWhatItCannotCompute) {
  const auto error = [](const std::string& name, const Extents& extents, uint64_t further = 0) {
    Buffers buffers = far_buffers();
    buffers.up = static_cast<const uint8_t*>(buffers.up) + further;
    const char* const answer =
        submitted(name, problem_of(extents), buffers, 132, kWorkspace, &record_arguments).error;
    return std::string(answer == nullptr ? "" : answer);
  };
  for (const char* const name : {"sm90a", "sm100a"}) {
    EXPECT_EQ(error(name, {128, 128, 80}), "k must be a multiple of 64");
    EXPECT_EQ(error(name, {0, 128, 64}), "m, n, k and l must be 1 .. 2^20 - 1");
    EXPECT_EQ(error(name, {128, -1, 64}), "m, n, k and l must be 1 .. 2^20 - 1");
    EXPECT_EQ(error(name, {128, 128, 1 << 20}), "m, n, k and l must be 1 .. 2^20 - 1");
    EXPECT_EQ(error(name, {128, 128, 64}, 8),
              "operands and scales must be at multiples of 16 bytes");
    EXPECT_NE(error(name, {1000000, 1000000, 64, 1000000}), "");
  }
}

}  // namespace
}  // namespace dualgemm::test
