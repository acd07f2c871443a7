// ThunderKittens' product for Hopper, beside the host's.
#define main main_with_sizes_of_a_gpu
#include STRANGER
#undef main

#include "product.hpp"

int main() {
  using Kernel = matmul_template<2, 4, 8>;
  const Product product(256, 512, 256, false);
  constexpr int kShared = MAX_SHARED_MEMORY - 1024;
  cudaFuncSetAttribute(prototype::lcf::kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kShared);
  inner_run<Kernel>(product.d_a, product.d_b, product.d_c, product.m, product.n, product.k,
                    Kernel::grid(product.m, product.n, product.k),
                    kittens::prototype::detail::NUM_THREADS_v<Kernel>);
  return product.compare();
}
