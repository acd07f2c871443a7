#include "bench/probes/kernels.hpp"
#include "cuda/device/descriptors.hpp"
#include "cuda/ptx/proxy_fence.cuh"
#include "cuda/ptx/tcgen05.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::bench {
namespace {

namespace ptx = cuda::ptx;

constexpr int kTileM = 128, kSteps = 4, kScaleTileBytes = 512;

struct PipeSmem {
  alignas(1024) uint8_t a[kTileM * kRowBytes];
  uint8_t gate[kTileM * kRowBytes], up[kTileM * kRowBytes];
  uint8_t scales[3][kSteps][kScaleTileBytes];
  ptx::Barrier done;
  uint32_t tmem_base;
};

#if DUALGEMM_TARGET_SM100
constexpr int kStepBytes = 32, kScaleTileCols = 4;  // of K = 64
constexpr uint32_t kTmemCols = 512, kScaleCol = 256;
constexpr uint32_t kStageCols = 3 * kSteps * kScaleTileCols, kScaleStages = 4;
static_assert(kScaleCol + kScaleStages * kStageCols <= kTmemCols);

// Any codes, and scales between 2^-6 and 240: what is multiplied costs power.
DUALGEMM_DEVICE void fill(PipeSmem& smem) {
  uint32_t state = threadIdx.x * 2654435761u + 12345u;
  auto* const words = reinterpret_cast<uint32_t*>(&smem);
  constexpr uint32_t kScaleWord = offsetof(PipeSmem, scales) / 4;
  for (uint32_t i = threadIdx.x; i < offsetof(PipeSmem, done) / 4; i += blockDim.x) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    words[i] = i < kScaleWord ? state : (state & 0x3F3F3F3Fu) + 0x08080808u;
  }
}

template <int kColumns>
DUALGEMM_DEVICE void run_pipe(const TensorPipeParams& p, PipeSmem& smem) {
  constexpr uint32_t kInstruction = cuda::nvfp4_instruction_descriptor(kTileM, kColumns);
  const auto rows = [](const uint8_t* operand) {
    return cuda::smem_descriptor(ptx::shared_address(operand), cuda::kSwizzledRows128B,
                                 cuda::SmemSwizzle::k128B);
  };
  const uint64_t a = rows(smem.a), gate = rows(smem.gate), up = rows(smem.up);
  const uint64_t scales = cuda::smem_descriptor(ptx::shared_address(smem.scales),
                                                cuda::kScaleTileRows, cuda::SmemSwizzle::kNone);
  const uint32_t base = smem.tmem_base;
  const uint64_t begin = clock64();
#pragma unroll 1
  for (uint32_t stage = 0; stage < p.stages; ++stage) {
    // After kScaleStages stages nothing says that the columns are free: only the time is asked for.
    const uint32_t stage_col =
        base + kScaleCol + (p.copies_scales ? stage % kScaleStages * kStageCols : 0);
    const auto scale_col = [stage_col](int operand, int step) {
      return stage_col + static_cast<uint32_t>((operand * kSteps + step) * kScaleTileCols);
    };
    if (stage == 0 || p.copies_scales) {
#pragma unroll
      for (int tile = 0; tile < 3 * kSteps; ++tile) {
        ptx::tcgen05_cp_32x128b_warpx4(
            scale_col(0, tile),
            cuda::advance_descriptor(scales, static_cast<uint32_t>(tile * kScaleTileBytes)));
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const auto data = static_cast<uint32_t>(step * kStepBytes);
      const uint32_t accumulate = stage != 0 || step != 0;
      ptx::tcgen05_mma_mxf4nvf4_block16<ptx::CollectorA::kFill>(
          base, cuda::advance_descriptor(a, data), cuda::advance_descriptor(gate, data),
          kInstruction, scale_col(0, step), scale_col(1, step), accumulate);
      ptx::tcgen05_mma_mxf4nvf4_block16<ptx::CollectorA::kLastUse>(
          base + kTileM, cuda::advance_descriptor(a, data), cuda::advance_descriptor(up, data),
          kInstruction, scale_col(0, step), scale_col(2, step), accumulate);
    }
  }
  ptx::tcgen05_commit(&smem.done);
  ptx::mbarrier_wait_parity(&smem.done, 0);
  *p.clocks = clock64() - begin;
}

template <int kColumns>
DUALGEMM_DEVICE void tensor_pipe(const TensorPipeParams& p) {
  extern __shared__ uint8_t dynamic_smem[];
  const uint32_t misaligned = ptx::shared_address(dynamic_smem) % alignof(PipeSmem);
  auto& smem = *reinterpret_cast<PipeSmem*>(dynamic_smem +
                                            (alignof(PipeSmem) - misaligned) % alignof(PipeSmem));
  fill(smem);
  const bool first_warp = ptx::warp_index() == 0;
  if (first_warp) {
    ptx::tcgen05_alloc(&smem.tmem_base, kTmemCols);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&smem.done, 1);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  ptx::fence_proxy_async_shared();
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (first_warp && ptx::elect_sync()) run_pipe<kColumns>(p, smem);
  __syncwarp();
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (first_warp) ptx::tcgen05_dealloc(smem.tmem_base, kTmemCols);
}

#define PROBE_PIPE_BODY(columns) tensor_pipe<columns>(p)
#else
#define PROBE_PIPE_BODY(columns) __trap()
#endif

}  // namespace

#define PROBE_PIPE_ENTRY(columns)                                               \
  extern "C" __global__ void __launch_bounds__(128)                             \
      probe_tensor_pipe_##columns(const __grid_constant__ TensorPipeParams p) { \
    PROBE_PIPE_BODY(columns);                                                   \
  }
PROBE_PIPE_ENTRY(64)
PROBE_PIPE_ENTRY(80)
PROBE_PIPE_ENTRY(96)
PROBE_PIPE_ENTRY(112)
PROBE_PIPE_ENTRY(128)

cuda::KernelLaunch tensor_pipe_launch(const TensorPipeParams& params, int columns) {
#define PROBE_PIPE_KERNEL(columns)                           \
  cuda::Kernel{"tensor_pipe", "probe_tensor_pipe_" #columns, \
               reinterpret_cast<const void*>(&probe_tensor_pipe_##columns)}
  cuda::KernelLaunch launch{.kernel = columns == 64    ? PROBE_PIPE_KERNEL(64)
                                      : columns == 80  ? PROBE_PIPE_KERNEL(80)
                                      : columns == 96  ? PROBE_PIPE_KERNEL(96)
                                      : columns == 112 ? PROBE_PIPE_KERNEL(112)
                                                       : PROBE_PIPE_KERNEL(128),
                            .ctas = 1,
                            .threads = 128,
                            .dynamic_smem_bytes = sizeof(PipeSmem) + alignof(PipeSmem)};
#undef PROBE_PIPE_KERNEL
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
