// Attention of one sequence, in double on the host: query q sees the keys up to q + keys - queries.
#pragma once

#include "compared.hpp"

struct Heads {
  size_t queries, keys, query_heads, key_heads, dim;
};

// Arrays are [token][head][dim].
inline std::vector<double> attended(const Heads& of, const std::vector<half>& q,
                                    const std::vector<half>& k, const std::vector<half>& v) {
  std::vector<double> out(of.queries * of.query_heads * of.dim);
  for (size_t query = 0; query < of.queries; ++query)
    for (size_t head = 0; head < of.query_heads; ++head) {
      const half* row = &q[(query * of.query_heads + head) * of.dim];
      double* to = &out[(query * of.query_heads + head) * of.dim];
      const size_t seen = query + of.keys - of.queries + 1;
      const size_t key_head = head * of.key_heads / of.query_heads;
      double sum = 0;
      for (size_t key = 0; key < seen; ++key) {
        const size_t at = (key * of.key_heads + key_head) * of.dim;
        double score = 0;
        for (size_t i = 0; i < of.dim; ++i)
          score += double{__half2float(row[i])} * __half2float(k[at + i]);
        const double weight = std::exp(score / std::sqrt(double(of.dim)));
        sum += weight;
        for (size_t i = 0; i < of.dim; ++i) to[i] += weight * __half2float(v[at + i]);
      }
      for (size_t i = 0; i < of.dim; ++i) to[i] /= sum;
    }
  return out;
}

// Weights are f16 where tensor cores multiply them: 2^-11 of each, and of the result once more.
inline int compared(const std::vector<half>& found, const std::vector<double>& want) {
  Comparison comparison;
  for (size_t i = 0; i < found.size(); ++i)
    comparison.add(__half2float(found[i]), want[i], 2e-3 + std::fabs(want[i]) / 512);
  return comparison.tell();
}
