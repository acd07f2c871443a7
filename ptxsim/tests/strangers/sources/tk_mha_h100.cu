// ThunderKittens' attention for Hopper, without a mask, beside the host's in double.
#include <chrono>  // the file leaves it out

#define main main_with_a_file_of_inputs
#include STRANGER
#undef main

#include "compared.hpp"

int main() {
  constexpr size_t kHeads = 2, kLength = 384, kDim = 128;
  using Kernel = attn_fwd_template<kDim>;
  std::vector<bf16> q, k, v;
  std::mt19937 random(1);
  std::normal_distribution<float> values;
  for (std::vector<bf16>* const to : {&q, &k, &v})
    for (size_t i = 0; i < kHeads * kLength * kDim; ++i)
      to->push_back(__float2bfloat16(values(random)));
  OnDevice<bf16> d_q(q), d_k(k), d_v(v), d_out(q.size());
  Kernel::layout::qo_global queries(d_q.get(), size_t{1}, kHeads, kLength, nullptr);
  Kernel::layout::qo_global out(d_out.get(), size_t{1}, kHeads, kLength, nullptr);
  Kernel::layout::kv_global keys(d_k.get(), size_t{1}, kHeads, kLength, nullptr);
  Kernel::layout::kv_global values_of_keys(d_v.get(), size_t{1}, kHeads, kLength, nullptr);
  Kernel::layout::globals globals = {out, queries, keys, values_of_keys};
  constexpr int kShared = kittens::MAX_SHARED_MEMORY - 2000;
  cudaFuncSetAttribute(prototype::lcf::kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kShared);
  prototype::lcf::kernel<Kernel><<<4, prototype::detail::NUM_THREADS_v<Kernel>, kShared>>>(globals);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  const std::vector<bf16> found = d_out.read();
  Comparison comparison;
  for (size_t row = 0; row < kHeads * kLength; ++row) {
    const size_t head = row / kLength * kLength * kDim;
    std::vector<double> sums(kDim);
    double all = 0;
    for (size_t key = 0; key < kLength; ++key) {
      double score = 0;
      for (size_t i = 0; i < kDim; ++i)
        score += double{__bfloat162float(q[row * kDim + i])} *
                 __bfloat162float(k[head + key * kDim + i]);
      const double weight = std::exp(score / std::sqrt(double(kDim)));
      all += weight;
      for (size_t i = 0; i < kDim; ++i)
        sums[i] += weight * __bfloat162float(v[head + key * kDim + i]);
    }
    // Weights and results are bf16.
    for (size_t i = 0; i < kDim; ++i)
      comparison.add(__bfloat162float(found[row * kDim + i]), sums[i] / all,
                     5e-3 + std::fabs(sums[i] / all) / 64);
  }
  return comparison.tell();
}
