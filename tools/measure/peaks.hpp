// What this machine can do at best, measured: the denominators of every percentage that the
// benchmarks print. All loops are inline assembly, so no compiler can shorten, spill or hoist them.
// docs/performance.md says how to read them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/rounds.hpp"

namespace dualgemm::measure {

// A multiply and an add count as two operations. 0 = this machine (or this build) cannot run that
// loop. "Block" ceilings run, on registers only, all that one NVFP4 block of 16 needs for a vector
// of outputs.
struct Peaks {
  int threads = 0;
  double vnni_zmm_gops = 0;    // vpdpbusd zmm: the VNNI dot peak
  double vnni_ymm_gops = 0;    // vpdpbusd ymm (EVEX)
  double vnni_block_gops = 0;  // 4 vpdpbusd zmm + vfmsub + vfmadd, initial value by register move
  double avx2_dot_gops = 0;    // vpmaddubsw tree: 4 maddubs + 3 paddw + madd + paddd
  double avx2_block_gops = 0;  // AVX2's own ceiling: 4 maddubs + 3 paddw + madd + cvt + mul + fma
  double fma_zmm_gflops = 0;   // vfmadd231ps zmm
  double fma_ymm_gflops = 0;   // vfmadd231ps ymm
  double bf16_zmm_gflops = 0;  // vdpbf16ps zmm
  double amx_bf16_gflops = 0;  // tdpbf16ps on full 16 x 32 tiles
  double sdot_gops = 0;        // Arm: sdot, 16 bytes
  double smmla_gops = 0;       // Arm: smmla, 2 x 8 by 8 x 2 bytes
  double fma_neon_gflops = 0;  // Arm: fmla, 4 floats
  double read_gbps =
      0;  // 10^9 bytes/s, best of several streaming reads of a buffer that no cache holds
};

struct PeakOptions {
  int repetitions = 9;                    // medians over these
  double milliseconds = 10;               // of one repetition of an arithmetic loop
  int64_t read_bytes = int64_t{1} << 30;  // of the read buffer; 0 = skip the bandwidth
};

// threads <= 0: as many as a call has by default at the most. Takes two to five seconds. Never
// fails: what cannot be measured stays 0.
Peaks measure_peaks(int threads);
Peaks measure_peaks(int threads, const PeakOptions& options);

// One peak as a benchmark case, for callers that interleave peaks with their own cases (bench_cpu
// does).
struct PeakCase {
  std::string name;  // "vnni_zmm", ..., "read_zmm"
  std::string what;  // the instructions, for people
  double Peaks::*
      field;  // where the result belongs; several read_* cases share read_gbps (the best counts)
  double giga_per_run;        // 10^9 operations or bytes that one run() does
  std::function<void()> run;  // blocks until all threads are done
};

// The loops this machine supports, each calibrated to about options.milliseconds. Buffers live as
// long as the cases.
std::vector<PeakCase> peak_cases(int threads, const PeakOptions& options);

// The peaks that timed peak cases show: `timings[i]` is of `cases[i]`. A case without a sample
// shows none, so that its peak stays 0: unknown.
Peaks peaks_of(std::span<const PeakCase> cases, std::span<const CaseTimes> timings, int threads);

}  // namespace dualgemm::measure
