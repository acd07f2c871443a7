#include "cuda/kernels/sm80/predicted_time.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/machine/gpus.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

constexpr double kStartUs = 3;

// Clocks of an SM for each weight of Gate and Up, by the tile's rows of A: (14336, 4096) on one
// H200 with 132 SMs at 1.98 GHz, A in bf16, less kStartUs (docs/performance/h200_sm80.md, 30
// November 2026).
struct ClocksOfWeight {
  int64_t rows;
  double as_they_lie, prepared;
};
constexpr ClocksOfWeight kClocks[] = {{8, 0.108, 0.055},  {16, 0.122, 0.062}, {32, 0.146, 0.089},
                                      {48, 0.173, 0.106}, {64, 0.173, 0.123}, {96, 0.263, 0.171},
                                      {128, 0.263, 0.211}};
constexpr double kManyTiles = 0.9;  // of what one row of tiles takes, where there are several

double clocks_of_weight(int64_t rows, int64_t tile_m, bool prepared) {
  const ClocksOfWeight* found = std::begin(kClocks);
  while (found->rows < tile_m && found + 1 != std::end(kClocks)) ++found;
  const double once = prepared ? found->prepared : found->as_they_lie;
  const int64_t times = core::ceil_div(rows, found->rows);
  return times == 1 ? once : once * static_cast<double>(times) * kManyTiles;
}

}  // namespace

std::optional<PredictedTime> predicted_time(const Plan& plan, const DeviceCaps& caps) {
  const machine::Gpu* const gpu = machine::find(caps.compute_capability, caps.num_sms);
  if (gpu == nullptr) return std::nullopt;
  const Problem& p = plan.problem;
  const double weights = weights_read(p), bytes = weights * kBytesOfWeight;
  const double memory_us = bytes / gpu->hbm_bytes_per_us.value;
  const double clocks = weights * clocks_of_weight(usual_rows(p), plan.shape.tile_m, plan.prepared);
  const double macs_us = weights * static_cast<double>(usual_rows(p)) / gpu->half_macs_per_us.value;
  const double us = kStartUs + std::max({memory_us, macs_us,
                                         clocks / (gpu->sms.value * gpu->clocks_per_us.value)});
  // Other tensor cores and caches than the H200's: as ptxsim's clock doubts itself there. But
  // memory is never faster than its data sheet.
  return PredictedTime{us, std::max(0.6 * us, machine::least_us(*gpu, bytes, macs_us)), 1.6 * us};
}

}  // namespace dualgemm::cuda::sm80
