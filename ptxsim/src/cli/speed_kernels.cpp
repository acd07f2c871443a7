#include "cli/speed_kernels.hpp"

#include <fmt/format.h>

namespace ptxsim::cli {

const char* const kScalarPtx = R"(.version 8.6
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

const char* const kTiledPtx = R"(.version 8.6
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

std::string sgemm_ptx(uint32_t side) {
  std::string inner;
  for (uint32_t k = 0; k < side; ++k)
    inner += fmt::format(
        "  ld.shared.f32 %f1, [%r8+{}];\n"
        "  ld.shared.f32 %f2, [%r7+{}];\n"
        "  fma.rn.f32 %f3, %f2, %f1, %f3;\n",
        4 * side * k, 4 * k);
  return fmt::format(R"(.version 8.6
.target sm_80
.address_size 64
.visible .entry sgemm(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{{
  .shared .align 4 .b8 tile_a[{tile}];
  .shared .align 4 .b8 tile_b[{tile}];
  .reg .pred %p<2>;
  .reg .f32 %f<6>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  mad.lo.s32 %r4, %r4, {side}, %r2;
  mad.lo.s32 %r5, %r5, {side}, %r3;
  mov.u32 %r6, tile_a;
  mad.lo.s32 %r7, %r3, {row}, %r6;
  mad.lo.s32 %r9, %r2, 4, %r7;
  mov.u32 %r10, tile_b;
  mad.lo.s32 %r8, %r2, 4, %r10;
  mad.lo.s32 %r11, %r3, {row}, %r8;
  mul.lo.s32 %r12, %r5, %r1;
  add.s32 %r13, %r12, %r2;
  mul.wide.s32 %rd4, %r13, 4;
  add.s64 %rd5, %rd1, %rd4;
  mad.lo.s32 %r14, %r3, %r1, %r4;
  mul.wide.s32 %rd6, %r14, 4;
  add.s64 %rd7, %rd2, %rd6;
  mul.wide.s32 %rd8, %r1, {row};
  mov.f32 %f3, 0f00000000;
  mov.u32 %r15, 0;
TILE:
  ld.global.f32 %f4, [%rd5];
  st.shared.f32 [%r9], %f4;
  ld.global.f32 %f5, [%rd7];
  st.shared.f32 [%r11], %f5;
  bar.sync 0;
{inner}  bar.sync 0;
  add.s64 %rd7, %rd7, %rd8;
  add.s64 %rd5, %rd5, {row};
  add.s32 %r15, %r15, {side};
  setp.lt.s32 %p1, %r15, %r1;
  @%p1 bra TILE;
  add.s32 %r16, %r12, %r4;
  mul.wide.s32 %rd9, %r16, 4;
  add.s64 %rd10, %rd3, %rd9;
  st.global.f32 [%rd10], %f3;
  ret;
}}
)",
                     fmt::arg("tile", 4 * side * side), fmt::arg("side", side),
                     fmt::arg("row", 4 * side), fmt::arg("inner", inner));
}

const char* const kTilePtx = R"(.version 9.0
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

}  // namespace ptxsim::cli
