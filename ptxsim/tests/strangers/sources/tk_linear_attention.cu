// ThunderKittens' linear attention with a decay for each head, beside the host's in double.
#define main main_with_a_file_of_inputs
#include STRANGER
#undef main

#include "compared.hpp"

int main() {
  constexpr size_t kHeads = 2, kLength = 256;
  std::vector<bf16> q, k, v;
  std::mt19937 random(1);
  std::normal_distribution<float> values;
  const float scale = 1 / std::sqrt(float(ATTN_F));
  for (size_t i = 0; i < kHeads * kLength * ATTN_F; ++i) {
    q.push_back(__float2bfloat16(values(random) * scale));
    k.push_back(__float2bfloat16(values(random) * scale));
  }
  for (size_t i = 0; i < kHeads * kLength * ATTN_D; ++i)
    v.push_back(__float2bfloat16(values(random)));
  const std::vector<float> slopes = {0.1f, 0.7f};
  OnDevice<bf16> d_q(q), d_k(k), d_v(v);
  OnDevice<bf16> d_out(std::vector<bf16>(v.size(), __float2bfloat16(0)));
  OnDevice<float> d_slopes(slopes);
  la_globals globals =
      la_init(d_q.get(), d_k.get(), d_v.get(), d_out.get(), d_slopes.get(), 1, kHeads, kLength);
  constexpr int kShared = kittens::MAX_SHARED_MEMORY - 1024;
  cudaFuncSetAttribute(la_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  la_kernel<<<dim3(kHeads, 1), NUM_THREADS, kShared>>>(globals, kLength);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  const std::vector<bf16> found = d_out.read();
  Comparison comparison;
  for (size_t row = 0; row < kHeads * kLength; ++row) {
    const size_t head = row / kLength, query = row % kLength;
    std::vector<double> sums(ATTN_D), sizes(ATTN_D);
    for (size_t key = 0; key <= query; ++key) {
      const size_t at = head * kLength + key;
      double product = 0;
      for (size_t i = 0; i < ATTN_F; ++i)
        product +=
            double{__bfloat162float(q[row * ATTN_F + i])} * __bfloat162float(k[at * ATTN_F + i]);
      product *= std::exp(-slopes[head] * double(query - key));
      for (size_t i = 0; i < ATTN_D; ++i) {
        sums[i] += product * __bfloat162float(v[at * ATTN_D + i]);
        sizes[i] += std::fabs(product * __bfloat162float(v[at * ATTN_D + i]));
      }
    }
    // Products and sums of keys and values are rounded to bf16 on the way.
    for (size_t i = 0; i < ATTN_D; ++i)
      comparison.add(__bfloat162float(found[row * ATTN_D + i]), sums[i], 1e-4 + sizes[i] / 64);
  }
  return comparison.tell();
}
