#include "bench/probes/kernels.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::bench {

// CTA 0 waits for the flag, which a later grid may set, or until its time is over; the others end
// at once.
extern "C" __global__ void probe_watch(const __grid_constant__ WatchParams p) {
  if (p.lets_next_start) cuda::ptx::griddepcontrol_launch_dependents();
  if (blockIdx.x != 0) return;
  const int64_t begin = clock64();
  uint32_t seen = 0;
  do seen = cuda::ptx::ld_acquire_gpu(p.flag);
  while (seen == 0 && static_cast<uint64_t>(clock64() - begin) < p.clocks);
  *p.seen = seen;
}

extern "C" __global__ void probe_follow(const __grid_constant__ FollowParams p) {
  if (p.waits) cuda::ptx::griddepcontrol_wait();
  cuda::ptx::griddepcontrol_launch_dependents();
  if (p.flag != nullptr) cuda::ptx::st_release_gpu(p.flag, 1);
}

cuda::KernelLaunch watch_launch(const WatchParams& params) {
  cuda::KernelLaunch launch{
      .kernel = {"overlap", "probe_watch", reinterpret_cast<const void*>(&probe_watch)},
      .ctas = 2,
      .threads = 1};
  launch.set_params(params);
  return launch;
}

cuda::KernelLaunch follow_launch(const FollowParams& params, bool overlaps_previous) {
  cuda::KernelLaunch launch{
      .kernel = {"overlap", "probe_follow", reinterpret_cast<const void*>(&probe_follow)},
      .ctas = 1,
      .threads = 1,
      .overlaps_previous = overlaps_previous};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::bench
