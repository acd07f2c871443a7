// FlashInfer's causal attention of one sequence by TMA and tcgen05, beside the host's.
#include "attended.hpp"

#include STRANGER
#include <flashinfer/attention/blackwell/plan.cuh>

int main() {
  using namespace flashinfer;
  using Half = cutlass::half_t;
  constexpr Heads of{193, 256, 2, 1, 64};
  constexpr int tile = 256, width = of.query_heads * of.dim;
  const std::vector<half> q = normal_halves(of.queries * width, 1);
  const std::vector<half> k = normal_halves(of.keys * of.key_heads * of.dim, 2);
  const std::vector<half> v = normal_halves(of.keys * of.key_heads * of.dim, 3);
  OnDevice<half> d_q(q), d_k(k), d_v(v);
  // The kernel's tensor map begins as many rows before the output as the longest sequence has.
  OnDevice<half> out(2 * of.queries * width);
  OnDevice<int> q_ends(std::vector<int>{0, int(of.queries)});
  OnDevice<int> k_ends(std::vector<int>{0, int(of.keys)});

  int blocks = 0;
  cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
  OnDevice<int> work(blocks + 1), tiles(of.query_heads), heads(of.query_heads),
      batches(of.query_heads);
  if (plan_kernel_wrapper(q_ends.get(), k_ends.get(), nullptr, nullptr, work.get(), tiles.get(),
                          heads.get(), batches.get(), tile, 1, of.query_heads, blocks, true, false,
                          nullptr) != cudaSuccess)
    return 1;

  using Dim = cute::Int<of.dim>;
  using Queries = cute::Int<tile>;
  using Keys = cute::_128;
  OnDevice<char> workspace(size_t{1} << 20);
  const auto on_device = [](OnDevice<half>& array) { return reinterpret_cast<Half*>(array.get()); };
  if (run_fmha_fwd<Half, Half, int, cute::Shape<Queries, Keys, Dim>,
                   cute::Shape<Queries, Dim, Keys>, CausalMask>(
          workspace.get(), on_device(d_q), on_device(d_k), on_device(d_v), q_ends.get(),
          k_ends.get(), work.get(), tiles.get(), heads.get(), batches.get(),
          on_device(out) + of.queries * width, nullptr, 1, 1 / std::sqrt(double(of.dim)), 1, 1, 1,
          1, of.query_heads, of.key_heads, of.dim, of.dim, width, of.dim, of.key_heads * of.dim,
          of.dim, of.key_heads * of.dim, of.dim, 1, of.queries, of.keys, of.queries,
          nullptr) != cudaSuccess)
    return 1;
  const std::vector<half> all = out.read();
  return compared({all.begin() + of.queries * width, all.end()}, attended(of, q, k, v));
}
