#include "cli/speed_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "cli/loaded.hpp"

namespace ptxsim::cli {
namespace {

// A loop of integer, logic, compare, select and FP32 instructions, as compilers emit for address
// and epilogue code.
constexpr const char* kScalarPtx = R"(.version 8.6
.target sm_80
.address_size 64
.visible .entry scalar(.param .u64 out, .param .u32 count, .param .u32 lanes)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [lanes];
  mov.u32 %r3, %tid.x;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra DONE;
  cvt.rn.f32.u32 %f1, %r3;
  mov.u32 %r4, %r3;
  mov.u32 %r5, 7;
LOOP:
  mad.lo.s32 %r4, %r4, 1664525, 1013904223;
  shr.u32 %r6, %r4, 7;
  xor.b32 %r5, %r5, %r6;
  and.b32 %r7, %r5, 255;
  add.s32 %r8, %r7, %r4;
  setp.gt.u32 %p2, %r7, 100;
  sub.s32 %r9, %r8, 100;
  selp.b32 %r4, %r9, %r8, %p2;
  fma.rn.f32 %f1, %f1, 0f3F800347, 0f3F000000;
  shl.b32 %r5, %r5, 1;
  mul.f32 %f1, %f1, 0f3F7FF000;
  add.s32 %r1, %r1, -1;
  setp.ne.u32 %p3, %r1, 0;
  @%p3 bra LOOP;
  mov.b32 %r10, %f1;
  add.s32 %r4, %r4, %r5;
  add.s32 %r4, %r4, %r10;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
DONE:
  ret;
}
)";

// The inner part of a tiled SGEMM: square tiles of as many columns as the block has, written, then
// read by rows and by columns between barriers.
constexpr const char* kTiledPtx = R"(.version 8.6
.target sm_80
.address_size 64
.visible .entry tiled(.param .u64 out, .param .u32 rounds)
{
  .shared .align 16 .b8 tiles[8192];
  .reg .pred %p<3>;
  .reg .b32 %r<16>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<4>;
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mov.u32 %r6, tiles;
  mad.lo.s32 %r7, %r5, 4, %r6;
  shl.b32 %r8, %r4, 2;
  mad.lo.s32 %r9, %r3, %r8, %r6;
  mad.lo.s32 %r10, %r2, 4, %r6;
  cvt.rn.f32.u32 %f1, %r5;
  mov.f32 %f2, 0f00000000;
ROUND:
  st.shared.f32 [%r7], %f1;
  st.shared.f32 [%r7+4096], %f1;
  bar.sync 0;
  mov.u32 %r11, %r9;
  mov.u32 %r12, %r10;
  mov.u32 %r13, %r4;
INNER:
  ld.shared.v4.f32 {%f3, %f4, %f5, %f6}, [%r11];
  ld.shared.f32 %f7, [%r12+4096];
  fma.rn.f32 %f2, %f3, %f7, %f2;
  add.s32 %r12, %r12, %r8;
  ld.shared.f32 %f8, [%r12+4096];
  fma.rn.f32 %f2, %f4, %f8, %f2;
  add.s32 %r12, %r12, %r8;
  ld.shared.f32 %f9, [%r12+4096];
  fma.rn.f32 %f2, %f5, %f9, %f2;
  add.s32 %r12, %r12, %r8;
  ld.shared.f32 %f10, [%r12+4096];
  fma.rn.f32 %f2, %f6, %f10, %f2;
  add.s32 %r12, %r12, %r8;
  add.s32 %r11, %r11, 16;
  add.s32 %r13, %r13, -4;
  setp.ne.u32 %p1, %r13, 0;
  @%p1 bra INNER;
  bar.sync 0;
  add.s32 %r1, %r1, -1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra ROUND;
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f2;
  ret;
}
)";

// Eight K = 64 steps of one 128x128 tile. Operands: any codes and scales do, as the time does not
// depend on them; shared memory is filled with a pattern of finite scales.
constexpr const char* kTilePtx = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry tile(.param .u32 repeats)
{
  .shared .align 1024 .b8 operands[65536];
  .shared .align 128 .b8 scales[1024];
  .shared .align 8 .b64 done;
  .shared .align 4 .b32 base;
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r20, [repeats];
  mov.u32 %r2, operands;
  mov.u32 %r3, scales;
  mov.u32 %r4, done;
  mov.u32 %r5, base;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r2, %r6;
  mov.u32 %r8, 512;
  mov.u32 %r9, 0x3a517c26;
FILL:
  mad.lo.s32 %r9, %r9, 1664525, 1013904223;
  st.shared.u32 [%r7], %r9;
  add.s32 %r7, %r7, 128;
  add.s32 %r8, %r8, -1;
  setp.ne.u32 %p1, %r8, 0;
  @%p1 bra FILL;
  add.s32 %r7, %r3, %r6;
  mov.u32 %r8, 8;
SCALES:
  mad.lo.s32 %r9, %r9, 1664525, 1013904223;
  and.b32 %r10, %r9, 0x3f3f3f3f;
  or.b32 %r10, %r10, 0x18181818;
  st.shared.u32 [%r7], %r10;
  add.s32 %r7, %r7, 128;
  add.s32 %r8, %r8, -1;
  setp.ne.u32 %p1, %r8, 0;
  @%p1 bra SCALES;
  setp.eq.u32 %p2, %r1, 0;
  @%p2 mbarrier.init.shared::cta.b64 [%r4], 1;
  @%p2 fence.mbarrier_init.release.cluster;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 256;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r11, [%r5];
  add.s32 %r12, %r11, 128;
  add.s32 %r13, %r11, 160;
  and.b32 %r2, %r2, 0x3ffff;
  shr.u32 %r14, %r2, 4;
  and.b32 %r3, %r3, 0x3ffff;
  shr.u32 %r15, %r3, 4;
  mov.u32 %r16, 0x40004040;
  mov.b64 %rd1, {%r14, %r16};
  add.s64 %rd2, %rd1, 2048;
  mov.u32 %r17, 0x00004008;
  mov.b64 %rd3, {%r15, %r17};
  mov.u32 %r18, 0x08200480;
  mov.u32 %r19, 0;
REPEAT:
  setp.ne.u32 %p4, %r20, 0;
  @!%p4 bra OVER;
  @!%p2 bra WAIT;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12], %rd3;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r13], %rd3;
  mov.u32 %r21, 0;
  setp.ne.u32 %p5, %r21, 0;
STEP:
  and.b32 %r22, %r21, 3;
  shl.b32 %r22, %r22, 1;
  shr.u32 %r23, %r21, 2;
  shl.b32 %r23, %r23, 10;
  add.s32 %r22, %r22, %r23;
  cvt.u64.u32 %rd4, %r22;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r11], %rd5, %rd6, %r18, [%r12], [%r13], %p5;
  add.s32 %r21, %r21, 1;
  setp.ne.u32 %p5, %r21, 0;
  setp.lt.u32 %p6, %r21, 8;
  @%p6 bra STEP;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r4], %r19;
  @!%p7 bra WAIT;
  xor.b32 %r19, %r19, 1;
  add.s32 %r20, %r20, -1;
  bar.warp.sync 0xffffffff;
  bra REPEAT;
OVER:
  bar.sync 0;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r11, 256;
  ret;
}
)";

struct Measured {
  double seconds = 0;
  uint64_t warp_instructions = 0;
};

Result<Measured> measure(const char* ptx, const Launch& launch, const Options& options) {
  auto module = load(ptx, "speed.ptx");
  if (!module.ok()) return module.error();
  auto program = decode(*module, "");
  if (!program.ok()) return program.error();
  std::vector<Measured> runs;
  for (int i = 0; i < 5; ++i) {
    GlobalMemory memory;
    memory.add("out", 0x1000'0000, std::vector<std::byte>(4096), true, false);
    const auto begin = std::chrono::steady_clock::now();
    const RunResult result = run(*program, launch, memory, options);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (result.error) return *result.error;
    runs.push_back({seconds, result.stats.warp_instructions});
  }
  std::sort(runs.begin(), runs.end(),
            [](const Measured& a, const Measured& b) { return a.seconds < b.seconds; });
  return runs[runs.size() / 2];
}

void append_u32(std::vector<uint8_t>& blob, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) blob.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

Result<Measured> measure_scalar(uint32_t lanes) {
  Launch launch;
  launch.block = {32, 1, 1};
  append_u32(launch.params, 0x1000'0000, 8);
  append_u32(launch.params, 400'000, 4);
  append_u32(launch.params, lanes, 4);
  return measure(kScalarPtx, launch, Options{});
}

Result<Measured> measure_tiled(uint32_t side, bool sanitize) {
  Launch launch;
  launch.block = {side, side, 1};
  append_u32(launch.params, 0x1000'0000, 8);
  append_u32(launch.params, 16 * 1024 / side, 4);
  Options options;
  options.sanitize = sanitize;
  return measure(kTiledPtx, launch, options);
}

// Seconds of one tile: the difference between many repetitions and none.
Result<double> measure_tile(MmaMode mode) {
  constexpr uint32_t kRepeats = 16;
  double seconds[2];
  for (const uint32_t repeats : {0u, kRepeats}) {
    Launch launch;
    launch.block = {32, 1, 1};
    append_u32(launch.params, repeats, 4);
    Options options;
    options.mma = mode;
    Result<Measured> measured = measure(kTilePtx, launch, options);
    if (!measured.ok()) return measured.error();
    seconds[repeats != 0] = measured->seconds;
  }
  return (seconds[1] - seconds[0]) / kRepeats;
}

}  // namespace

int speed_command() {
  for (const uint32_t lanes : {32u, 1u}) {
    Result<Measured> measured = measure_scalar(lanes);
    if (!measured.ok()) return print_error(measured.error());
    std::cout << fmt::format(
        "scalar loop, {:>2} lanes: {:6.1f} M warp instructions/s\n", lanes,
        static_cast<double>(measured->warp_instructions) / measured->seconds / 1e6);
  }
  for (const uint32_t side : {16u, 32u}) {
    double rates[2];
    for (const bool sanitize : {false, true}) {
      Result<Measured> measured = measure_tiled(side, sanitize);
      if (!measured.ok()) return print_error(measured.error());
      rates[sanitize] = static_cast<double>(measured->warp_instructions) / measured->seconds / 1e6;
    }
    std::cout << fmt::format(
        "tiled SGEMM, {:>4} threads: {:6.1f} M warp instructions/s, {:.1f} without the sanitizer\n",
        side * side, rates[1], rates[0]);
  }
  for (const MmaMode mode : {MmaMode::kExact, MmaMode::kRounded}) {
    Result<double> seconds = measure_tile(mode);
    if (!seconds.ok()) return print_error(seconds.error());
    std::cout << fmt::format("NVFP4 tile 128x128x512, {}: {:.2f} ms with the sanitizer\n",
                             mode == MmaMode::kExact ? "exact" : "rounded", *seconds * 1e3);
  }
  return 0;
}

}  // namespace ptxsim::cli
