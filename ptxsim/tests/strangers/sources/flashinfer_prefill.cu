// FlashInfer's causal attention of one sequence by mma.sync, beside the host's.
#include "attended.hpp"

#include STRANGER
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/variants.cuh>

int main() {
  using namespace flashinfer;
  constexpr Heads of{97, 161, 4, 2, 64};
  const std::vector<half> q = normal_halves(of.queries * of.query_heads * of.dim, 1);
  const std::vector<half> k = normal_halves(of.keys * of.key_heads * of.dim, 2);
  const std::vector<half> v = normal_halves(of.keys * of.key_heads * of.dim, 3);
  OnDevice<half> d_q(q), d_k(k), d_v(v), out(q.size());
  SinglePrefillParams<half, half, half> params(
      d_q.get(), d_k.get(), d_v.get(), nullptr, out.get(), nullptr, nullptr, of.query_heads,
      of.key_heads, of.queries, of.keys, of.query_heads * of.dim, of.dim, of.key_heads * of.dim,
      of.dim, of.dim, -1, 0, 1 / std::sqrt(float(of.dim)), 1, 1e4f);
  using Variant = DefaultAttention<false, false, false, false>;
  if (SinglePrefillWithKVCacheDispatched<of.dim, of.dim, PosEncodingMode::kNone, false,
                                         MaskMode::kCausal, Variant>(
          params, static_cast<half*>(nullptr), nullptr) != cudaSuccess)
    return 1;
  return compared(out.read(), attended(of, q, k, v));
}
