// FlashInfer's causal attention of one sequence by TMA and wgmma, beside the host's.
#include "attended.hpp"

#include STRANGER
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

int main() {
  using namespace flashinfer;
  constexpr Heads of{193, 256, 2, 1, 128};
  const std::vector<half> q = normal_halves(of.queries * of.query_heads * of.dim, 1);
  const std::vector<half> k = normal_halves(of.keys * of.key_heads * of.dim, 2);
  const std::vector<half> v = normal_halves(of.keys * of.key_heads * of.dim, 3);
  OnDevice<half> d_q(q), d_k(k), d_v(v), out(q.size());
  using Half = cutlass::half_t;
  SinglePrefillParams<Half, Half, Half> params{};
  params.q_ptr = reinterpret_cast<Half*>(d_q.get());
  params.k_ptr = reinterpret_cast<Half*>(d_k.get());
  params.v_ptr = reinterpret_cast<Half*>(d_v.get());
  params.o_ptr = reinterpret_cast<Half*>(out.get());
  params.additional_params.sm_scale = 1 / std::sqrt(float(of.dim));
  params.q_stride_n = params.o_stride_n = of.query_heads * of.dim;
  params.k_stride_n = params.v_stride_n = of.key_heads * of.dim;
  params.q_stride_h = params.o_stride_h = params.k_stride_h = params.v_stride_h = of.dim;
  params.qo_len = of.queries;
  params.kv_len = of.keys;
  params.num_qo_heads = of.query_heads;
  params.num_kv_heads = of.key_heads;
  params.group_size = of.query_heads / of.key_heads;
  params.window_left = -1;
  params.causal = true;
  if (SinglePrefillWithKVCacheDispatched<of.dim, of.dim, MaskMode::kCausal, false,
                                         StandardAttention>(params, nullptr) != cudaSuccess)
    return 1;
  return compared(out.read(), attended(of, q, k, v));
}
