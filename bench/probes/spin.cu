#include "bench/probes/kernels.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::bench {
namespace {

DUALGEMM_DEVICE uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace

extern "C" __global__ void probe_spin(const __grid_constant__ SpinParams p) {
  cuda::ptx::griddepcontrol_launch_dependents();
  cuda::ptx::griddepcontrol_wait();
  Clocks seen;
  seen.timer_begin = nanoseconds();
  seen.clock_begin = clock64();
  float product = 1.0f;
  do {
    seen.clock_end = clock64();
    if (p.multiplies) {
#pragma unroll
      for (int i = 0; i < 64; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(product));
    }
  } while (seen.clock_end - seen.clock_begin < p.clocks);
  seen.timer_end = nanoseconds();
  if (p.seen != nullptr && threadIdx.x == 0) p.seen[blockIdx.x] = seen;
}

extern "C" __global__ void probe_timer_step(const __grid_constant__ TimerStepParams p) {
  uint64_t smallest = ~uint64_t{0}, last = nanoseconds();
  for (uint32_t i = 0; i < p.reads; ++i) {
    const uint64_t now = nanoseconds();
    if (now != last && now - last < smallest) smallest = now - last;
    last = now;
  }
  *p.nanoseconds = smallest;
}

cuda::KernelLaunch spin_launch(const SpinParams& params, uint32_t ctas, uint32_t threads,
                               uint32_t dynamic_smem_bytes, bool overlaps_previous) {
  cuda::KernelLaunch launch{
      .kernel = {"spin", "probe_spin", reinterpret_cast<const void*>(&probe_spin)},
      .ctas = ctas,
      .threads = threads,
      .dynamic_smem_bytes = dynamic_smem_bytes,
      .overlaps_previous = overlaps_previous};
  launch.set_params(params);
  return launch;
}

cuda::KernelLaunch timer_step_launch(const TimerStepParams& params) {
  cuda::KernelLaunch launch{
      .kernel = {"spin", "probe_timer_step", reinterpret_cast<const void*>(&probe_timer_step)},
      .ctas = 1,
      .threads = 1};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
