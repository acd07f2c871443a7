// What the host decides for the sm_100a kernel: which problems, which instance, which copies, which
// views. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "support/inputs.hpp"
#include "unit/cuda/recorded_views.hpp"

namespace dualgemm::cuda::sm100a {
namespace {

using blackwell::Copies;
using blackwell::Params;
using blackwell::plan_copies;

using test::far_buffers;
using test::record_view;
using test::swizzled;
using test::views;

void* const kWorkspace = reinterpret_cast<void*>(uint64_t{8} << 40);

std::vector<KernelLaunch> launches_of(const Problem& problem, const Buffers& buffers, int tile_n,
                                      bool unaligned = false) {
  views.clear();
  const core::ResolvedProblem resolved = core::resolve(problem);
  const auto launches =
      build_launches(resolved, buffers, plan_copies(resolved, unaligned), kWorkspace,
                     *find_instance(tile_n, problem.d.type), &record_view);
  EXPECT_TRUE(launches.ok()) << launches.status().message();
  return launches ? *launches : std::vector<KernelLaunch>();
}

Params params_of(const KernelLaunch& launch) {
  Params params;
  EXPECT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  return params;
}

TEST(Sm100aChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : instances()) {
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_t128x" + std::to_string(instance.config.tile_n) +
                                  "x256_s" + std::to_string(instance.stages) + "_" +
                                  name_of(instance.config.output));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(instances().size(), 8u);
  EXPECT_EQ(find_instance(96, DataType::kF16), nullptr);
}

TEST(Sm100aChoice, NarrowTilesWhereWideOnesLeaveSmsIdle) {
  const auto tile_n = [](int64_t m, int64_t n, int num_sms = 148) {
    return choose_instance({.m = m, .n = n, .k = 7168}, num_sms).config.tile_n;
  };
  EXPECT_EQ(tile_n(256, 4096), 64);   // 64 or 128 CTAs
  EXPECT_EQ(tile_n(512, 4096), 128);  // 128 CTAs, or two waves of 256
  EXPECT_EQ(tile_n(256, 3072), 64);
  EXPECT_EQ(tile_n(512, 3072), 128);
  EXPECT_EQ(tile_n(4096, 64), 64);  // half of a wide tile would be empty
  EXPECT_EQ(tile_n(1, 1, 0), 64);   // a GPU that does not tell its size
}

TEST(Sm100aChoice, RefusesWhatTheKernelDoesNotDo) {
  const auto reason = [](Problem p) { return supports(p).message(); };
  EXPECT_EQ(supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(reason({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}),
            "grouping: masked; the sm_100a kernel takes none");
  EXPECT_EQ(reason({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kBF16}}),
            "a.type: bf16; the sm_100a kernel takes e2m1");
  EXPECT_EQ(reason({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}), "ok");
  EXPECT_EQ(reason({.m = int64_t{1} << 31, .n = 1, .k = 16}),
            "m: 2147483648; must be below 2^31 on a GPU");
  EXPECT_EQ(reason({.m = 2, .n = 1, .k = 16, .a = {.ld = int64_t{1} << 41}}),
            "a: a stride of 1099511627776 bytes; must be below 2^40 on this GPU");
  EXPECT_EQ(reason({.m = 1 << 30, .n = 1 << 20, .k = 16}),
            "m, n, l: 1073741824, 1048576, 1; must be at most 2^31 - 1 tiles of 128 x 64");
}

TEST(Sm100aCopies, OnlyWhatTheTensorCopiesCannotRead) {
  const auto copies = [](const Problem& p) { return plan_copies(core::resolve(p), false); };
  EXPECT_EQ(copies(swizzled({.m = 256, .n = 4096, .k = 7168})).workspace_bytes, 0);
  EXPECT_EQ(copies(swizzled({.m = 256, .n = 4096, .k = 64, .l = 3})).workspace_bytes, 0);

  const Copies linear = copies({.m = 200, .n = 100, .k = 128});
  EXPECT_EQ(linear.a, Copies::kDirect);
  EXPECT_EQ(linear.gate, Copies::kDirect);
  EXPECT_EQ(linear.sf_a, 0);  // two scale tiles along rows, two along k
  EXPECT_EQ(linear.sf_gate, 2048);
  EXPECT_EQ(linear.sf_up, 3072);
  EXPECT_EQ(linear.workspace_bytes, 4096);

  // Padding along k inside a block would be multiplied; rows of 8 bytes cannot be addressed.
  const Copies ragged = copies(swizzled({.m = 5, .n = 9, .k = 16}));
  EXPECT_EQ(ragged.a, 0);
  EXPECT_EQ(ragged.gate, 128);
  EXPECT_EQ(ragged.up, 320);
  EXPECT_NE(ragged.sf_a, Copies::kDirect);

  Problem padded = swizzled({.m = 5, .n = 9, .k = 64});
  padded.gate.ld = 80;  // 40 bytes
  EXPECT_NE(copies(padded).gate, Copies::kDirect);
  EXPECT_EQ(copies(padded).up, Copies::kDirect);
  Problem one_row = swizzled({.m = 1, .n = 9, .k = 64});
  one_row.a.ld = 80;  // never used
  EXPECT_EQ(copies(one_row).a, Copies::kDirect);
}

TEST(Sm100aLaunch, ViewsOfOperandsReadInPlace) {
  const auto launches =
      launches_of(swizzled({.m = 300, .n = 200, .k = 320, .l = 2}), far_buffers(), 64);
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_EQ(views.size(), 6u);
  const test::RecordedView& a = views[0];
  EXPECT_EQ(a.type, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(a.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(a.address, uint64_t{1} << 40);
  EXPECT_EQ(a.dims, (std::vector<uint64_t>{160, 300, 2}));
  EXPECT_EQ(a.strides, (std::vector<uint64_t>{160, 48000}));
  EXPECT_EQ(a.box, (std::vector<uint32_t>{128, 128, 1}));
  EXPECT_EQ(views[2].box, (std::vector<uint32_t>{128, 64, 1}));
  const test::RecordedView& sf_gate = views[3];
  EXPECT_EQ(sf_gate.type, CU_TENSOR_MAP_DATA_TYPE_UINT16);
  EXPECT_EQ(sf_gate.swizzle, CU_TENSOR_MAP_SWIZZLE_NONE);
  EXPECT_EQ(sf_gate.dims, (std::vector<uint64_t>{256, 5, 2, 2}));
  EXPECT_EQ(sf_gate.strides, (std::vector<uint64_t>{512, 2560, 5120}));
  EXPECT_EQ(sf_gate.box, (std::vector<uint32_t>{256, 4, 1, 1}));

  const Params params = params_of(launches[0]);
  EXPECT_EQ(params.num_k_tiles, 2u);
  EXPECT_EQ(params.tiles_m, 3u);
  EXPECT_EQ(params.tiles_n, 4u);
  EXPECT_EQ(launches[0].ctas, 24u);
  EXPECT_EQ(launches[0].threads, 192u);
  // Each map is where its operand's loads look for it: the recorder numbered them.
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_sf_a.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_sf_gate.opaque[0] & 0xFF, 4u);
  EXPECT_EQ(params.map_up.opaque[0] & 0xFF, 5u);
  EXPECT_EQ(params.map_sf_up.opaque[0] & 0xFF, 6u);
}

TEST(Sm100aLaunch, CopiesComeFirstAndAreWhatIsRead) {
  const Problem problem{.m = 5, .n = 9, .k = 16, .l = 2};
  const auto launches = launches_of(problem, far_buffers(), 128);
  ASSERT_EQ(launches.size(), 3u) << "those of rows, those of scales, the kernel";
  EXPECT_EQ(std::string(launches.front().kernel.entry), "dual_gemm_repack_rows");
  EXPECT_EQ(std::string(launches.back().kernel.entry), "dual_gemm_sm100a_t128x128x256_s4_f16");
  const Copies copies = plan_copies(core::resolve(problem), false);
  const auto base = reinterpret_cast<uint64_t>(kWorkspace);
  EXPECT_EQ(views[4].address, base + static_cast<uint64_t>(copies.up));
  EXPECT_EQ(views[4].strides, (std::vector<uint64_t>{16, 9 * 16}));
  EXPECT_EQ(views[4].dims, (std::vector<uint64_t>{8, 9, 2}));
  EXPECT_EQ(views[5].address, base + static_cast<uint64_t>(copies.sf_up));
  RepackRowsParams rows;
  std::memcpy(&rows, launches[0].params.data(), sizeof rows);
  EXPECT_EQ(rows.count, 3);
  EXPECT_EQ(rows.copies[2].source_row_bytes, 8);
  EXPECT_EQ(rows.copies[2].destination_row_bytes, 16);
  RepackScalesParams scales;
  std::memcpy(&scales, launches[1].params.data(), sizeof scales);
  EXPECT_EQ(scales.count, 3);
  EXPECT_EQ(scales.copies[0].source_ld, 1);
  EXPECT_EQ(scales.copies[0].rows, 5);
  EXPECT_EQ(scales.copies[1].rows, 9);
  EXPECT_TRUE(launches[0].overlaps_previous && launches[1].overlaps_previous);
}

TEST(Sm100aLaunch, MisalignedOperandsAreCopiedIfPlannedAndRefusedIfNot) {
  const Problem problem = swizzled({.m = 5, .n = 9, .k = 64});
  const core::ResolvedProblem resolved = core::resolve(problem);
  Buffers buffers = far_buffers();
  buffers.up = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(buffers.up) + 24);
  const auto refused = build_launches(resolved, buffers, plan_copies(resolved, false), kWorkspace,
                                      *find_instance(64, DataType::kF16), &record_view);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(),
            "up: address % 16 = 8; must be aligned to 16 bytes, or planned for with "
            "PlanOptions::unaligned");
  // Only what is misaligned is copied.
  const auto launches = launches_of(problem, buffers, 64, true);
  ASSERT_EQ(launches.size(), 2u);
  const auto base = reinterpret_cast<uint64_t>(kWorkspace);
  EXPECT_EQ(views[2].address, uint64_t{3} << 40);
  EXPECT_EQ(views[4].address, base + static_cast<uint64_t>(plan_copies(resolved, true).up));
}

TEST(Sm100aLaunch, ScalarsOfTheEpilogue) {
  Problem problem = swizzled({.m = 5, .n = 9, .k = 64, .l = 2, .d = {.type = DataType::kBF16}});
  problem.d.ld = 11;
  problem.d.batch_stride = 77;
  problem.act = Activation::swiglu_oai();
  Buffers buffers = far_buffers();
  buffers.alpha_gate = 2.0f;
  buffers.alpha_up = 3.0f;
  const auto launches = launches_of(problem, buffers, 128);
  const Params params = params_of(launches.back());
  EXPECT_EQ(params.d_row_bytes, 22);
  EXPECT_EQ(params.d_batch_bytes, 154);
  EXPECT_EQ(params.alpha_gate, 2.0f);
  EXPECT_EQ(params.alpha_up, 3.0f);
  EXPECT_EQ(params.act.kind, ActKind::kSwigluOai);
  EXPECT_EQ(params.act.alpha, 1.702f);
  EXPECT_EQ(params.act.limit, 7.0f);
}

TEST(Sm100aLaunch, AnEncoderThatRefusesIsAnErrorThatNamesTheView) {
  test::encoder_answer = CUDA_ERROR_INVALID_VALUE;
  views.clear();
  const Problem problem = swizzled({.m = 5, .n = 9, .k = 64});
  const auto launches = build_launches(core::resolve(problem), far_buffers(), {}, kWorkspace,
                                       *find_instance(64, DataType::kF16), &record_view);
  test::encoder_answer = CUDA_SUCCESS;
  ASSERT_FALSE(launches.ok());
  EXPECT_EQ(launches.status().message(),
            "tensor map of a: CUresult 1 for dims (32, 5, 1), strides (32, 160) bytes, box (128, "
            "128, 1); must be accepted by the driver");
}

}  // namespace
}  // namespace dualgemm::cuda::sm100a
