// FlashInfer's top-p and top-k renormalization, beside the host's by sorting.
#include "compared.hpp"

#include STRANGER

#include <algorithm>
#include <flashinfer/topk.cuh>
#include <numeric>

int main() {
  constexpr uint32_t kRows = 4, kTokens = 1000, kTopK = 37;
  constexpr float kTopP = 0.7f;
  std::mt19937 random(1);
  std::exponential_distribution<float> values;
  std::vector<float> in(kRows * kTokens);
  for (float& value : in) value = values(random);
  for (uint32_t row = 0; row < kRows; ++row) {
    const auto begin = in.begin() + row * kTokens;
    const double sum = std::accumulate(begin, begin + kTokens, 0.0);
    for (auto at = begin; at != begin + kTokens; ++at) *at = float(*at / sum);
  }
  OnDevice<float> d_in(in), by_p(in.size()), by_k(in.size());
  if (flashinfer::sampling::TopPRenormProb<float>(d_in.get(), by_p.get(), nullptr, kRows, kTopP,
                                                  kTokens) != cudaSuccess)
    return 1;
  const std::vector<flashinfer::sampling::RadixRowState> fresh(kRows);
  OnDevice<flashinfer::sampling::RadixRowState> states(fresh);
  if (flashinfer::sampling::RadixTopKRenormProbMultiCTA<float, int32_t>(
          d_in.get(), by_k.get(), nullptr, kRows, kTopK, kTokens, states.get()) != cudaSuccess)
    return 1;
  const std::vector<float> found_p = by_p.read(), found_k = by_k.read();
  Comparison comparison;
  for (uint32_t row = 0; row < kRows; ++row) {
    std::vector<uint32_t> order(kTokens);
    std::iota(order.begin(), order.end(), row * kTokens);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return in[a] > in[b]; });
    double sum = 0, sum_of_k = 0;
    size_t kept = 0;
    while (kept < kTokens && sum < kTopP) sum += in[order[kept++]];
    for (size_t i = 0; i < kTopK; ++i) sum_of_k += in[order[i]];
    for (size_t i = 0; i < kTokens; ++i) {
      const double value = in[order[i]];
      comparison.add(found_p[order[i]], i < kept ? value / sum : 0, value * 1e-4);
      comparison.add(found_k[order[i]], i < kTopK ? value / sum_of_k : 0, value * 1e-4);
    }
  }
  return comparison.tell();
}
