// The interpreter without its sanitizer: this program links ptxsim_core alone. What observers are
// told, and in which order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "machine/execution.hpp"
#include "machine/memory/addresses.hpp"
#include "ptxsim/ptxsim.hpp"

namespace {

using namespace ptxsim;

constexpr uint64_t kIn = 0x10'0000'0000, kOut = 0x20'0000'0000;

// Thread 0 copies 64 bytes to shared memory by TMA; all wait, meet, and write what they read plus
// one.
constexpr const char* kText = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[64];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, full;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r3], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 64;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [%r3];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra WAIT;
  shl.b32 %r4, %r1, 2;
  add.u32 %r5, %r2, %r4;
  ld.shared.u32 %r6, [%r5];
  add.u32 %r6, %r6, 1;
  cvt.u64.u32 %rd3, %r4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r6;
  ret;
})";

struct CopyRun {
  RunResult result;
  std::vector<uint32_t> out;
};

CopyRun run_copy(Schedule schedule, const std::vector<MakeObserver>& observers = {}) {
  CopyRun run;
  auto module = load(kText, "copy.ptx");
  if (!module) return run.result.error = module.error(), run;
  auto program = decode(*module, "copy");
  if (!program) return run.result.error = program.error(), run;
  std::vector<uint32_t> in(16);
  for (uint32_t i = 0; i < 16; ++i) in[i] = 100 * i;
  std::vector<std::byte> bytes(64);
  std::memcpy(bytes.data(), in.data(), 64);
  GlobalMemory memory;
  memory.add("in", kIn, bytes, true, true);
  memory.add("out", kOut, std::vector<std::byte>(64), false, false);
  Launch launch;
  launch.block = {16, 1, 1};
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &kIn, 8);
  std::memcpy(launch.params.data() + 8, &kOut, 8);
  Options options;
  options.schedule = schedule;
  run.result = interpret(*program, launch, memory, options, observers);
  run.out.resize(16);
  std::memcpy(run.out.data(), memory.find("out")->data.data(), 64);
  return run;
}

// Writes down what a model of time would look at.
class Log final : public Observer {
 public:
  explicit Log(std::vector<std::string>& lines) : lines_(lines) {}
  bool wants_statements() const override { return true; }
  bool wants_global_accesses() const override { return true; }

  void executed(const Execution& x, const Insn& insn, bool blocked) override {
    if (!blocked) return;
    const WaitInfo& wait = x.warp.wait[x.first_lane()];
    add(fmt::format("{} blocks on mbarrier {:x}",
                    x.program().entry->statements[insn.statement].root, wait.where));
    EXPECT_EQ(wait.kind, WaitInfo::Kind::kMbarrier);
  }
  void global_access(const Execution& x, int lane, const MemoryAt& at, uint32_t bytes,
                     AccessKind kind) override {
    EXPECT_EQ(kind, AccessKind::kWrite);
    EXPECT_EQ(bytes, 4u);
    EXPECT_EQ(at.offset, kOut + 4 * x.thread_of(lane));
    ++global_writes_;
  }
  void shared_access(const Execution&, int, Cta&, uint32_t, uint32_t bytes,
                     AccessKind kind) override {
    EXPECT_EQ(kind, AccessKind::kRead);
    shared_bytes_ += bytes;
  }
  void mbarrier_initialized(const Execution&, int, Cta&, uint32_t offset,
                            const Mbarrier& barrier) override {
    add(fmt::format("init {:x} as {}", offset, barrier.number));
  }
  void fence_mbarrier_init(const Execution&, uint32_t lanes) override {
    add(fmt::format("fence of {:x}", lanes));
  }
  void barrier_arrived(const Execution&, uint32_t lanes, uint32_t number) override {
    add(fmt::format("arrive at {} by {:x}", number, lanes));
  }
  void barrier_completed(Cta&, uint32_t number) override {
    add(fmt::format("barrier {} completes", number));
  }
  void barrier_passed(const Execution&, uint32_t lanes, uint32_t number) override {
    add(fmt::format("{:x} pass barrier {}", lanes, number));
  }
  void mbarrier_arrived(const Execution&, int lane, const Mbarrier& barrier,
                        BarrierOrder) override {
    add(fmt::format("lane {} arrives at mbarrier {}", lane, barrier.number));
  }
  void mbarrier_expects(const Mbarrier& barrier, uint32_t bytes) override {
    add(fmt::format("mbarrier {} expects {}", barrier.number, bytes));
  }
  void mbarrier_received(const Mbarrier& barrier, uint32_t bytes) override {
    add(fmt::format("mbarrier {} receives {}", barrier.number, bytes));
  }
  void mbarrier_phase_completed(const Mbarrier& barrier) override {
    add(fmt::format("mbarrier {} completes phase {}", barrier.number, barrier.phase));
  }
  void mbarrier_passed(const Execution&, uint32_t lanes, const Mbarrier& barrier,
                       BarrierOrder) override {
    add(fmt::format("{:x} pass mbarrier {}", lanes, barrier.number));
  }
  void issued(const Execution&, int lane, AsyncOp op, AsyncKind kind) override {
    EXPECT_EQ(kind, AsyncKind::kTmaLoad);
    add(fmt::format("lane {} issues {}", lane, op.number));
  }
  void async_global(AsyncOp op, const Execution&, uint64_t bytes, AccessKind kind) override {
    EXPECT_EQ(kind, AccessKind::kRead);
    add(fmt::format("{} reads {}", op.number, bytes));
  }
  void async_shared(AsyncOp op, const Execution&, Cta& owner, uint32_t, uint32_t bytes,
                    AccessKind kind) override {
    EXPECT_EQ(kind, AccessKind::kWrite);
    EXPECT_EQ(owner.rank, 0u);
    add(fmt::format("{} writes {}", op.number, bytes));
  }
  void arrives_at(AsyncOp op, bool, const Mbarrier& barrier, int) override {
    add(fmt::format("{} arrives at mbarrier {}", op.number, barrier.number));
  }
  void completed(AsyncOp op) override { add(fmt::format("{} completes", op.number)); }
  void threads_exited(const Execution&, uint32_t lanes) override {
    add(fmt::format("{:x} exit", lanes));
  }
  void cta_exited(Cta& cta) override { add(fmt::format("CTA {} exits", cta.rank)); }
  void cluster_ended() override {
    EXPECT_EQ(global_writes_, 16u);
    EXPECT_EQ(shared_bytes_, 64u);
    add("the end");
  }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string>& lines_;
  uint32_t global_writes_ = 0, shared_bytes_ = 0;
};

std::vector<std::string> log_of(Schedule schedule) {
  std::vector<std::string> lines;
  const CopyRun run = run_copy(schedule, {[&](Cluster&) { return std::make_unique<Log>(lines); }});
  EXPECT_TRUE(run.result.clean()) << to_string(run.result.error.value_or(Error{}));
  return lines;
}

TEST(Core, RunsAKernelWithoutASanitizer) {
  for (Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    const CopyRun run = run_copy(schedule);
    ASSERT_TRUE(run.result.clean()) << to_string(run.result.error.value_or(Error{}));
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(run.out[i], 100 * i + 1);
  }
}

TEST(Core, EventsOfACopyThatCompletesAtOnce) {
  EXPECT_EQ(log_of(Schedule::kEager),
            (std::vector<std::string>{
                "init 440 as 1", "fence of 1", "arrive at 0 by ffff", "barrier 0 completes",
                "ffff pass barrier 0", "lane 0 arrives at mbarrier 1", "mbarrier 1 expects 64",
                "lane 0 issues 1", "1 reads 64", "1 writes 64", "1 arrives at mbarrier 1",
                "mbarrier 1 receives 64", "mbarrier 1 completes phase 0", "1 completes",
                "ffff pass mbarrier 1", "ffff exit", "CTA 0 exits", "the end"}));
}

// The warp blocks first; the operation completes later, and what it arrives at lets the warp go on.
TEST(Core, EventsOfACopyThatCompletesLate) {
  const std::vector<std::string> lines = log_of(Schedule::kLazy);
  const auto at = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) - lines.begin();
  };
  EXPECT_LT(at("1 writes 64"), at("mbarrier blocks on mbarrier 440"));
  EXPECT_LT(at("mbarrier blocks on mbarrier 440"), at("mbarrier 1 completes phase 0"));
  EXPECT_LT(at("mbarrier 1 completes phase 0"), at("1 completes"));
  EXPECT_LT(at("1 completes"), at("ffff pass mbarrier 1"));
  EXPECT_EQ(lines.back(), "the end");
}

// Every observer hears everything, in the order in which they were given, and none changes the
// result.
TEST(Core, SeveralObservers) {
  std::vector<std::string> first, second;
  const CopyRun run =
      run_copy(Schedule::kEager, {[&](Cluster&) { return std::make_unique<Log>(first); },
                                  [&](Cluster&) { return std::make_unique<Log>(second); }});
  EXPECT_TRUE(run.result.clean());
  EXPECT_EQ(first, second);
  EXPECT_EQ(run.out, run_copy(Schedule::kEager).out);
}

}  // namespace
