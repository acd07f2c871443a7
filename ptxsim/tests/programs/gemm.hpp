// What the programs beside this share: operands whose products are exact in FP32 in any order, the
// launch through CUTLASS's adapter for a device, and the comparison. D = alpha * A * B^T + beta *
// C; all that is here is K- or row-major.
#pragma once

#include "device.hpp"

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/gemm/kernel/tile_scheduler.hpp"

namespace program {

struct Problem {
  int m, n, k;
  int sm_count;  // CTAs that share the tiles
};

inline constexpr float kAlpha = 0.5f, kBeta = 2.0f;  // exact as well

template <class Stride>
Stride packed(int64_t row) {
  Stride stride{};
  cute::get<0>(stride) = row;
  return stride;
}

inline std::vector<float> sources(const Problem& p) {
  std::vector<float> c(static_cast<size_t>(p.m) * p.n);
  for (size_t i = 0; i < c.size(); ++i)
    c[i] = static_cast<float>(scattered(static_cast<uint32_t>(i)) % 65) - 32;
  return c;
}

// `mainloop`: the operands. Launches the kernel as CUTLASS does; returns the bytes of workspace
// that it took.
template <class Kernel>
size_t run(const Problem& p, const typename Kernel::MainloopArguments& mainloop, const float* c,
           float* d, const typename Kernel::TileSchedulerArguments& scheduler = {}) {
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  typename Kernel::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = cute::make_shape(p.m, p.n, p.k, 1);
  arguments.mainloop = mainloop;
  arguments.epilogue.thread.alpha = kAlpha;
  arguments.epilogue.thread.beta = kBeta;
  arguments.epilogue.ptr_C = c;
  arguments.epilogue.dC = packed<typename Kernel::StrideC>(p.n);
  arguments.epilogue.ptr_D = d;
  arguments.epilogue.dD = packed<typename Kernel::StrideD>(p.n);
  arguments.hw_info.sm_count = p.sm_count;
  arguments.scheduler = scheduler;
  const size_t bytes = Gemm::get_workspace_size(arguments);
  OnDevice<uint8_t> workspace(bytes == 0 ? 1 : bytes);
  Gemm gemm;
  require(Gemm::can_implement(arguments) == cutlass::Status::kSuccess, "the problem is supported");
  require(gemm.initialize(arguments, workspace.data()) == cutlass::Status::kSuccess, "initialize");
  require(gemm.run() == cutlass::Status::kSuccess, "run");
  require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
  return bytes;
}

// Every element, bit for bit. a(row, k), b(col, k): an operand's element.
template <class A, class B>
void compare(const Problem& p, const A& a, const B& b, const std::vector<float>& c,
             const std::vector<float>& d) {
  std::vector<double> rows(static_cast<size_t>(p.m) * p.k), cols(static_cast<size_t>(p.n) * p.k);
  for (int k = 0; k < p.k; ++k) {
    for (int i = 0; i < p.m; ++i) rows[static_cast<size_t>(i) * p.k + k] = a(i, k);
    for (int j = 0; j < p.n; ++j) cols[static_cast<size_t>(j) * p.k + k] = b(j, k);
  }
  for (int i = 0; i < p.m; ++i)
    for (int j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int k = 0; k < p.k; ++k)
        sum += rows[static_cast<size_t>(i) * p.k + k] * cols[static_cast<size_t>(j) * p.k + k];
      const size_t at = static_cast<size_t>(i) * p.n + j;
      const double expected = kAlpha * sum + kBeta * c[at];
      if (static_cast<double>(d[at]) == expected) continue;
      std::printf("wrong: D[%d, %d] is %g; must be %g\n", i, j, static_cast<double>(d[at]),
                  expected);
      std::exit(1);
    }
  std::printf("right\n");
}

}  // namespace program
