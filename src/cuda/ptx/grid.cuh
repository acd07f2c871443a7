// What grids, CTAs and warpgroups say to each other. PTX ISA 9.0, "griddepcontrol", "setmaxnreg",
// "barrier", "ld", "st".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// griddepcontrol.launch_dependents;      PTX ISA 7.8, sm_90: grids that were enqueued to overlap
// with this one may start once all its CTAs have said so or gone.
DUALGEMM_DEVICE void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// griddepcontrol.wait;      PTX ISA 7.8, sm_90: the grids before have ended, their writes are
// visible. At once if this grid does not overlap with them.
DUALGEMM_DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// setmaxnreg.{inc,dec}.sync.aligned.u32 kRegisters;      PTX ISA 8.0, sm_90a: by all warps of a
// warpgroup; a multiple of 8 in 24 .. 256. inc waits until the CTA has them to spare.
template <int kRegisters>
DUALGEMM_DEVICE void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
DUALGEMM_DEVICE void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// barrier.cta.sync.aligned id, threads;      PTX ISA 7.8, sm_30, "barrier": `threads` threads of
// the CTA, whole warps; id 0 is __syncthreads'.
DUALGEMM_DEVICE void barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// st.release.gpu.global.u32 [to], value;      PTX ISA 6.0, sm_70, "st"
DUALGEMM_DEVICE void st_release_gpu(uint32_t* to, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// ld.acquire.gpu.global.u32 d, [from];      PTX ISA 6.0, sm_70, "ld"
DUALGEMM_DEVICE uint32_t ld_acquire_gpu(const uint32_t* from) {
  uint32_t d;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(d) : "l"(from) : "memory");
  return d;
}

}  // namespace dualgemm::cuda::ptx
