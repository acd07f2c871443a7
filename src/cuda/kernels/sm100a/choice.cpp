// Which problems the kernel takes, with which instance.
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/extents.hpp"
#include "cuda/kernels/sm100a/launch.hpp"

namespace dualgemm::cuda::sm100a {

Status supports(const Problem& problem) { return blackwell::check_without_groups(problem); }

const Instance* find_instance(int64_t tile_n, DataType output) {
  for (const Instance& instance : instances()) {
    if (instance.config == Config{static_cast<int>(tile_n), output_type_of(output)})
      return &instance;
  }
  return nullptr;
}

const Instance& choose_instance(const Problem& problem, int num_sms) {
  return *find_instance(blackwell::choose_tile_n(problem.m, problem.n, problem.l, num_sms),
                        problem.d.type);
}

}  // namespace dualgemm::cuda::sm100a
