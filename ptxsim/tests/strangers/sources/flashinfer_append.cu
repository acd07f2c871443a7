// FlashInfer's append to a cache of pages: each value lies where its sequence and position say, and
// nothing else changes.
#include "compared.hpp"

#include STRANGER

int main() {
  constexpr uint32_t kHeads = 2, kPage = 4, kDim = 64, kSequences = 3, kPages = 9;
  const std::vector<int32_t> lengths = {5, 1, 10}, old = {2, 0, 7};
  std::vector<int32_t> pages = {8, 3, 0, 5, 2, 7}, first = {0}, last, sequence, position;
  for (uint32_t s = 0; s < kSequences; ++s) {
    first.push_back(first.back() + (lengths[s] + int(kPage) - 1) / int(kPage));
    last.push_back((lengths[s] - 1) % int(kPage) + 1);
    for (int at = old[s]; at < lengths[s]; ++at) {
      sequence.push_back(int(s));
      position.push_back(at);
    }
  }
  const auto tokens = uint32_t(sequence.size());
  const std::vector<half> k = normal_halves(tokens * kHeads * kDim, 1);
  const std::vector<half> v = normal_halves(k.size(), 2);
  std::vector<half> want_k(kPages * kPage * kHeads * kDim, __float2half(0)), want_v = want_k;
  OnDevice<half> d_k(k), d_v(v), cache_k(want_k), cache_v(want_v);
  OnDevice<int32_t> d_pages(pages), d_first(first), d_last(last);
  OnDevice<int32_t> d_sequence(sequence), d_position(position);
  flashinfer::paged_kv_t<half, int32_t> cache(
      kHeads, kPage, kDim, kSequences, flashinfer::QKVLayout::kNHD, cache_k.get(), cache_v.get(),
      d_pages.get(), d_first.get(), d_last.get());
  if (flashinfer::AppendPagedKVCache<half, int32_t>(cache, d_k.get(), d_v.get(), d_sequence.get(),
                                                    d_position.get(), tokens, kHeads * kDim, kDim,
                                                    kHeads * kDim, kDim) != cudaSuccess)
    return 1;
  for (uint32_t token = 0; token < tokens; ++token) {
    const int at = position[token];
    const int page = pages[size_t(first[size_t(sequence[token])] + at / int(kPage))];
    const size_t to = (size_t(page) * kPage + size_t(at) % kPage) * kHeads * kDim;
    for (size_t i = 0; i < kHeads * kDim; ++i) {
      want_k[to + i] = k[token * kHeads * kDim + i];
      want_v[to + i] = v[token * kHeads * kDim + i];
    }
  }
  const std::vector<half> found_k = cache_k.read(), found_v = cache_v.read();
  Comparison comparison;
  for (size_t i = 0; i < want_k.size(); ++i) {
    comparison.add(__half2float(found_k[i]), __half2float(want_k[i]), 0);
    comparison.add(__half2float(found_v[i]), __half2float(want_v[i]), 0);
  }
  return comparison.tell();
}
