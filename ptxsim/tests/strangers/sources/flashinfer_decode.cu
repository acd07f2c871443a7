// FlashInfer's attention of one query over a cache, in one part and in several, beside the host's.
#include "attended.hpp"

#include STRANGER
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/variants.cuh>

int main() {
  using namespace flashinfer;
  constexpr Heads of{1, 333, 8, 2, 128};
  const std::vector<half> q = normal_halves(of.query_heads * of.dim, 1);
  const std::vector<half> k = normal_halves(of.keys * of.key_heads * of.dim, 2);
  const std::vector<half> v = normal_halves(of.keys * of.key_heads * of.dim, 3);
  const std::vector<double> want = attended(of, q, k, v);
  OnDevice<half> d_q(q), d_k(k), d_v(v), parts(32 << 20);
  for (half* workspace : {static_cast<half*>(nullptr), parts.get()}) {
    OnDevice<half> out(q.size());
    SingleDecodeParams<half, half, half> params(
        d_q.get(), d_k.get(), d_v.get(), out.get(), nullptr, of.keys, of.query_heads, of.key_heads,
        QKVLayout::kNHD, of.dim, -1, 0, 1 / std::sqrt(float(of.dim)), 1, 1e4f);
    using Variant = DefaultAttention<false, false, false, false>;
    if (SingleDecodeWithKVCacheDispatched<of.dim, PosEncodingMode::kNone, Variant>(
            params, workspace, nullptr) != cudaSuccess)
      return 1;
    if (compared(out.read(), want) != 0) return 1;
  }
  std::printf("one part and several: right\n");
  return 0;
}
