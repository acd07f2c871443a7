// FlashInfer's sampling: with one value of the generator for all rows, the token is that at which
// the sum of probabilities passes it, and how often each token comes tells that.
#include "compared.hpp"

#include STRANGER

int main() {
  constexpr uint32_t kRows = 256, kTokens = 12;
  const std::vector<float> weights = {0, .25f, 0, .125f, 0, 0, .5f, 0, 0, 0, .125f, 0};
  std::vector<float> probabilities;
  for (uint32_t row = 0; row < kRows; ++row)
    probabilities.insert(probabilities.end(), weights.begin(), weights.end());
  OnDevice<float> d_probabilities(probabilities);
  OnDevice<int32_t> d_tokens(kRows);
  OnDevice<bool> d_valid(kRows);
  const auto sampled = flashinfer::sampling::SamplingFromProb<float, int32_t>(
      d_probabilities.get(), d_tokens.get(), d_valid.get(), nullptr, kRows, kTokens,
      /*deterministic=*/true, nullptr, /*seed_val=*/42, nullptr, /*offset_val=*/0);
  if (sampled != cudaSuccess) return 1;
  std::vector<double> seen(kTokens);
  Comparison comparison;
  for (const int32_t token : d_tokens.read()) {
    const bool known = token >= 0 && token < int(kTokens);
    comparison.add(known && weights[size_t(token)] > 0, 1, 0);
    if (known) seen[size_t(token)] += 1.0 / kRows;
  }
  // Five standard deviations of a share of 256.
  for (uint32_t i = 0; i < kTokens; ++i)
    comparison.add(seen[i], weights[i], 5 * std::sqrt(weights[i] * (1 - weights[i]) / kRows));
  return comparison.tell();
}
