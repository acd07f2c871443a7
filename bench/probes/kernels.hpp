// The kernels of the probes, as launches.
#pragma once

#include <cstdint>

#include "cuda/runtime/launch_value.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::bench {

// What a CTA's first thread saw at its begin and its end.
struct Clocks {
  uint64_t clock_begin, clock_end;  // of its SM
  uint64_t timer_begin, timer_end;  // nanoseconds, the same for all SMs
};

// Waits for the grid before it, then for `clocks` clocks. `padding`: the parameters of a kernel
// that gets six tensor maps.
struct SpinParams {
  uint64_t clocks;
  Clocks* seen;     // [ctas], or null
  bool multiplies;  // meanwhile, else reads the clock alone
  uint8_t padding[808];
};
cuda::KernelLaunch spin_launch(const SpinParams& params, uint32_t ctas, uint32_t threads,
                               uint32_t dynamic_smem_bytes, bool overlaps_previous);

// Waits for the flag, `clocks` clocks at most, and says whether it saw it.
struct WatchParams {
  uint32_t* flag;  // [1]
  uint32_t* seen;  // [1]
  uint64_t clocks;
  bool lets_next_start;
};
cuda::KernelLaunch watch_launch(const WatchParams& params);

// Waits for the grid before it, or not, and sets the flag.
struct FollowParams {
  uint32_t* flag;  // [1], or null
  bool waits;
};
cuda::KernelLaunch follow_launch(const FollowParams& params, bool overlaps_previous);

// The smallest step of the nanosecond timer in `reads` reads.
struct TimerStepParams {
  uint32_t reads;
  uint64_t* nanoseconds;  // [1]
};
cuda::KernelLaunch timer_step_launch(const TimerStepParams& params);

// Both kernels below copy stages of 32 KiB: two boxes of 128 rows of 128 bytes, one below the
// other, of a matrix (columns of 128 bytes, rows, 1).
inline constexpr int kStageRows = 256;
inline constexpr int kBoxRows = 128;
inline constexpr int kRowBytes = 128;
inline constexpr int kStageBytes = kStageRows * kRowBytes;
inline constexpr int kMostStages = 6;

// Three stages one after the other: two of different bytes, and the second one again.
struct FirstBytesSeen {
  uint32_t until_issue;  // clocks from the kernel's entry to the first copy
  uint32_t first, other, again;
};
struct FirstBytesParams {
  cuda::TensorMap map;
  FirstBytesSeen* seen;  // [ctas]
  int32_t column;        // in bytes: what no earlier launch has read
  bool prefetches;       // the map, before the barriers are made
};
cuda::KernelLaunch first_bytes_launch(const FirstBytesParams& params, uint32_t ctas);

// Each CTA copies `copies` stages, `stages` of them in flight, from row blockIdx.x * kStageRows on
// in steps of the grid, around the matrix.
struct CopyParams {
  cuda::TensorMap map;
  uint32_t copies, stages;   // at most kMostStages
  uint32_t blocks, columns;  // of the matrix, of kStageRows rows and of kRowBytes bytes
};
cuda::KernelLaunch copy_launch(const CopyParams& params, uint32_t ctas);

// One CTA's tensor pipe: `stages` times four steps along K of two MMAs that share A, and before
// each stage's MMAs twelve copies of scales, or none but the first. sm_100a and its family alone.
struct TensorPipeParams {
  uint32_t stages;
  bool copies_scales;
  uint64_t* clocks;  // [1]: from the first instruction to the last one's completion
};
inline constexpr int kPipeColumns[] = {64, 80, 96, 112, 128};
cuda::KernelLaunch tensor_pipe_launch(const TensorPipeParams& params, int columns);

// One CTA whose warps each do `rounds` times kMmasOfRound mma.sync.m16n8k16, with `others` (0, 2 or
// 4) byte permutations behind each.
struct MmaIssueParams {
  uint32_t rounds, selector;
  uint64_t* clocks;  // [1]: of the first warp
};
inline constexpr int kMmasOfRound = 64;
cuda::KernelLaunch mma_issue_launch(const MmaIssueParams& params, int others, uint32_t warps);

// CTAs whose warps each do `rounds` times kMmasOfRound block-scaled mma.sync.m16n8k64. sm_120a and
// its family alone.
struct MmaNvf4Params {
  uint32_t rounds;
  uint64_t* clocks;  // [1]: of the first CTA's first warp
};
cuda::KernelLaunch mma_nvf4_launch(const MmaNvf4Params& params, uint32_t ctas, uint32_t warps);

}  // namespace dualgemm::bench
