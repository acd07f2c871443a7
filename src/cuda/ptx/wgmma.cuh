// Hopper's warpgroup-wide matrix multiply. PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix
// Instructions". 128 threads (4 warps, the first a multiple of 4) issue together. Only for images
// in which DUALGEMM_TARGET_SM90 is 1.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// wgmma.fence.sync.aligned;      PTX ISA 8.0, sm_90a, "wgmma.fence": registers written before are
// what the next wgmma.mma_async reads and accumulates into.
DUALGEMM_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// wgmma.commit_group.sync.aligned;      PTX ISA 8.0, sm_90a: closes a group of earlier multiplies.
DUALGEMM_DEVICE void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group.sync.aligned kPending;      PTX ISA 8.0, sm_90a: at most kPending of the latest
// groups are still at work; the registers of the others may be touched again.
template <int kPending>
DUALGEMM_DEVICE void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Ties values to this place in the order of the statements above, at no cost.
template <int kCount>
DUALGEMM_DEVICE void pin_registers(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

#define DUALGEMM_ACC_TEXT_8 "%0, %1, %2, %3"
#define DUALGEMM_ACC_LIST_8 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define DUALGEMM_ACC_TEXT_16 \
  DUALGEMM_ACC_TEXT_8        \
  ", "                       \
  "%4, %5, %6, %7"
#define DUALGEMM_ACC_LIST_16 DUALGEMM_ACC_LIST_8, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define DUALGEMM_ACC_TEXT_32 \
  DUALGEMM_ACC_TEXT_16       \
  ", "                       \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define DUALGEMM_ACC_LIST_32                                                           \
  DUALGEMM_ACC_LIST_16, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), \
      "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define DUALGEMM_ACC_TEXT_64 \
  DUALGEMM_ACC_TEXT_32       \
  ", "                       \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define DUALGEMM_ACC_LIST_64                                                                     \
  DUALGEMM_ACC_LIST_32, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),         \
      "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
      "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define DUALGEMM_ACC_TEXT_128                                                        \
  DUALGEMM_ACC_TEXT_64                                                               \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define DUALGEMM_ACC_LIST_128                                                                    \
  DUALGEMM_ACC_LIST_64, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),         \
      "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
      "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), \
      "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), \
      "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define DUALGEMM_ACC_TEXT_256                                                                  \
  DUALGEMM_ACC_TEXT_128                                                                        \
  ", "                                                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
  "%111, "                                                                                     \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
#define DUALGEMM_ACC_LIST_256                                                                    \
  DUALGEMM_ACC_LIST_128, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]),        \
      "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), \
      "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), \
      "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), \
      "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), \
      "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]),           \
      "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]),        \
      "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]),        \
      "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]),        \
      "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]),        \
      "+f"(d[127])
// One statement for one width and type; a, the two words of b's descriptor and the predicate follow
// the accumulators' numbers.
#define DUALGEMM_WGMMA(n, type, a0, a1, a2, a3, low, high, one)                     \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #one          \
               ", 0;\n.reg .b64 rows;\nmov.b64 rows, {%" #low ", %" #high           \
               "};\n"                                                               \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type      \
               " {" DUALGEMM_ACC_TEXT_##n "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 \
                                          "}, rows"                                 \
                                          ", accumulate, 1, 1, 0;\n}\n"             \
               : DUALGEMM_ACC_LIST_##n                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "n"(kHigh), "n"(1))
#define DUALGEMM_WGMMA_TYPES(n, a0, a1, a2, a3, low, high, one) \
  if constexpr (kN == n && kBf16) {                             \
    DUALGEMM_WGMMA(n, "bf16", a0, a1, a2, a3, low, high, one);  \
  } else if constexpr (kN == n) {                               \
    DUALGEMM_WGMMA(n, "f16", a0, a1, a2, a3, low, high, one);   \
  }

// wgmma.mma_async.sync.aligned.m64nNk16.f32.{f16,bf16}      PTX ISA 8.0, sm_90a: d += a * b^T with
// a (64, 16) in registers and b (kN, 16) K-major in shared memory. In the 16 rows of its warp, a
// thread holds rows r = lane/4 and r + 8 and the elements 2q, 2q+1, 2q+8, 2q+9 along k, q = lane%4:
// a[0] = (r, low), a[1] = (r+8, low), a[2] = (r, high), a[3] = (r+8, high); of d, d[4t], d[4t+1] =
// (r, 8t+2q and the next), d[4t+2], d[4t+3] = the same of r + 8. kHigh, b_low: the words of
// the descriptor of b.
template <bool kBf16, int kN, uint32_t kHigh>
DUALGEMM_DEVICE void wgmma_m64k16(float (&d)[kN / 2], const uint32_t (&a)[4], uint32_t b_low) {
  DUALGEMM_WGMMA_TYPES(8, 4, 5, 6, 7, 8, 9, 10)
  DUALGEMM_WGMMA_TYPES(16, 8, 9, 10, 11, 12, 13, 14)
  DUALGEMM_WGMMA_TYPES(32, 16, 17, 18, 19, 20, 21, 22)
  DUALGEMM_WGMMA_TYPES(64, 32, 33, 34, 35, 36, 37, 38)
  DUALGEMM_WGMMA_TYPES(128, 64, 65, 66, 67, 68, 69, 70)
  DUALGEMM_WGMMA_TYPES(256, 128, 129, 130, 131, 132, 133, 134)
}
#undef DUALGEMM_ACC_TEXT_8
#undef DUALGEMM_ACC_LIST_8
#undef DUALGEMM_ACC_TEXT_16
#undef DUALGEMM_ACC_LIST_16
#undef DUALGEMM_ACC_TEXT_32
#undef DUALGEMM_ACC_LIST_32
#undef DUALGEMM_ACC_TEXT_64
#undef DUALGEMM_ACC_LIST_64
#undef DUALGEMM_ACC_TEXT_128
#undef DUALGEMM_ACC_LIST_128
#undef DUALGEMM_ACC_TEXT_256
#undef DUALGEMM_ACC_LIST_256
#undef DUALGEMM_WGMMA
#undef DUALGEMM_WGMMA_TYPES

}  // namespace dualgemm::cuda::ptx
