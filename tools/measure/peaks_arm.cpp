// The loops of 64-bit Arm, as peaks_x86.cpp has them: 24 independent chains hide the latency of any
// core so far (4 cycles, up to 4 a cycle). Run under emulation only, where a time says nothing.
#include <array>
#include <vector>

#include "tools/measure/peaks_loops.hpp"

#if defined(__aarch64__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace dualgemm::measure {
namespace {

// Bytes -12 .. 12 (doubled E2M1 codes) and floats in [0.5, 1): sums of products stay finite.
struct alignas(64) Seeds {
  std::array<int8_t, 64> bytes{};
  std::array<float, 16> floats{};

  constexpr Seeds() {
    uint32_t state = 1;
    const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
    for (auto& byte : bytes) byte = static_cast<int8_t>(static_cast<int>(next() % 25) - 12);
    for (auto& value : floats) value = 0.5f + static_cast<float>(next()) / 131072.0f;
  }
};
constexpr Seeds kSeeds;

// clang-format off
#define DUALGEMM_VECTORS                                                                       \
  "v0","v1","v2","v3","v4","v5","v6","v7","v8","v9","v10","v11","v12","v13","v14","v15","v16", \
  "v17","v18","v19","v20","v21","v22","v23","v24","v25","v26","v27","v28","v29","v30","v31","cc"
#define DUALGEMM_FOR_24(LINE) \
  ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n" LINE "\n.endr\n"

#if defined(__clang__)
#define DUALGEMM_TARGET(EXTENSION) __attribute__((target(EXTENSION), noinline))
#else
#define DUALGEMM_TARGET(EXTENSION) __attribute__((target("arch=armv8.2-a+" EXTENSION), noinline))
#endif
#define DUALGEMM_LOOP(TARGET, NAME, LINE)                                                   \
  TARGET void NAME(int64_t iterations) {                                \
    __asm__ volatile(DUALGEMM_FOR_24("movi v\\r\\().4s, #0")                                \
                     "ldp q28, q29, [%[bytes]]\nldp q30, q31, [%[floats]]\n"                \
                     ".p2align 6\n1:\n" DUALGEMM_FOR_24(LINE) "subs %[n], %[n], #1\nb.ne 1b" \
                     : [n] "+r"(iterations)                                                 \
                     : [bytes] "r"(kSeeds.bytes.data()), [floats] "r"(kSeeds.floats.data()) \
                     : "memory", DUALGEMM_VECTORS);                                         \
  }
// clang-format on
DUALGEMM_LOOP(DUALGEMM_TARGET("dotprod"), sdot, "sdot v\\r\\().4s, v28.16b, v29.16b")
DUALGEMM_LOOP(DUALGEMM_TARGET("i8mm"), smmla, "smmla v\\r\\().4s, v28.16b, v29.16b")
DUALGEMM_LOOP(__attribute__((noinline)), fmla, "fmla v\\r\\().4s, v30.4s, v31.4s")

#define DUALGEMM_READ(NAME, MORE)                                                                \
  __attribute__((noinline)) void NAME(const char* data, int64_t bytes) {                         \
    int64_t steps = bytes / 128;                                                                 \
    __asm__ volatile(".p2align 6\n1:\n" MORE                                                     \
                     "ldp q0, q1, [%[p]]\nldp q2, q3, [%[p], #32]\nldp q4, q5, [%[p], #64]\n"    \
                     "ldp q6, q7, [%[p], #96]\nadd %[p], %[p], #128\nsubs %[n], %[n], #1\nb.ne " \
                     "1b"                                                                        \
                     : [n] "+r"(steps), [p] "+r"(data)                                           \
                     :                                                                           \
                     : "memory", DUALGEMM_VECTORS);                                              \
  }
DUALGEMM_READ(read_q, "")
DUALGEMM_READ(read_q_ahead, "prfm pldl1keep, [%[p], #4096]\nprfm pldl1keep, [%[p], #4160]\n")

std::vector<ArithmeticLoop> find_arithmetic_loops() {
  std::vector<ArithmeticLoop> loops;
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0)
    loops.push_back({"sdot", "sdot 16 bytes", &Peaks::sdot_gops, 24.0 * 32, sdot});
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0)
    loops.push_back({"smmla", "smmla 2x8x2", &Peaks::smmla_gops, 24.0 * 64, smmla});
  loops.push_back({"fma_neon", "fmla 4 floats", &Peaks::fma_neon_gflops, 24.0 * 8, fmla});
  return loops;
}

}  // namespace

std::span<const ArithmeticLoop> supported_arithmetic_loops() {
  static const std::vector<ArithmeticLoop> loops = find_arithmetic_loops();
  return loops;
}
std::span<const ReadLoop> supported_read_loops() {
  static constexpr ReadLoop kLoops[] = {{"read_q", "ldp q", read_q},
                                        {"read_q_ahead", "ldp q + prfm 4 KiB ahead", read_q_ahead}};
  return kLoops;
}

}  // namespace dualgemm::measure

#endif
