// The kernels that are linked with this file.
#include "cuda/cutlass/instances.hpp"

namespace dualgemm::cuda::gated {

std::span<const Instance* const> instances() {
  static const Instance* const all[] = {&instance_1sm(), &instance_2sm(), &visitor_1sm()};
  return all;
}

}  // namespace dualgemm::cuda::gated
