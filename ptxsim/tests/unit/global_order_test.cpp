// Which instructions order accesses to global memory between CTAs, as the sanitizer sees it: R17 is
// a race. ptxsim/tests/rules has whole kernels for R17 to R22.
#include <gtest/gtest.h>

#include <string>

#include "unit/small_kernel.hpp"

namespace {

using namespace ptxsim;
using ptxsim_test::kData;
using ptxsim_test::reports;

constexpr int kRace = 17;

struct Grid {
  Dim3 grid{2, 1, 1}, cluster{1, 1, 1}, block{32, 1, 1};
  Schedule schedule = Schedule::kRandom;
  uint64_t seed = 1;
  bool check_global = true;
};

// %rd1: 256 bytes of zero; %r1 the CTA.
RunResult run_grid(const std::string& body, const Grid& grid) {
  RunResult failed;
  auto module = load(ptxsim_test::text_of({"mov.u32 %r1, %ctaid.x;\n" + body}), "small.ptx");
  if (!module.ok()) return failed.error = module.error(), failed;
  auto program = decode(*module, "small");
  if (!program.ok()) return failed.error = program.error(), failed;
  GlobalMemory memory;
  memory.add("data", kData, std::vector<std::byte>(256), true, false);
  Launch launch;
  launch.grid = grid.grid;
  launch.cluster = grid.cluster;
  launch.block = grid.block;
  for (int i = 0; i < 24; ++i)
    launch.params.push_back(i < 8 ? static_cast<uint8_t>(kData >> (8 * i)) : uint8_t{0});
  Options options;
  options.schedule = grid.schedule;
  options.seed = grid.seed;
  options.check_global = grid.check_global;
  options.max_warp_instructions = 400'000;
  return run(*program, launch, memory, options);
}

bool any_race(const std::string& body, Grid grid) {
  bool any = false;
  for (grid.seed = 1; grid.seed <= 4; ++grid.seed) {
    const RunResult result = run_grid(body, grid);
    EXPECT_FALSE(result.error) << to_string(*result.error);
    any = any || reports(result, kRace);
  }
  return any;
}

// Thread 0 of CTA 0 writes a word and hands over by the flag at +128; thread 0 of the last CTA
// takes over and reads it. `between`: what thread 0 of CTA 1 does when there are three.
std::string handover(const std::string& give, const std::string& take,
                     const std::string& between = "") {
  const std::string last = between.empty() ? "1" : "2";
  return "setp.ne.u32 %p1, %r0, 0;\n @%p1 ret;\n setp.eq.u32 %p2, %r1, " + last +
         ";\n @%p2 bra TAKE;\n setp.eq.u32 %p2, %r1, 1;\n @%p2 bra BETWEEN;\n"
         "mov.u32 %r14, 5;\n st.global.u32 [%rd1], %r14;\n mov.u32 %r14, 1;\n" +
         give + "\n ret;\nBETWEEN:\n" + between + "\n ret;\nTAKE:\n" + take +
         "\n ld.global.u32 %r15, [%rd1];";
}

std::string poll(const std::string& load, const std::string& name = "AGAIN",
                 const std::string& least = "1") {
  return name + ":\n " + load + "\n setp.lt.u32 %p3, %r16, " + least + ";\n @%p3 bra " + name +
         ";\n";
}

bool races(const std::string& give, const std::string& take, const Grid& grid = {}) {
  return any_race(handover(give, take), grid);
}

const Grid kPair{{2, 1, 1}, {2, 1, 1}};

TEST(GlobalOrder, ReleaseAndAcquireOrderUpToTheirScope) {
  const std::string gpu = "st.release.gpu.global.u32 [%rd1+128], %r14;";
  const std::string cluster = "st.release.cluster.global.u32 [%rd1+128], %r14;";
  const std::string acquire = poll("ld.acquire.gpu.global.u32 %r16, [%rd1+128];");
  EXPECT_FALSE(races(gpu, acquire));
  EXPECT_FALSE(races("st.release.sys.global.u32 [%rd1+128], %r14;",
                     poll("ld.acquire.sys.global.u32 %r16, [%rd1+128];")));
  EXPECT_TRUE(races(cluster, acquire));
  EXPECT_FALSE(races(cluster, acquire, kPair));
  EXPECT_TRUE(races(gpu, poll("ld.acquire.cluster.global.u32 %r16, [%rd1+128];")));
  EXPECT_TRUE(races(gpu, poll("ld.acquire.cta.global.u32 %r16, [%rd1+128];"), kPair));
}

TEST(GlobalOrder, FencesOrderUpToTheirScope) {
  const std::string write = "\n st.volatile.global.u32 [%rd1+128], %r14;";
  const std::string read = poll("ld.volatile.global.u32 %r16, [%rd1+128];");
  EXPECT_FALSE(races("membar.gl;" + write, read + "membar.gl;"));
  EXPECT_FALSE(races("fence.release.gpu;" + write, read + "fence.acquire.gpu;"));
  EXPECT_TRUE(races("membar.cta;" + write, read + "membar.gl;"));
  EXPECT_TRUE(races("membar.gl;" + write, read + "membar.cta;"));
  EXPECT_TRUE(races(write, read + "membar.gl;"));
  EXPECT_TRUE(races("membar.gl;" + write, read));
  // A wide fence does not widen the store behind it.
  EXPECT_TRUE(races("fence.acq_rel.gpu;\n st.relaxed.cta.global.u32 [%rd1+128], %r14;",
                    read + "fence.acq_rel.gpu;"));
}

TEST(GlobalOrder, AtomicsCarryReleasesOn) {
  const std::string give = "red.release.gpu.global.add.u32 [%rd1+128], 1;";
  const std::string take = poll("ld.acquire.gpu.global.u32 %r16, [%rd1+128];", "AGAIN", "2");
  const std::string wait = poll("ld.relaxed.gpu.global.u32 %r16, [%rd1+128];", "FIRST");
  const Grid three{{3, 1, 1}};
  EXPECT_FALSE(any_race(
      handover(give, take, wait + "red.relaxed.gpu.global.add.u32 [%rd1+128], 1;"), three));
  // A store in between ends the chain, an atomic of the own CTA too.
  EXPECT_TRUE(any_race(handover(give, take,
                                wait + "mov.u32 %r14, 2;\n"
                                       "st.relaxed.gpu.global.u32 [%rd1+128], %r14;"),
                       three));
  EXPECT_TRUE(any_race(handover(give, take, wait + "red.relaxed.cta.global.add.u32 [%rd1+128], 1;"),
                       three));
}

TEST(GlobalOrder, IsTransitiveOverClusters) {
  const std::string give = "st.release.gpu.global.u32 [%rd1+128], %r14;";
  const std::string between = poll("ld.acquire.gpu.global.u32 %r16, [%rd1+128];", "FIRST") +
                              "st.release.gpu.global.u32 [%rd1+136], %r16;";
  const std::string take = poll("ld.acquire.gpu.global.u32 %r16, [%rd1+136];");
  EXPECT_FALSE(any_race(handover(give, take, between), {{3, 1, 1}}));
  const std::string relaxed = poll("ld.relaxed.gpu.global.u32 %r16, [%rd1+128];", "FIRST") +
                              "st.release.gpu.global.u32 [%rd1+136], %r16;";
  EXPECT_TRUE(any_race(handover(give, take, relaxed), {{3, 1, 1}}));
}

TEST(GlobalOrder, BarriersOrderWithinTheirThreads) {
  const std::string body =
      "setp.ne.u32 %p1, %r0, 0;\n @!%p1 st.global.u32 [%rd1], 5;\n BARRIER\n"
      "ld.global.u32 %r15, [%rd1];";
  const auto with = [&](const std::string& barrier) {
    return std::string(body).replace(body.find("BARRIER"), 7, barrier);
  };
  const Grid one{{1, 1, 1}, {1, 1, 1}, {64, 1, 1}};
  EXPECT_FALSE(any_race(with("bar.sync 0;"), one));
  EXPECT_TRUE(any_race(with(""), one));
  // CTAs of a cluster: both store the same value.
  EXPECT_FALSE(any_race(with("barrier.cluster.arrive;\n barrier.cluster.wait;"), kPair));
  EXPECT_TRUE(any_race(with("bar.sync 0;"), kPair));
}

TEST(GlobalOrder, StrongAccessesDoNotRaceWithinTheirScope) {
  const auto both = [](const std::string& statement) { return any_race(statement, {}); };
  EXPECT_FALSE(both("atom.global.add.u32 %r2, [%rd1], 1;"));
  EXPECT_FALSE(both("red.relaxed.gpu.global.add.u32 [%rd1], 1;"));
  EXPECT_TRUE(both("atom.relaxed.cta.global.add.u32 %r2, [%rd1], 1;"));
  EXPECT_TRUE(both("red.relaxed.cluster.global.add.u32 [%rd1], 1;"));
  EXPECT_FALSE(both("st.volatile.global.u32 [%rd1], %r1;\n ld.volatile.global.u32 %r2, [%rd1];"));
  // A weak access races with an atomic.
  EXPECT_TRUE(both("red.relaxed.gpu.global.add.u32 [%rd1], 1;\n ld.global.u32 %r2, [%rd1];"));
  // Other bytes than the other one's: not the same object.
  EXPECT_TRUE(
      both("setp.eq.u32 %p1, %r1, 0;\n @%p1 st.relaxed.gpu.global.u32 [%rd1], %r1;\n"
           "mov.u64 %rd4, 1;\n @!%p1 st.relaxed.gpu.global.u64 [%rd1], %rd4;"));
}

TEST(GlobalOrder, ReadsAreRememberedToo) {
  // Whichever of the two comes first.
  const std::string body =
      "setp.ne.u32 %p1, %r0, 0;\n @%p1 ret;\n setp.eq.u32 %p2, %r1, READER;\n"
      "@%p2 ld.global.u32 %r2, [%rd1];\n @!%p2 st.global.u32 [%rd1], 5;";
  for (const char* reader : {"0", "1"}) {
    const std::string text = std::string(body).replace(body.find("READER"), 6, reader);
    EXPECT_TRUE(reports(run_grid(text, {.schedule = Schedule::kEager}), kRace)) << reader;
  }
}

TEST(GlobalOrder, EqualValuesDoNotRaceAndNeighboursNeither) {
  EXPECT_FALSE(any_race("st.global.u32 [%rd1], 5;", {}));
  EXPECT_TRUE(any_race("add.u32 %r2, %r1, 1;\n st.global.u32 [%rd1], %r2;", {}));
  const std::string own_byte =
      "mad.lo.u32 %r2, %r1, 32, %r0;\n cvt.u64.u32 %rd4, %r2;\n add.s64 %rd4, %rd1, %rd4;\n"
      "cvt.u16.u32 %h1, %r2;\n st.global.u8 [%rd4], %h1;\n ld.global.u8 %h2, [%rd4];";
  EXPECT_FALSE(any_race(own_byte, {}));
}

TEST(GlobalOrder, LanesOfOneStoreAreAWarning) {
  const RunResult result = run_grid("st.global.u32 [%rd1], %r0;", {{1, 1, 1}});
  ASSERT_EQ(result.reports.list.size(), 1u);
  EXPECT_EQ(result.reports.list[0].rule, kRace);
  EXPECT_EQ(result.reports.list[0].severity, Severity::kWarning);
}

TEST(GlobalOrder, TheReportNamesBothThreadsAndTheBuffer) {
  const RunResult result = run_grid(handover("st.release.cta.global.u32 [%rd1+128], %r14;",
                                             poll("ld.acquire.gpu.global.u32 %r16, [%rd1+128];")),
                                    {.schedule = Schedule::kEager});
  ASSERT_EQ(result.reports.list.size(), 2u);
  const Report& flag = result.reports.list[0];
  EXPECT_NE(flag.message.find("with scope .gpu here and .cta there"), std::string::npos)
      << flag.message;
  const Report& data = result.reports.list[1];
  EXPECT_NE(data.message.find("(data + 0x0), and nothing orders this after its being written"),
            std::string::npos)
      << data.message;
  EXPECT_NE(data.actor.find("CTA (1,0,0)"), std::string::npos) << data.actor;
  EXPECT_NE(data.other.find("CTA (0,0,0)"), std::string::npos) << data.other;
  EXPECT_NE(data.missing.find("a wider scope: 'ld.acquire.gpu"), std::string::npos) << data.missing;
}

TEST(GlobalOrder, LanesMayIssueTheSameBulkStoreButNotTwice) {
  constexpr int kUnfinished = 19;
  const std::string store =
      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 64;\n"
      "cp.async.bulk.commit_group;\n";
  const std::string body =
      "mov.u32 %r2, tile;\n shl.b32 %r3, %r0, 2;\n and.b32 %r3, %r3, 63;\n"
      "add.u32 %r3, %r2, %r3;\n st.shared.u32 [%r3], 7;\n fence.proxy.async;\n"
      "bar.warp.sync -1;\n" +
      store;
  EXPECT_FALSE(reports(run_grid(body, {{1, 1, 1}}), kUnfinished));
  EXPECT_TRUE(reports(run_grid(body + store, {{1, 1, 1}}), kUnfinished));
  const std::string wait = "cp.async.bulk.wait_group 0;\n bar.warp.sync -1;\n";
  EXPECT_FALSE(reports(run_grid(body + wait + store, {{1, 1, 1}}), kUnfinished));
}

TEST(GlobalOrder, IsNotCheckedWhenNobodyAsks) {
  const std::string racing = "add.u32 %r2, %r1, 1;\n st.global.u32 [%rd1], %r2;";
  EXPECT_FALSE(run_grid(racing, {}).reports.list.empty());
  EXPECT_TRUE(run_grid(racing, {.check_global = false}).reports.list.empty());
}

TEST(GlobalOrder, PreviousGridMustNameBuffers) {
  auto module = load(ptxsim_test::text_of({""}), "small.ptx");
  auto program = decode(*module, "small");
  GlobalMemory memory;
  Launch launch;
  launch.params.resize(24);
  launch.previous_grid.writes = {"nothing"};
  const RunResult result = run(*program, launch, memory, {});
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("there is no buffer 'nothing'"), std::string::npos);
}

}  // namespace
