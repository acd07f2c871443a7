// Register-only loops in assembly: a compiler would keep accumulators in memory, merge equal chains
// or hoist the loads. Enough independent chains (8 to 24) hide the latency of every x86-64
// processor so far (4 or 5 cycles, 2 per cycle). Operands are neither zero nor constant:
// multipliers draw less power on zeros, and the clock follows the power.
#include <array>
#include <vector>

#include "tools/measure/peaks_loops.hpp"

#if defined(__x86_64__)

#include <sys/syscall.h>
#include <unistd.h>

namespace dualgemm::measure {
namespace {

constexpr int kSeedBytes = 1024;

// Bytes 0..24 (a doubled E2M1 code plus 12) serve as integers; the floats lie in [0.5, 1), so that
// x <- x*a + b neither overflows nor becomes subnormal.
struct alignas(64) Seeds {
  std::array<uint8_t, kSeedBytes> bytes{};
  std::array<float, 64> floats{};
  std::array<uint16_t, 512> bf16{};  // one 16 x 32 tile

  constexpr Seeds() {
    uint32_t state = 1;
    const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
    for (auto& byte : bytes) byte = static_cast<uint8_t>(next() % 25);
    for (auto& value : floats) value = 0.5f + static_cast<float>(next()) / 131072.0f;
    for (auto& value : bf16) value = static_cast<uint16_t>(0x3F00 + next() % 128);  // [0.5, 1)
  }
};
constexpr Seeds kSeeds;

// clang-format off
#define DUALGEMM_ZMM                                                                             \
  "zmm0","zmm1","zmm2","zmm3","zmm4","zmm5","zmm6","zmm7","zmm8","zmm9","zmm10","zmm11","zmm12", \
  "zmm13","zmm14","zmm15","zmm16","zmm17","zmm18","zmm19","zmm20","zmm21","zmm22","zmm23",       \
  "zmm24","zmm25","zmm26","zmm27","zmm28","zmm29","zmm30","zmm31","cc"
#define DUALGEMM_YMM                                                                             \
  "ymm0","ymm1","ymm2","ymm3","ymm4","ymm5","ymm6","ymm7","ymm8","ymm9","ymm10","ymm11","ymm12", \
  "ymm13","ymm14","ymm15","cc"
// clang-format on
#define DUALGEMM_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"), noinline))
#define DUALGEMM_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16"), noinline))
#define DUALGEMM_AVX2 __attribute__((target("avx2,fma"), noinline))

// SETUP runs once; BODY is the loop. Inputs: %[bytes], %[floats].
#define DUALGEMM_LOOP(TARGET, CLOBBERS, NAME, SETUP, BODY)                                  \
  TARGET void NAME(int64_t iterations) {                                                    \
    __asm__ volatile(SETUP "\n.p2align 6\n1:\n" BODY "\ndec %[n]\njnz 1b\nvzeroupper"       \
                     : [n] "+r"(iterations)                                                 \
                     : [bytes] "r"(kSeeds.bytes.data()), [floats] "r"(kSeeds.floats.data()) \
                     : "memory", CLOBBERS);                                                 \
  }

#define DUALGEMM_FOR(REGS, LINES) ".irp r," REGS "\n" LINES "\n.endr\n"
#define DUALGEMM_R24 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"
#define DUALGEMM_R12 "0,1,2,3,4,5,6,7,8,9,10,11"

#define DUALGEMM_SETUP_ZMM                                           \
  DUALGEMM_FOR(DUALGEMM_R24, "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r")  \
  "vmovdqu64 (%[bytes]), %%zmm30\nvmovdqu64 64(%[bytes]), %%zmm31\n" \
  "vmovdqu64 128(%[bytes]), %%zmm29\n"                               \
  "vmovups (%[floats]), %%zmm26\nvmovups 64(%[floats]), %%zmm27\n"   \
  "vmovups 128(%[floats]), %%zmm28\n"
#define DUALGEMM_SETUP_YMM                                         \
  DUALGEMM_FOR(DUALGEMM_R12, "vpxor %%ymm\\r, %%ymm\\r, %%ymm\\r") \
  "vmovdqu (%[bytes]), %%ymm14\nvmovdqu 64(%[bytes]), %%ymm15\n"   \
  "vmovups (%[floats]), %%ymm12\nvmovups 64(%[floats]), %%ymm13\n"

DUALGEMM_LOOP(DUALGEMM_AVX512, DUALGEMM_ZMM, vnni_zmm, DUALGEMM_SETUP_ZMM,
              DUALGEMM_FOR(DUALGEMM_R24, "vpdpbusd %%zmm31, %%zmm30, %%zmm\\r"))
DUALGEMM_LOOP(DUALGEMM_AVX512, DUALGEMM_ZMM, vnni_ymm, DUALGEMM_SETUP_ZMM,
              DUALGEMM_FOR(DUALGEMM_R24, "vpdpbusd %%ymm31, %%ymm30, %%ymm\\r"))
DUALGEMM_LOOP(DUALGEMM_AVX512, DUALGEMM_ZMM, fma_zmm, DUALGEMM_SETUP_ZMM,
              DUALGEMM_FOR(DUALGEMM_R24, "vfmadd132ps %%zmm26, %%zmm27, %%zmm\\r"))
DUALGEMM_LOOP(DUALGEMM_AVX512_BF16, DUALGEMM_ZMM, bf16_zmm,
              DUALGEMM_SETUP_ZMM  // each float's upper half twice: a pair of bf16
              "vpsrld $16, %%zmm26, %%zmm25\nvpslld $16, %%zmm25, %%zmm24\n"
              "vpord %%zmm24, %%zmm25, %%zmm25\n",
              DUALGEMM_FOR(DUALGEMM_R24, "vdpbf16ps %%zmm25, %%zmm25, %%zmm\\r"))
DUALGEMM_LOOP(DUALGEMM_AVX2, DUALGEMM_YMM, fma_ymm, DUALGEMM_SETUP_YMM,
              DUALGEMM_FOR(DUALGEMM_R12, "vfmadd132ps %%ymm12, %%ymm13, %%ymm\\r"))

// One block of 16 for 16 outputs in 12 interleaved rows: dot products in zmm0-11, FP32 sums in
// zmm12-23. 4 vpdpbusd, then t = x*sB - c and sum += t*sA (the magic-constant form).
#define DUALGEMM_DOT_ROWS DUALGEMM_FOR(DUALGEMM_R12, "vpdpbusd %%zmm31, %%zmm30, %%zmm\\r")
#define DUALGEMM_SUM(DOT, SUM) "vfmadd231ps %%zmm28, %%zmm" #DOT ", %%zmm" #SUM "\n"
// clang-format off
#define DUALGEMM_SUM_ROWS                                                          \
  DUALGEMM_SUM(0, 12) DUALGEMM_SUM(1, 13) DUALGEMM_SUM(2, 14)  DUALGEMM_SUM(3, 15)  \
  DUALGEMM_SUM(4, 16) DUALGEMM_SUM(5, 17) DUALGEMM_SUM(6, 18)  DUALGEMM_SUM(7, 19)  \
  DUALGEMM_SUM(8, 20) DUALGEMM_SUM(9, 21) DUALGEMM_SUM(10, 22) DUALGEMM_SUM(11, 23)
DUALGEMM_LOOP(DUALGEMM_AVX512, DUALGEMM_ZMM, vnni_block, DUALGEMM_SETUP_ZMM,
              DUALGEMM_FOR(DUALGEMM_R12, "vmovdqa64 %%zmm29, %%zmm\\r")
              DUALGEMM_DOT_ROWS DUALGEMM_DOT_ROWS DUALGEMM_DOT_ROWS DUALGEMM_DOT_ROWS
              DUALGEMM_FOR(DUALGEMM_R12, "vfmsub132ps %%zmm26, %%zmm27, %%zmm\\r")
              DUALGEMM_SUM_ROWS)
// clang-format on

// One block of 16 for 8 outputs: four byte products, summed in 16 bits (|sum| <= 2304), one
// vpmaddwd by ones.
#define DUALGEMM_TREE                                                          \
  "vpmaddubsw %%ymm15, %%ymm14, %%ymm0\nvpmaddubsw %%ymm15, %%ymm14, %%ymm1\n" \
  "vpaddw %%ymm0, %%ymm1, %%ymm0\n"                                            \
  "vpmaddubsw %%ymm15, %%ymm14, %%ymm2\nvpmaddubsw %%ymm15, %%ymm14, %%ymm3\n" \
  "vpaddw %%ymm2, %%ymm3, %%ymm2\nvpaddw %%ymm0, %%ymm2, %%ymm0\n"             \
  "vpmaddwd %%ymm11, %%ymm0, %%ymm0\n"
#define DUALGEMM_ONES "vpcmpeqw %%ymm11, %%ymm11, %%ymm11\nvpsrlw $15, %%ymm11, %%ymm11\n"
DUALGEMM_LOOP(DUALGEMM_AVX2, DUALGEMM_YMM, avx2_dot, DUALGEMM_SETUP_YMM DUALGEMM_ONES,
              DUALGEMM_FOR("4,5,6,7,8,9", DUALGEMM_TREE "vpaddd %%ymm0, %%ymm\\r, %%ymm\\r"))
DUALGEMM_LOOP(DUALGEMM_AVX2, DUALGEMM_YMM, avx2_block, DUALGEMM_SETUP_YMM DUALGEMM_ONES,
              DUALGEMM_FOR("4,5,6,7,8,9", DUALGEMM_TREE
                           "vcvtdq2ps %%ymm0, %%ymm0\nvmulps %%ymm12, %%ymm0, %%ymm0\n"
                           "vfmadd231ps %%ymm13, %%ymm0, %%ymm\\r"))

// Four accumulator tiles from two rows and two columns of operand tiles: tmm0-3 += tmm4-5 x tmm6-7.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kTileConfig;

void amx_bf16(int64_t iterations) {
  __asm__ volatile(
      "ldtilecfg (%[config])\n"
      "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"
      "tileloadd (%[tile],%[stride],1), %%tmm4\ntileloadd (%[tile],%[stride],1), %%tmm5\n"
      "tileloadd (%[tile],%[stride],1), %%tmm6\ntileloadd (%[tile],%[stride],1), %%tmm7\n"
      ".p2align 6\n1:\n"
      "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\ntdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
      "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\ntdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
      "dec %[n]\njnz 1b\n"
      "tilerelease"
      : [n] "+r"(iterations)
      : [config] "r"(&kTileConfig), [tile] "r"(kSeeds.bf16.data()), [stride] "r"(int64_t{64})
      : "memory", "cc");
}

// ---- reads: BODY reads STEP bytes at %[p]
// ---------------------------------------------------------------------

#define DUALGEMM_READ(TARGET, CLOBBERS, NAME, STEP, BODY)                               \
  TARGET void NAME(const char* data, int64_t bytes) {                                   \
    int64_t steps = bytes / (STEP);                                                     \
    __asm__ volatile(".p2align 6\n1:\n" BODY "\nadd $" #STEP ", %[p]\ndec %[n]\njnz 1b" \
                     : [n] "+r"(steps), [p] "+r"(data)                                  \
                     :                                                                  \
                     : "memory", CLOBBERS);                                             \
  }
#define DUALGEMM_BASE __attribute__((noinline))
#define DUALGEMM_XMM "xmm0", "xmm1", "xmm2", "xmm3", "cc"
#define DUALGEMM_LOADS(INSN, REG, WIDTH)                                                \
  INSN " (%[p]), %%" REG "0\n" INSN " " #WIDTH "(%[p]), %%" REG "1\n" INSN " 2*" #WIDTH \
       "(%[p]), %%" REG "2\n" INSN " 3*" #WIDTH "(%[p]), %%" REG "3\n"

DUALGEMM_READ(DUALGEMM_BASE, DUALGEMM_XMM, read_xmm, 64, DUALGEMM_LOADS("movdqa", "xmm", 16))
DUALGEMM_READ(DUALGEMM_AVX2, DUALGEMM_YMM, read_ymm, 128, DUALGEMM_LOADS("vmovdqa", "ymm", 32))
DUALGEMM_READ(DUALGEMM_AVX2, DUALGEMM_YMM, read_ymm_t0, 128,
              "prefetcht0 4096(%[p])\nprefetcht0 4160(%[p])\n" DUALGEMM_LOADS("vmovdqa", "ymm", 32))
DUALGEMM_READ(DUALGEMM_AVX2, DUALGEMM_YMM, read_ymm_t1, 128,
              "prefetcht1 4096(%[p])\nprefetcht1 4160(%[p])\n" DUALGEMM_LOADS("vmovdqa", "ymm", 32))
DUALGEMM_READ(DUALGEMM_AVX2, DUALGEMM_YMM, read_ymm_nta, 128,
              "prefetchnta 2048(%[p])\nprefetchnta 2112(%[p])\n" DUALGEMM_LOADS("vmovdqa", "ymm",
                                                                                32))
DUALGEMM_READ(DUALGEMM_AVX512, DUALGEMM_ZMM, read_zmm, 256, DUALGEMM_LOADS("vmovdqa64", "zmm", 64))

// Asks Linux for the tile registers (they are off in every process); false on a processor or a
// kernel without them.
bool amx_permitted() {
  constexpr long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  uint32_t eax = 7, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  constexpr uint32_t kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0) return false;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

bool has_avx512_vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

std::vector<ArithmeticLoop> find_arithmetic_loops() {
  std::vector<ArithmeticLoop> loops;
  if (has_avx512_vnni()) {
    loops.push_back({"vnni_zmm", "vpdpbusd zmm", &Peaks::vnni_zmm_gops, 24.0 * 128, vnni_zmm});
    loops.push_back({"vnni_ymm", "vpdpbusd ymm", &Peaks::vnni_ymm_gops, 24.0 * 64, vnni_ymm});
    loops.push_back({"vnni_block", "4 vpdpbusd zmm + vfmsub + vfmadd", &Peaks::vnni_block_gops,
                     12.0 * 512, vnni_block});
    loops.push_back({"fma_zmm", "vfmadd132ps zmm", &Peaks::fma_zmm_gflops, 24.0 * 32, fma_zmm});
  }
  if (has_avx2()) {
    loops.push_back({"avx2_dot", "4 vpmaddubsw + 3 vpaddw + vpmaddwd + vpaddd",
                     &Peaks::avx2_dot_gops, 6.0 * 256, avx2_dot});
    loops.push_back({"avx2_block",
                     "4 vpmaddubsw + 3 vpaddw + vpmaddwd + vcvtdq2ps + vmulps + vfmadd",
                     &Peaks::avx2_block_gops, 6.0 * 256, avx2_block});
    loops.push_back({"fma_ymm", "vfmadd132ps ymm", &Peaks::fma_ymm_gflops, 12.0 * 16, fma_ymm});
  }
  if (has_avx512_vnni() && __builtin_cpu_supports("avx512bf16")) {
    loops.push_back({"bf16_zmm", "vdpbf16ps zmm", &Peaks::bf16_zmm_gflops, 24.0 * 64, bf16_zmm});
  }
  if (has_avx512_vnni() && amx_permitted()) {
    constexpr double kOpsPerTile = 2.0 * 16 * 16 * 32;
    loops.push_back(
        {"amx_bf16", "tdpbf16ps 16x16x32", &Peaks::amx_bf16_gflops, 4 * kOpsPerTile, amx_bf16});
  }
  return loops;
}

std::vector<ReadLoop> find_read_loops() {
  std::vector<ReadLoop> loops = {{"read_xmm", "movdqa xmm", read_xmm}};
  if (has_avx2()) {
    loops.push_back({"read_ymm", "vmovdqa ymm", read_ymm});
    loops.push_back({"read_ymm_t0", "vmovdqa ymm + prefetcht0 4 KiB ahead", read_ymm_t0});
    loops.push_back({"read_ymm_t1", "vmovdqa ymm + prefetcht1 4 KiB ahead", read_ymm_t1});
    loops.push_back({"read_ymm_nta", "vmovdqa ymm + prefetchnta 2 KiB ahead", read_ymm_nta});
  }
  if (has_avx512_vnni()) loops.push_back({"read_zmm", "vmovdqa64 zmm", read_zmm});
  return loops;
}

}  // namespace

std::span<const ArithmeticLoop> supported_arithmetic_loops() {
  static const std::vector<ArithmeticLoop> loops = find_arithmetic_loops();
  return loops;
}
std::span<const ReadLoop> supported_read_loops() {
  static const std::vector<ReadLoop> loops = find_read_loops();
  return loops;
}

}  // namespace dualgemm::measure

#elif !defined(__aarch64__)  // peaks_arm.cpp

namespace dualgemm::measure {

std::span<const ArithmeticLoop> supported_arithmetic_loops() { return {}; }
std::span<const ReadLoop> supported_read_loops() { return {}; }

}  // namespace dualgemm::measure

#endif
