// Small kernels on a GPU of round numbers: what the recorder makes of a run, computed by hand.
#include "timing/recorder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "ptxsim/case/case.hpp"
#include "timing/critical_path.hpp"
#include "timing/recorded_launch.hpp"
#include "timing/round_values.hpp"

namespace {

using namespace ptxsim;
using namespace ptxsim::timing;
using ptxsim_test::kExact;
using ptxsim_test::round_values;

std::string kernel(const std::string& body) {
  return R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<4>;
  .shared .align 128 .b8 tile[2048];
  .shared .align 8 .b64 full;
)" + body +
         "}\n";
}

const std::string kCase = R"({"grid": [2], "block": [BLOCK], "check_uninitialized": false,
  "buffers": [{"name": "data", "bytes": 4096}], "params": [{"buffer": "data"}]})";

Result<LaunchWork> recorded(const std::string& text, const std::string& threads,
                            const RecordOptions& options = {}, const std::string& ctas = "2",
                            const std::string& param = R"({"buffer": "data"})") {
  std::string json = kCase;
  json.replace(json.find(R"({"buffer": "data"})"), 18, param);
  json.replace(json.find("BLOCK"), 5, threads);
  json.replace(json.find("[2]") + 1, 1, ctas);
  auto module = load(text, "k.ptx");
  if (!module.ok()) return module.error();
  auto program = decode(*module, "k");
  if (!program.ok()) return program.error();
  auto description = parse_case(json, ".");
  if (!description.ok()) return description.error();
  return record(*description, *program, round_values(), options);
}

// The servers of memory take next to nothing.
Values latencies_alone() {
  Values values = round_values();
  at(values, Parameter::kHbm) = at(values, Parameter::kL2Access) = at(values, Parameter::kIngest) =
      at(values, Parameter::kSharedBandwidth) = 1e6;
  return values;
}

LaunchTime timed(const std::string& text, const std::string& threads = "32") {
  auto work = recorded(text, threads);
  EXPECT_TRUE(work.ok()) << to_string(work.error());
  return time_of(*work, latencies_alone());
}

// The grid starts at 0.1, the load takes a latency of 1, its use 4 clk. The last store takes 0.05.
TEST(Recorder, ALoadIsWaitedForWhereItIsUsed) {
  const LaunchTime time = timed(kernel(R"(
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, 7;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r3, %r2, %r1;
  st.global.u32 [%rd1+64], %r3;
  ret;
)"));
  EXPECT_NEAR(time.first_wave, 0.1 + 1 + 0.004 + 0.05, kExact);
}

// Nothing uses the register: the store does not wait, and the load is the last thing to end.
TEST(Recorder, ALoadThatNobodyUsesIsNotWaitedFor) {
  const LaunchTime time = timed(kernel(R"(
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, 7;
  ld.global.u32 %r2, [%rd1];
  st.global.u32 [%rd1+64], %r1;
  ret;
)"));
  EXPECT_NEAR(time.first_wave, 0.1 + 1, kExact);
}

// Warp 1 computes 50 functions, each from the last, of 28 clk (16, and 12 for denormal numbers)
// before the barrier, warp 0 none: both pass 0.02 after the later arrival, which takes 2 clk.
TEST(Recorder, ABarrierWaitsForTheLastWarp) {
  std::string functions;
  for (int i = 0; i < 50; ++i) functions += "  ex2.approx.f32 %f1, %f1;\n";
  const std::string text = kernel(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra $meet;
  mov.f32 %f1, 0f3f800000;
)" + functions + R"($meet:
  bar.sync 0;
  ret;
)");
  // The last function has been issued 49 later than the first; bar.sync and ret take a slot each.
  EXPECT_NEAR(timed(text, "64").first_wave, 0.1 + 49 * 0.028 + 0.002 + 0.02 + 0.002, kExact);
}

// 512 bytes arrive at the setup's end, a first load's latency of 1.5 later; the waiting warp knows
// 0.1 later.
TEST(Recorder, ABulkLoadReachesItsBarrier) {
  const std::string text = kernel(R"(
  mov.u32 %r1, full;
  mov.u32 %r2, tile;
  ld.param.u64 %rd1, [data];
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra $wait;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 512, [%r1];
$wait:
  bar.warp.sync 0xffffffff;
$again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra $again;
  ret;
)");
  auto work = recorded(text, "32");
  ASSERT_TRUE(work.ok()) << to_string(work.error());
  const LaunchTime time = time_of(*work, round_values());
  // The wait's own statement and ret; the branch back is not taken.
  EXPECT_NEAR(time.first_wave, 0.3 + 1.5 + 0.1 + 0.002, 1e-5);
  const auto path = shares_of(critical_path(work->classes[0].work, time.timeline));
  EXPECT_EQ(path.at(0).label, "first load");
  // 512 bytes for each of two CTAs out of 4096: all from memory.
  double memory = 0;
  for (const Demand& d : work->classes[0].work.demands)
    memory += d.server == Server::kHbm ? d.amount : 0;
  EXPECT_EQ(memory, 512);
}

// All lanes issue the store of a box that one of them would do: it is one store. Stores of places
// of their own are 32.
TEST(Recorder, LanesThatIssueOneStoreOfABoxAreOne) {
  const auto l2_bytes =
      [](const std::string& step) {
        auto work = recorded(kernel(R"(
  mov.u32 %r1, %tid.x;
  mul.lo.u32 %r1, %r1, )" + step + R"(;
  cvt.u64.u32 %rd2, %r1;
  ld.param.u64 %rd1, [data];
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, tile;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
)"),
                             "32");
        EXPECT_TRUE(work.ok()) << to_string(work.error());
        double bytes = 0;
        for (const Demand& d : work->classes[0].work.demands)
          bytes += d.server == Server::kL2 ? d.amount : 0;
        return bytes;
      };
  EXPECT_EQ(l2_bytes("0"), 16);
  EXPECT_EQ(l2_bytes("16"), 32 * 16);
}

// One step of f16: 64 x 8 x 16 products of what A stores, which take as long as those of 64 columns
// where A lies in shared memory, 2048 bytes of A, and 32 bytes of each row of B, 64 beside a sparse
// A.
TEST(Recorder, ASparseMmaReadsTwiceAsMuchOfB) {
  const auto demands = [](const std::string& mma) {
    auto work = recorded(kernel(R"(
  mov.b64 %rd2, 0x0000001000080040;
  mov.b32 %r1, 0;
  mov.b32 %r2, 0x44444444;
  wgmma.fence.sync.aligned;
)" + mma + R"(
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ret;
)"),
                         "128");
    EXPECT_TRUE(work.ok()) << to_string(work.error());
    std::map<Server, double> sums;
    for (const Demand& d : work->classes[0].work.demands) sums[d.server] += d.amount;
    return sums;
  };
  const auto dense = demands(
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r3, %r4, %r5}, %rd2, %rd2, 0, 1, "
      "1, 0, 0;");
  const auto sparse = demands(
      "  wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r1, %r3, %r4, %r5}, %rd2, %rd2, "
      "%r2, 0, 0, 1, 1, 0, 0;");
  const auto of_registers = demands(
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r3, %r4, %r5}, {%r2, %r2, %r2, "
      "%r2}, %rd2, 0, 1, 1, 0;");
  EXPECT_EQ(dense.at(Server::kTensor), 64 * 64 * 16);
  EXPECT_EQ(sparse.at(Server::kTensor), 64 * 64 * 16);
  EXPECT_EQ(of_registers.at(Server::kTensor), 64 * 8 * 16);
  EXPECT_EQ(dense.at(Server::kShared), 2048 + 8 * 32);
  EXPECT_EQ(sparse.at(Server::kShared), 2048 + 8 * 64);
}

// Steps of e2m1 with scales, 16 x 8 x 64 products each, of which four count as one of 16 bits:
// those of the CTA alone, also where its neighbour runs at the same time.
TEST(Recorder, ACtaHasItsOwnProducts) {
  std::string text = kernel(R"(
  ld.param.u64 %rd1, [data];
  mov.b32 %r1, 0;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r2, 0;
again:
  mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
    {%f2, %f3, %f4, %f5}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1, %f1, %f1},
    {%r1}, {0, 0}, {%r1}, {0, 0};
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 20000;
  @%p1 bra again;
  ret;
)");
  text.replace(text.find("sm_90a"), 6, "sm_120a");
  for (const bool whole_grid : {false, true}) {
    auto work = recorded(text, "32", {.clusters = {}, .whole_grid = whole_grid});
    ASSERT_TRUE(work.ok()) << to_string(work.error());
    EXPECT_TRUE(work->is_narrow);
    for (const TileClass& one : work->classes) {
      double products = 0;
      for (const Demand& d : one.work.demands)
        products += d.server == Server::kMmaSync ? d.amount : 0;
      EXPECT_EQ(products, 20000.0 * 16 * 8 * 64 / 4) << whole_grid;
    }
  }
}

// A box of 16 rows of 32 bytes has 6 rows inside: zeros for the others come from no memory, and
// arrive like them.
TEST(Recorder, WhatABoxHasOutsideItsTensorIsNotReadAnywhere) {
  std::string text = kernel(R"(
  mov.u32 %r1, full;
  mov.u32 %r2, tile;
  mov.b64 %rd1, data;
  cvta.param.u64 %rd2, %rd1;
  mov.b32 %r4, 0;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra $wait;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%r2], [%rd2, {%r4, %r4}], [%r1];
$wait:
  bar.warp.sync 0xffffffff;
$again:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra $again;
  ret;
)");
  const std::string param = ".param .u64 data";
  text.replace(text.find(param), param.size(), ".param .align 128 .b8 data[128]");
  auto work = recorded(text, "32", {}, "2", R"({"align": 128, "tensor_map": {"buffer": "data",
    "data_type": "u8", "dims": [32, 6], "strides_bytes": [32], "box": [32, 16]}})");
  ASSERT_TRUE(work.ok()) << to_string(work.error());
  double memory = 0, l2 = 0, ingest = 0;
  for (const Demand& d : work->classes[0].work.demands) {
    memory += d.server == Server::kHbm ? d.amount : 0;
    l2 += d.server == Server::kL2 ? d.amount : 0;
    ingest += d.server == Server::kIngest ? d.amount : 0;
  }
  EXPECT_EQ(memory, 6 * 32);
  EXPECT_EQ(l2, 6 * 32);
  EXPECT_EQ(ingest, 512);
}

// us of one warp that runs `body`, more than an empty one.
double us_of(const std::string& body, const std::string& threads = "32") {
  const auto us = [&](const std::string& text) { return timed(kernel(text), threads).first_wave; };
  return us("  mov.u32 %r1, %tid.x;\n" + body + "  ret;\n") - us("  ret;\n");
}

std::string repeated(int times, const std::string& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// 40 of each, so that what comes before and after does not matter: a clk is 0.001.
TEST(Recorder, AChainOfResultsTakesItsLatencies) {
  const auto clk = [](const std::string& text) {
    return (us_of(repeated(60, text)) - us_of(repeated(20, text))) / 40 * 1000;
  };
  EXPECT_NEAR(clk("  add.u32 %r1, %r1, %r2;\n"), 4, 1e-3);
  EXPECT_NEAR(clk("  fma.rn.f32 %f1, %f1, %f1, %f1;\n"), 4, 1e-3);
  EXPECT_NEAR(clk("  rcp.approx.ftz.f32 %f1, %f1;\n"), 16, 1e-3);
  EXPECT_NEAR(clk("  div.s32 %r1, %r1, %r2;\n"), 128, 1e-3);
  EXPECT_NEAR(clk("  shfl.sync.bfly.b32 %r1, %r1, 1, 31, 0xffffffff;\n"), 24 + 0, 200);
  // Two that do not wait for each other: the scheduler issues one a clk.
  EXPECT_NEAR(clk("  add.u32 %r3, %r1, %r2;\n"), 1, 1e-3);
}

// Words 32 apart lie in one bank: 32 accesses of 128 bytes at 1 byte a clk, instead of one.
TEST(Recorder, LanesOfOneBankComeOneAfterTheOther) {
  const auto bytes = [](const std::string& words_apart) {
    auto work = recorded(kernel("  mov.u32 %r1, %tid.x;\n  mul.lo.u32 %r1, %r1, " + words_apart +
                                ";\n  shl.b32 %r1, %r1, 2;\n  and.b32 %r1, %r1, 2047;\n"
                                "  mov.u32 %r2, tile;\n  add.u32 %r2, %r2, %r1;\n"
                                "  ld.shared.u32 %r3, [%r2];\n  ret;\n"),
                         "32");
    EXPECT_TRUE(work.ok()) << to_string(work.error());
    double sum = 0;
    for (const Demand& d : work->classes[0].work.demands)
      sum += d.server == Server::kShared ? d.amount : 0;
    return sum;
  };
  EXPECT_EQ(bytes("1"), 128);
  EXPECT_EQ(bytes("2"), 2 * 128);
  EXPECT_EQ(bytes("16"), 16 * 128);
}

// What L1 holds takes no bytes of L2, and no piece of its own; a load past it does.
TEST(Recorder, ALineIsReadFromL2Once) {
  const auto l2 = [](const std::string& second) {
    auto work = recorded(kernel("  ld.param.u64 %rd1, [data];\n  ld.global.u32 %r1, [%rd1];\n" +
                                second + "  ret;\n"),
                         "32");
    EXPECT_TRUE(work.ok()) << to_string(work.error());
    double sum = 0;
    for (const Demand& d : work->classes[0].work.demands)
      sum += d.server == Server::kIngest ? d.amount : 0;
    return sum;
  };
  EXPECT_EQ(l2(""), 32);
  EXPECT_EQ(l2("  ld.global.u32 %r2, [%rd1+4];\n"), 32);
  EXPECT_EQ(l2("  ld.global.u32 %r2, [%rd1+32];\n"), 64);
  EXPECT_EQ(l2("  ld.global.cg.u32 %r2, [%rd1];\n"), 64);
}

// All lanes of both CTAs add to one word: one after the other, 1 ns each.
TEST(Recorder, AtomicsOfOneWordComeOneAfterTheOther) {
  auto work = recorded(kernel("  ld.param.u64 %rd1, [data];\n  mov.u32 %r1, 7;\n"
                              "  red.global.add.u32 [%rd1], %r1;\n  ret;\n"),
                       "32");
  ASSERT_TRUE(work.ok()) << to_string(work.error());
  EXPECT_EQ(work->atomics_of_a_line, 2 * 32);
}

TEST(Recorder, OnlyTheClustersThatAreAskedForAreRecorded) {
  const std::string text = kernel("  ret;\n");
  EXPECT_EQ(recorded(text, "32", {.clusters = {0, 1}})->classes.size(), 2u);
  EXPECT_EQ(recorded(text, "32", {.clusters = {1}, .whole_grid = true})->classes.at(0).name,
            "cluster 1");
  const auto beyond = recorded(text, "32", {.clusters = {2}});
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().message, "cluster 2 of a grid of 2; they count from 0");
}

TEST(Recorder, AKernelThatFaultsHasNoTime) {
  const auto work =
      recorded(kernel("  mov.u64 %rd1, 0;\n  ld.global.u32 %r1, [%rd1];\n  ret;\n"), "32");
  ASSERT_FALSE(work.ok());
  EXPECT_EQ(work.error().kind, ErrorKind::kFault);
}

// A CTA that does the work of all that have not begun: where every one has an SM, of none.
TEST(Recorder, NobodyTakesOverWorkWhereAllCtasHaveAnSm) {
  std::string text = kernel(R"(
  .reg .b128 %q0;
  .shared .align 16 .b8 response[16];
  mov.u32 %r1, full;
  mov.u32 %r2, response;
  mov.u32 %r3, 0;
  mbarrier.init.shared::cta.b64 [%r1], 1;
$next:
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r1];
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r3;
  @!%p1 bra $wait;
  xor.b32 %r3, %r3, 1;
  ld.shared.b128 %q0, [%r2];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
  @%p2 bra $next;
  ret;
)");
  text.replace(text.find("sm_90a"), 6, "sm_100a");
  const auto first_wave = [&](const std::string& ctas) {
    auto work = recorded(text, "1", {}, ctas);
    EXPECT_TRUE(work.ok()) << to_string(work.error());
    Values values = round_values();
    at(values, Parameter::kNumSms) = 200;
    return work.ok() ? time_of(*work, values).first_wave : 0;
  };
  const double alone = first_wave("1");
  EXPECT_EQ(first_wave("2"), alone);
  EXPECT_EQ(first_wave("148"), alone);
  EXPECT_GT(first_wave("149"), 2 * alone);
}

}  // namespace
