// FlashInfer's rotary embedding of queries and keys at given positions, beside the host's.
#include "compared.hpp"

#include STRANGER

int main() {
  constexpr uint32_t kTokens = 11, kQueryHeads = 4, kKeyHeads = 2, kDim = 64;
  constexpr float kTheta = 1e4f;
  const std::vector<half> q = normal_halves(kTokens * kQueryHeads * kDim, 1);
  const std::vector<half> k = normal_halves(kTokens * kKeyHeads * kDim, 2);
  std::vector<int32_t> positions(kTokens);
  for (uint32_t i = 0; i < kTokens; ++i) positions[i] = int(i * 17 % 29);
  OnDevice<half> d_q(q), d_k(k), q_out(q.size()), k_out(k.size());
  OnDevice<int32_t> d_positions(positions);
  const auto rotated = flashinfer::BatchQKApplyRotaryPosIds<half, int32_t>(
      d_q.get(), d_k.get(), q_out.get(), k_out.get(), d_positions.get(), kTokens, kQueryHeads,
      kKeyHeads, kDim, kDim, kQueryHeads * kDim, kDim, kKeyHeads * kDim, kDim, kQueryHeads * kDim,
      kDim, kKeyHeads * kDim, kDim, /*interleave=*/false, /*rope_scale=*/1.f, kTheta);
  if (rotated != cudaSuccess) return 1;
  Comparison comparison;
  const auto compare = [&](const std::vector<half>& in, const std::vector<half>& out,
                           size_t heads) {
    for (size_t row = 0; row < kTokens * heads; ++row)
      for (size_t i = 0; i < kDim / 2; ++i) {
        const double angle = positions[row / heads] * std::pow(kTheta, -2.0 * double(i) / kDim);
        const double x = __half2float(in[row * kDim + i]);
        const double y = __half2float(in[row * kDim + kDim / 2 + i]);
        const double c = std::cos(angle), s = std::sin(angle);
        comparison.add(__half2float(out[row * kDim + i]), x * c - y * s, 4e-3);
        comparison.add(__half2float(out[row * kDim + kDim / 2 + i]), y * c + x * s, 4e-3);
      }
  };
  compare(q, q_out.read(), kQueryHeads);
  compare(k, k_out.read(), kKeyHeads);
  return comparison.tell();
}
