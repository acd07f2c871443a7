// ThunderKittens' product for Blackwell, beside the host's.
#define main main_with_sizes_of_a_gpu
#include STRANGER
#undef main

#include "product.hpp"

int main() {
  using Kernel = config<256, 64, 128, 4, true, 5, 2>;
  const Product p(512, 256, 512, true);
  globals<Kernel> arguments{{p.d_a, nullptr, nullptr, p.m, p.k},
                            {p.d_b, nullptr, nullptr, p.n, p.k},
                            {p.d_c, nullptr, nullptr, p.m, p.n}};
  cudaFuncSetAttribute(kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       arguments.dynamic_shared_memory());
  LaunchConfig<true, true> launch(arguments.grid(), arguments.block(),
                                  arguments.dynamic_shared_memory(), 0, Kernel::CLUSTER_SIZE);
  if (cudaLaunchKernelEx(launch, kernel<Kernel>, arguments) != cudaSuccess) return 1;
  return p.compare();
}
