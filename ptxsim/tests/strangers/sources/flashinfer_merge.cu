// FlashInfer's merge of two states of attention, beside the host's; logarithms are those to base 2.
#include "compared.hpp"

#include STRANGER

int main() {
  constexpr uint32_t kTokens = 13, kHeads = 4, kDim = 128;
  const std::vector<half> a = normal_halves(kTokens * kHeads * kDim, 1);
  const std::vector<half> b = normal_halves(a.size(), 2);
  std::vector<float> of_a(kTokens * kHeads), of_b(of_a.size());
  std::mt19937 random(3);
  std::normal_distribution<float> values(0, 4);
  for (float& value : of_a) value = values(random);
  for (float& value : of_b) value = values(random);
  OnDevice<half> d_a(a), d_b(b), merged(a.size());
  OnDevice<float> d_of_a(of_a), d_of_b(of_b), of_merged(of_a.size());
  if (flashinfer::MergeState<half, half>(d_a.get(), d_of_a.get(), d_b.get(), d_of_b.get(),
                                         merged.get(), of_merged.get(), kTokens, kHeads,
                                         kDim) != cudaSuccess)
    return 1;
  const std::vector<half> found = merged.read();
  const std::vector<float> found_of = of_merged.read();
  Comparison comparison;
  for (size_t row = 0; row < of_a.size(); ++row) {
    const double x = std::exp2(of_a[row]), y = std::exp2(of_b[row]);
    comparison.add(found_of[row], std::log2(x + y), 1e-4);
    for (size_t i = row * kDim; i < (row + 1) * kDim; ++i) {
      const double want = (x * __half2float(a[i]) + y * __half2float(b[i])) / (x + y);
      comparison.add(__half2float(found[i]), want, 1e-3 * std::fabs(want) + 1e-4);
    }
  }
  return comparison.tell();
}
