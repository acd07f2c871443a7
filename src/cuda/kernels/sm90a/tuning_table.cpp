// Made by scripts/tune_sm90a from tuning_points.json; not to be edited.
#include "cuda/kernels/sm90a/tuning_table.hpp"

namespace dualgemm::cuda::sm90a {

std::span<const TuningRow> tuning_table() {
  static constexpr TuningRow kRows[] = {
      // SMs, n, k, m; tokens, cols, phases; microseconds
      {132, 4096, 7168, 1, 8, 32, 4, 17.50},       {132, 4096, 7168, 8, 8, 32, 4, 18.40},
      {132, 4096, 7168, 16, 16, 32, 4, 18.10},     {132, 4096, 7168, 32, 32, 32, 3, 19.30},
      {132, 4096, 7168, 64, 32, 64, 2, 30.70},     {132, 4096, 7168, 128, 64, 64, 2, 36.20},
      {132, 4096, 7168, 256, 128, 64, 1, 48.70},   {132, 4096, 7168, 512, 256, 64, 1, 81.70},
      {132, 4096, 7168, 1024, 256, 64, 1, 160.20}, {132, 4096, 7168, 2048, 256, 64, 1, 332.80},
      {132, 4096, 7168, 4096, 256, 64, 1, 690.00},
  };
  return kRows;
}

}  // namespace dualgemm::cuda::sm90a
