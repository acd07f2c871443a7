// What tcgen05 refuses, and what it orders: allocation (R9), operands (R12, R14), the collector
// (R15), commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tcgen05_kernel.hpp"

namespace {

using namespace tcgen05_test;

constexpr uint32_t kNvf4 = 1u << 7 | 1u << 10 | 8u << 17 | 1u << 27;  // M = 128, N = 64
constexpr uint32_t kF16 = 1u << 4 | 8u << 17 | 8u << 24;              // M = 128, N = 64, D f32

// One MMA on zeros: A at 0, B at 16 KiB, D at column 0, scales at 256 and 264.
struct Mma {
  uint32_t instruction = kNvf4;
  uint64_t a = descriptor(0, 0, 1024, 2), b = descriptor(0x4000, 0, 1024, 2);
  uint32_t d = 0, sfa = 256, sfb = 264;
  std::string modifiers = ".kind::mxf4nvf4.block_scale.scale_vec::4X";
  std::string tail = "[%x2], [%x3], 0";
  std::string text() const {
    return at("%x0", d) + set32("%x1", instruction) + at("%x2", sfa) + at("%x3", sfb) +
           set64("%d0", a) + set64("%d1", b) + "  tcgen05.mma.cta_group::1" + modifiers +
           " [%x0], %d0, %d1, %x1, " + tail + ";\n";
  }
};

Kernel kernel_of(std::string issue) {
  Kernel kernel;
  kernel.shared = {std::vector<uint8_t>(0x8000)};
  kernel.issue = std::move(issue);
  return kernel;
}

TEST(TcRules, TheMmaItselfIsClean) { run_clean(kernel_of(Mma{}.text())); }

TEST(TcRules, OverlapsInTensorMemory) {
  expect_error(kernel_of(Mma{.sfa = 60}.text()), "of D overlap columns 60 .. 63 of SFA (R14)");
  expect_error(kernel_of(Mma{.sfb = 63}.text()), "of D overlap columns 63 .. 64 of SFB (R14)");
  expect_error(kernel_of(Mma{.sfa = 256, .sfb = 259}.text()), "of SFA overlap");
}

TEST(TcRules, Alignment) {
  expect_error(kernel_of(Mma{.d = 16u << 16}.text()), "D starts at lane 16; must be 0 for M = 128");
  expect_error(kernel_of(Mma{.sfa = 32u << 16 | 256}.text()), "scale factors A at lane 32");
  expect_error(kernel_of(Mma{.a = descriptor(112, 0, 1024, 2)}.text()), "a-desc: start address");
  expect_error(kernel_of(Mma{.b = descriptor(0x4000, 0, 1024, 3)}.text()),
               "swizzle mode (bits 61-63) is 3");
  expect_error(kernel_of(Mma{.b = descriptor(0x8000 - 4096, 0, 1024, 2)}.text()),
               "shared memory access");
  expect_error(kernel_of(Mma{.instruction = kNvf4 | 1u << 23 | 1u << 29}.text()),
               "scale factor id 1; must be 0 for scale_vec::4X");
}

TEST(TcRules, ColumnsBesideAInTensorMemory) {
  const auto text = [](uint32_t instruction) {
    return at("%x0", 0) + at("%x2", 256) + set32("%x1", instruction) +
           set64("%d1", descriptor(0x4000, 0, 1024, 2)) +
           "  tcgen05.mma.cta_group::1.kind::f16 [%x0], [%x2], %d1, %x1, 0;\n";
  };
  run_clean(kernel_of(text(1u << 4 | 2u << 17 | 8u << 24)));
  run_clean(kernel_of(text(1u << 4 | 1u << 17 | 4u << 24)));  // M = 64, N = 8
  expect_error(kernel_of(text(1u << 4 | 1u << 17 | 8u << 24)),
               "N is 8; must be a multiple of 16 with A in tensor memory and M = 128 (R14)");
}

TEST(TcRules, ColumnsOfTheAllocation) {
  Kernel kernel = kernel_of(Mma{.d = 480}.text());
  expect_error(kernel, "columns 480 .. 543 of tensor memory, which has columns 0 .. 511 (R9)");
  kernel = kernel_of(Mma{.sfa = 60, .sfb = 62}.text());
  kernel.columns = 32;
  expect_error(kernel, "D of tcgen05.mma: columns 0 .. 63; column 32 is not allocated");
}

TEST(TcRules, ScaleCopiesMustAgree) {
  Kernel kernel = kernel_of(Mma{}.text());
  cell(kernel.tensor[0], 64 + 5, 257) = 0x38;
  expect_error(kernel,
               "scale factors of row 37 of A: lane 5 column 257 holds 0x00000000, lane 69 "
               "holds 0x00000038");
  kernel = kernel_of(
      Mma{.instruction = kNvf4 | 1u << 23, .modifiers = ".kind::mxf4.block_scale.block32"}.text());
  cell(kernel.tensor[0], 64 + 5, 257) = 0x380000;  // a byte that id 0 does not use
  run_clean(kernel);
}

TEST(TcRules, ModifiersAndOperands) {
  expect_error(kernel_of(Mma{.modifiers = ".kind::mxf4nvf4.block_scale"}.text()),
               "kind::mxf4nvf4 needs .scale_vec::2X");
  expect_error(kernel_of(Mma{.modifiers = ".kind::mxf4.block_scale.scale_vec::4X"}.text()),
               "kind::mxf4 cannot have 4 scales");
  expect_error(kernel_of(Mma{.modifiers = ".kind::mxf4nvf4.scale_vec::4X"}.text()),
               "kind::mxf4nvf4 needs .block_scale");
  expect_error(
      kernel_of(Mma{.modifiers = ".ws.kind::f16", .tail = "{%x4, %x5, %x4, %x5}, 0"}.text()),
      "a predicate register is needed");
  expect_error(kernel_of(Mma{.modifiers = ".kind::f16.ashift", .tail = "0"}.text()),
               "ashift is not modelled");
  expect_error(kernel_of(Mma{.modifiers = ".kind::f16.surprise", .tail = "0"}.text()), "surprise");
  expect_error(kernel_of(Mma{.modifiers = ".kind::f8f6f4", .tail = "0, 3"}.text()),
               "scale-input-d must be an immediate");
  expect_error(kernel_of(Mma{.modifiers = ".kind::f16", .tail = "{%x4, %x5}, 0"}.text()),
               "disable-output-lane of 2 registers; needs 4");
  expect_error(kernel_of("  tcgen05.shift.cta_group::1.down [%taddr];\n"),
               "tcgen05.shift is not modelled");
  expect_error(kernel_of(at("%x0", 0) + "  tcgen05.cp.cta_group::2.128x256b [%x0], %d0;\n"),
               "all tcgen05 instructions of a kernel must have the same");
  expect_error(kernel_of("  tcgen05.cp.cta_group::1.64x128b [%taddr], %d0;\n"),
               "needs .warpx2::02_13");
}

TEST(TcRules, DisabledLanesKeepTheirValue) {
  Kernel kernel = kernel_of(
      set32("%x4", 0x00000001) + set32("%x5", 0xffff0000) + set32("%x6", 0) +
      set32("%x7", 0x80000000) +
      Mma{.instruction = kF16, .modifiers = ".kind::f16", .tail = "{%x4, %x5, %x6, %x7}, 0"}
          .text());
  kernel.tensor = {Tmem(size_t{kLanes} * kColumns, 77)};
  const Result result = run_clean(kernel);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool disabled = lane == 0 || lane == 127 || (lane >= 48 && lane < 64);
    EXPECT_EQ(cell(result.tensor[0], lane, 63), disabled ? 77u : 0u) << lane;
    EXPECT_EQ(cell(result.tensor[0], lane, 64), 77u) << lane;
  }
}

// s8 times u8: 32 * -2 * 200 + 5, and saturation of the sum.
TEST(TcInteger, SumsOfBytes) {
  const uint32_t i8 = 2u << 4 | 1u << 7 | 8u << 17 | 8u << 24;
  Kernel kernel = kernel_of(Mma{.instruction = i8, .modifiers = ".kind::i8", .tail = "1"}.text() +
                            set32("%x1", i8 | 1u << 3) + at("%x0", 128) +
                            "  tcgen05.mma.cta_group::1.kind::i8 [%x0], %d0, %d1, %x1, 1;\n");
  std::fill_n(kernel.shared[0].begin(), 0x4000, uint8_t{0xfe});
  std::fill_n(kernel.shared[0].begin() + 0x4000, 0x4000, uint8_t{200});
  kernel.tensor = {Tmem(size_t{kLanes} * kColumns, 5)};
  cell(kernel.tensor[0], 3, 128) = 0x80000001;
  const Result result = run_clean(kernel);
  EXPECT_EQ(cell(result.tensor[0], 3, 0), static_cast<uint32_t>(5 - 32 * 2 * 200));
  EXPECT_EQ(cell(result.tensor[0], 127, 63), static_cast<uint32_t>(5 - 32 * 2 * 200));
  EXPECT_EQ(cell(result.tensor[0], 3, 128), 0x80000000u);
  EXPECT_EQ(cell(result.tensor[0], 4, 128), static_cast<uint32_t>(5 - 32 * 2 * 200));
  expect_error(
      kernel_of(Mma{.instruction = i8 | 1u << 13, .modifiers = ".kind::i8", .tail = "1"}.text()),
      "integers have none");
}

// R15: what is reported, all of this severity.
std::vector<std::string> collector_reports(const std::string& first, const std::string& second,
                                           bool other_a, ptxsim::Severity severity) {
  const std::string kind = ".kind::mxf4nvf4.block_scale.scale_vec::4X";
  Mma one{.modifiers = kind + first}, two{.d = 64, .modifiers = kind + second};
  if (other_a) two.a = descriptor(32, 0, 1024, 2);
  const Result result = run(kernel_of(one.text() + two.text()));
  EXPECT_FALSE(result.run.error) << problems(result.run);
  std::vector<std::string> messages;
  for (const ptxsim::Report& report : result.run.reports.list) {
    EXPECT_EQ(report.rule, 15);
    EXPECT_EQ(report.severity, severity);
    messages.push_back(report.message);
  }
  return messages;
}

TEST(TcRules, Collector) {
  const std::string fill = ".collector::a::fill", use = ".collector::a::lastuse";
  constexpr auto kError = ptxsim::Severity::kError, kWarning = ptxsim::Severity::kWarning;
  EXPECT_TRUE(collector_reports(fill, use, false, kError).empty());
  EXPECT_EQ(collector_reports(fill, use, true, kError).size(), 1u);
  EXPECT_EQ(collector_reports("", use, false, kError).size(), 1u);
  EXPECT_EQ(collector_reports(use, "", false, kError).size(), 1u);
  const auto never_used = collector_reports(fill, ".collector::a::discard", false, kWarning);
  ASSERT_EQ(never_used.size(), 1u);
  EXPECT_NE(never_used[0].find("never used"), std::string::npos);
  EXPECT_EQ(collector_reports("", fill, false, kWarning).size(), 1u)
      << "not used until the CTA exits";
}

// 32 instructions in order: each adds 1 (A and B are ones in one k) to the D of the one before.
TEST(TcOrder, InstructionsOfAThreadRunInOrder) {
  std::string issue = Mma{.instruction = kF16, .modifiers = ".kind::f16", .tail = "0"}.text();
  for (int i = 0; i < 31; ++i)
    issue += "  tcgen05.mma.cta_group::1.kind::f16 [%x0], %d0, %d1, %x1, 1;\n";
  Kernel kernel = kernel_of(issue);
  for (uint32_t row = 0; row < 128; ++row) kernel.shared[0][row * 128 + row % 8 * 16 + 1] = 0x3c;
  for (uint32_t row = 0; row < 64; ++row)
    kernel.shared[0][0x4000 + row * 128 + row % 8 * 16 + 1] = 0x3c;
  const Result result = run_clean(kernel);
  EXPECT_EQ(std::bit_cast<float>(cell(result.tensor[0], 100, 63)), 32.0f);
  EXPECT_EQ(result.run.stats.mma_instructions, 32u);
}

// Registers of a load belong to it until the wait: the hardware waits for a register that is read
// early, which is a warning; writing one is an error.
TEST(TcOrder, LoadedRegistersNeedTheWait) {
  Kernel kernel = kernel_of(Mma{}.text());
  const std::string load = "  tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%t3];\n";
  const std::string wait = "  tcgen05.wait::ld.sync.aligned;\n";
  kernel.all = load + "  add.u32 %r2, %r1, 1;\n" + wait;
  const Result result = run(kernel);
  EXPECT_FALSE(result.run.error) << problems(result.run);
  ASSERT_EQ(result.run.reports.list.size(), 1u) << problems(result.run);
  EXPECT_EQ(result.run.reports.list[0].rule, 8);
  EXPECT_EQ(result.run.reports.list[0].severity, ptxsim::Severity::kWarning);
  kernel.all = load + "  mov.b32 %r1, 5;\n" + wait;
  expect_error(kernel, "(R8)");
}

TEST(TcOrder, TheReducedRegisterNeedsTheWait) {
  Kernel kernel = kernel_of(Mma{}.text());
  const std::string wait = "  tcgen05.wait::ld.sync.aligned;\n";
  const auto load = [](const std::string& form, const std::string& rest) {
    return "  tcgen05.ld.red.sync.aligned." + form + " {%r0, %r1}, %r2, [%t3]" + rest + ";\n";
  };
  kernel.all = load("32x32b.x2.max.u32", "") + wait + "  mov.b32 %r2, 5;\n";
  run_clean(kernel);
  kernel.all = load("32x32b.x2.max.u32", "") + "  mov.b32 %r2, 5;\n" + wait;
  expect_error(kernel, "is written before its wait (R8)");
  kernel.all = load("16x32bx2.x2.max.u32", ", 16") + wait;
  expect_error(kernel, "tcgen05.ld.red.16x32bx2 is not modelled");
  kernel.all = load("16x64b.x2.max.u32", "") + wait;
  expect_error(kernel, "needs the shape 32x32b and .x2 or more");
  kernel.all = load("32x32b.x2.max.b32", "") + wait;
  expect_error(kernel, "needs .min or .max, and .u32, .s32 or .f32");
  kernel.all = load("32x32b.x2.max.abs.u32", "") + wait;
  expect_error(kernel, "modifier .abs is not known");
}

TEST(TcOrder, LaneQuarters) {
  Kernel kernel = kernel_of(Mma{}.text());
  kernel.all =
      "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr+0x200000];\n"
      "  tcgen05.wait::ld.sync.aligned;\n";
  expect_error(kernel, "with lane 32 in the address; warp 0 reaches lanes 0 to 31 (R14)");
  kernel.all =
      "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%t3+0x100000];\n"
      "  tcgen05.wait::ld.sync.aligned;\n";
  expect_error(kernel, "must be a multiple of 32 for its shape (R14)");
  kernel.all =
      "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr];\n"
      "  tcgen05.wait::ld.sync.aligned;\n";
  const Result result = run(kernel);
  EXPECT_FALSE(result.run.error) << problems(result.run);
  ASSERT_EQ(result.run.reports.list.size(), 1u) << problems(result.run);
  EXPECT_EQ(result.run.reports.list[0].count, 3u) << "warps 1 to 3";
  EXPECT_EQ(result.run.reports.list[0].rule, 14);
  EXPECT_EQ(result.run.reports.list[0].severity, ptxsim::Severity::kWarning);
  kernel.all = "  add.u32 %r1, %t3, %t0;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r1];\n";
  expect_error(kernel, "differs between lanes 0 and 1");
  kernel.all = "  tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0}, [%t3];\n";
  expect_error(kernel, "with 1 registers; its shape and count need 2");
  kernel.all =
      "  setp.lt.u32 %q0, %t0, 7;\n"
      "  @%q0 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%t3];\n";
  expect_error(kernel, "(R12)");
}

// The whole text of a kernel of one warp; `body` may use %r<10>, %p<2>, %slot and %rank.
ptxsim::RunResult run_text(const std::string& body, uint32_t warps = 1, uint32_t ctas = 1) {
  const std::string text = R"(.version 8.8
.target sm_100a
.address_size 64
.shared .align 8 .b8 words[64];
.visible .entry kernel()
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>, %slot, %rank, %warp;
  mov.u32 %slot, words;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %warp, %tid.x;
  shr.u32 %warp, %warp, 5;
)" + body + "  ret;\n}\n";
  ptxsim::RunResult result;
  auto module = ptxsim::load(text, "alloc.ptx");
  if (!module) return {module.error(), {}, {}};
  auto program = ptxsim::decode(*module, "kernel");
  if (!program) return {program.error(), {}, {}};
  ptxsim::Launch launch;
  launch.block = {32 * warps, 1, 1};
  launch.grid = launch.cluster = {ctas, 1, 1};
  ptxsim::GlobalMemory memory;
  return ptxsim::run(*program, launch, memory, {});
}

void expect_fault(const ptxsim::RunResult& result, const std::string& part) {
  ASSERT_TRUE(result.error) << "no error; wanted: " << part;
  EXPECT_NE(to_string(*result.error).find(part), std::string::npos) << to_string(*result.error);
}

std::string alloc(uint32_t columns, const char* where = "%slot") {
  return "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [" + std::string(where) +
         "], " + std::to_string(columns) + ";\n";
}
std::string dealloc(const char* address, uint32_t columns) {
  return "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 " + std::string(address) + ", " +
         std::to_string(columns) + ";\n";
}
const char* const kLoad = "  ld.shared.b32 %r0, [%slot];\n";
const char* const kRelinquish = "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n";

TEST(TcAllocation, LifeCycle) {
  const auto ok =
      run_text(alloc(128) + kLoad + alloc(64, "%slot+4") + "  ld.shared.b32 %r1, [%slot+4];\n" +
               kRelinquish + dealloc("%r0", 128) + dealloc("%r1", 64));
  EXPECT_TRUE(ok.clean()) << problems(ok);
  expect_fault(run_text(alloc(128)), "exits with 128 columns of tensor memory allocated");
  expect_fault(run_text(alloc(48)), "alloc of 48 columns; must be a power of two");
  expect_fault(run_text(alloc(16)), "alloc of 16 columns");
  expect_fault(run_text(alloc(1024)), "alloc of 1024 columns");
  expect_fault(run_text(alloc(32) + alloc(64)), "alloc of 64 columns after one of 32");
  expect_fault(run_text(std::string(kRelinquish) + alloc(32)), "after tcgen05.relinquish");
  expect_fault(run_text(alloc(64) + kLoad + dealloc("%r0", 32)),
               "dealloc of 32 columns at column 0; 64 were allocated");
  expect_fault(run_text(alloc(64) + kLoad + dealloc("%r0", 64) + dealloc("%r0", 64)),
               "dealloc at column 0, where no allocation of this CTA starts");
  expect_fault(run_text(alloc(64) + kLoad + "  add.u32 %r0, %r0, 32;\n" + dealloc("%r0", 64)),
               "dealloc at column 32, where no allocation");
  expect_fault(run_text("  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%slot], 32;\n"),
               "there is no other CTA of the pair");
}

// The second warp's allocation waits until the first hands its columns back.
TEST(TcAllocation, WaitsForRoom) {
  const std::string body = "  setp.ne.u32 %p0, %warp, 0;\n  @%p0 bra SECOND;\n" + alloc(512) +
                           kLoad + "  bar.sync 1, 64;\n" + dealloc("%r0", 512) +
                           "  bra DONE;\nSECOND:\n  bar.sync 1, 64;\n" + alloc(256, "%slot+4") +
                           "  ld.shared.b32 %r1, [%slot+4];\n" + dealloc("%r1", 256) + "DONE:\n";
  const auto ok = run_text(body, 2);
  EXPECT_TRUE(ok.clean()) << problems(ok);
  expect_fault(run_text(alloc(512) + alloc(512)), "deadlock");
}

std::string pair(const std::string& text) {
  std::string s = text;
  for (size_t at = s.find("group::1"); at != std::string::npos; at = s.find("group::1", at))
    s[at + 7] = '2';
  return s;
}
const char* const kClusterBarrier =
    "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";

TEST(TcAllocation, PairTakesTheSameColumns) {
  const auto ok = run_text(
      pair(alloc(256) + kLoad + kRelinquish) + kClusterBarrier + pair(dealloc("%r0", 256)), 1, 2);
  EXPECT_TRUE(ok.clean()) << problems(ok);
  expect_fault(run_text("  setp.eq.u32 %p0, %rank, 0;\n  selp.b32 %r2, 64, 32, %p0;\n"
                        "  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%slot], %r2;\n",
                        1, 2),
               "both must do the same (R9)");
  expect_fault(
      run_text("  setp.eq.u32 %p0, %rank, 0;\n  @%p0 bra ALLOC;\n" + std::string(kClusterBarrier) +
                   "  bra DONE;\nALLOC:\n" + pair(alloc(32)) + kClusterBarrier + "DONE:\n",
               1, 2),
      "deadlock");
}

// Issue by the odd CTA is refused, and a barrier in the other CTA can be named.
TEST(TcPair, LeaderIssues) {
  const std::string body =
      pair(alloc(32) + kLoad) + kClusterBarrier +
      "  setp.eq.u32 %p0, %rank, 0;\n  @%p0 bra DONE;\n"
      "  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 "
      "[%slot+8];\nDONE:\n" +
      pair(dealloc("%r0", 32));
  expect_fault(run_text(body, 1, 2), "only issue from the even CTA of a pair is modelled");
}

}  // namespace
