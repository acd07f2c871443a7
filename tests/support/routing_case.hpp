// Random top-k ids, and what becomes of them by plain loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/half.hpp"
#include "dualgemm/experts.hpp"
#include "support/inputs.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {

struct RoutingCase {
  RoutingProblem problem;
  std::vector<uint8_t> ids;
  std::vector<int32_t> expert_map;
  std::vector<uint8_t> weights;    // empty: not given
  std::vector<float> token_scale;  // likewise
  bool scales_rows = false;

  std::vector<int32_t> offsets, row_tokens, places;
  std::vector<float> row_scale;

  int64_t count() const { return problem.tokens * problem.top_k; }

  void set_id(int64_t index, int64_t id) {
    if (problem.wide_ids) {
      std::memcpy(ids.data() + index * 8, &id, 8);
    } else {
      const auto narrow = static_cast<int32_t>(id);
      std::memcpy(ids.data() + index * 4, &narrow, 4);
    }
  }

  // Outputs with numbers that no call writes.
  void poison() {
    offsets.assign(static_cast<size_t>(problem.experts) + 1, 0x5A5A5A5A);
    row_tokens.assign(static_cast<size_t>(count()), 0x5A5A5A5A);
    places.assign(static_cast<size_t>(count()), 0x5A5A5A5A);
    row_scale.assign(scales_rows ? static_cast<size_t>(count()) : 0, -77.0f);
  }

  RoutingBuffers buffers() {
    const auto or_null = [](auto& array) { return array.empty() ? nullptr : array.data(); };
    return {.ids = ids.data(),
            .expert_map = or_null(expert_map),
            .weights = or_null(weights),
            .token_scale = or_null(token_scale),
            .offsets = offsets.data(),
            .row_tokens = row_tokens.data(),
            .places = places.data(),
            .row_scale = or_null(row_scale)};
  }

  std::string describe() const {
    return std::to_string(problem.tokens) + " tokens, top " + std::to_string(problem.top_k) + ", " +
           std::to_string(problem.experts) + " experts of " +
           std::to_string(problem.named_experts) + (problem.wide_ids ? ", int64" : "") +
           (scales_rows ? ", scales" : "");
  }
};

inline float weight_at(DataType type, const std::vector<uint8_t>& weights, int64_t index) {
  return load_element(weights.data(), type, index);
}

// skewed: most ids name one expert.
inline RoutingCase routing_case(const RoutingProblem& p, Rng& rng, bool skewed = false) {
  RoutingCase c;
  c.problem = p;
  const int64_t named = p.named_experts > 0 ? p.named_experts : p.experts;
  c.ids.resize(static_cast<size_t>(c.count() * (p.wide_ids ? 8 : 4)));
  for (int64_t i = 0; i < c.count(); ++i) {
    int64_t id = skewed && rng.chance(0.9) ? named / 2 : rng.integer(0, named - 1);
    if (rng.chance(0.05)) {
      const int64_t odd[] = {-1, named, INT32_MIN, INT32_MAX};
      id = odd[rng.integer(0, 3)];
      if (p.wide_ids && rng.chance(0.5)) id = (int64_t{1} << 32) + rng.integer(0, named - 1);
    }
    c.set_id(i, id);
  }
  // Experts of this rank, in any order; the others are elsewhere.
  for (int64_t i = 0; i < p.named_experts; ++i)
    c.expert_map.push_back(rng.chance(0.6)   ? static_cast<int32_t>(rng.integer(0, p.experts - 1))
                           : rng.chance(0.8) ? -1
                                             : static_cast<int32_t>(p.experts));
  c.scales_rows = rng.chance(0.6);
  if (c.scales_rows && rng.chance(0.7)) {
    c.weights.resize(static_cast<size_t>(c.count() * core::bytes_of(p.weights_type, 1)));
    for (int64_t i = 0; i < c.count(); ++i)
      store_element(c.weights.data(), p.weights_type, i, rng.uniform(0.0f, 1.0f));
  }
  if (c.scales_rows && rng.chance(0.7)) {
    for (int64_t t = 0; t < p.tokens; ++t) c.token_scale.push_back(rng.uniform(0.001f, 2.0f));
  }
  c.poison();
  return c;
}

inline RoutingProblem random_routing(Rng& rng) {
  constexpr DataType kWeights[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
  RoutingProblem p;
  p.tokens = rng.chance(0.2) ? 0 : rng.chance(0.5) ? rng.integer(1, 9) : rng.integer(1, 300);
  p.top_k = rng.integer(1, 10);
  p.experts = rng.chance(0.5) ? rng.integer(1, 12) : rng.integer(1, 300);
  if (rng.chance(0.4)) p.named_experts = rng.integer(1, 400);
  p.wide_ids = rng.chance(0.5);
  p.weights_type = rng.pick(kWeights);
  return p;
}

// What route_tokens() must have written.
inline ::testing::AssertionResult is_routed_right(const RoutingCase& c) {
  using ::testing::AssertionFailure;
  const RoutingProblem& p = c.problem;
  const auto expert_of = [&](int64_t index) -> int64_t {
    int64_t id;
    if (p.wide_ids) {
      std::memcpy(&id, c.ids.data() + index * 8, 8);
    } else {
      int32_t narrow;
      std::memcpy(&narrow, c.ids.data() + index * 4, 4);
      id = narrow;
    }
    if (p.named_experts > 0) {
      if (id < 0 || id >= p.named_experts) return -1;
      id = c.expert_map[static_cast<size_t>(id)];
    }
    return id >= 0 && id < p.experts ? id : -1;
  };
  int64_t row = 0;
  for (int64_t expert = 0; expert <= p.experts; ++expert) {  // the last: of none
    const int64_t wanted = expert < p.experts ? expert : -1;
    if (c.offsets[static_cast<size_t>(expert)] != row)
      return AssertionFailure() << "offset " << expert << ": "
                                << c.offsets[static_cast<size_t>(expert)] << ", want " << row;
    for (int64_t index = 0; index < c.count(); ++index) {
      if (expert_of(index) != wanted) continue;
      const auto at = static_cast<size_t>(row);
      const int64_t token = index / p.top_k;
      if (c.row_tokens[at] != token)
        return AssertionFailure() << "row " << row << " is token " << c.row_tokens[at];
      if (c.places[static_cast<size_t>(index)] != (wanted < 0 ? -1 : row))
        return AssertionFailure() << "id " << index << " at "
                                  << c.places[static_cast<size_t>(index)] << ", want " << row;
      if (c.scales_rows) {
        float scale = wanted < 0 ? 0.0f : 1.0f;
        if (wanted >= 0 && !c.weights.empty()) scale = weight_at(p.weights_type, c.weights, index);
        if (wanted >= 0 && !c.token_scale.empty())
          scale *= c.token_scale[static_cast<size_t>(token)];
        if (c.row_scale[at] != scale)
          return AssertionFailure() << "scale of row " << row << ": " << c.row_scale[at];
      }
      ++row;
    }
  }
  return ::testing::AssertionSuccess();
}

// ---- the way back ----------------------------------------------------------------------------

struct CombineCase {
  CombineProblem problem;
  std::vector<uint8_t> rows, weights, residual, y;
  std::vector<int32_t> places;

  CombineBuffers buffers() {
    const auto or_null = [](auto& array) { return array.empty() ? nullptr : array.data(); };
    return {.rows = rows.data(),
            .places = places.data(),
            .weights = or_null(weights),
            .residual = or_null(residual),
            .y = y.data()};
  }
};

inline CombineCase random_combine(Rng& rng) {
  constexpr DataType kTypes[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
  CombineCase c;
  CombineProblem& p = c.problem;
  p.tokens = rng.chance(0.1) ? 0 : rng.integer(1, 40);
  p.top_k = rng.integer(1, 10);
  p.cols = 16 * rng.integer(1, 40);
  p.rows.type = rng.pick(kTypes);
  p.y.type = rng.pick(kTypes);
  p.weights_type = rng.pick(kTypes);
  p.residual = rng.chance(0.4);
  if (rng.chance(0.3)) p.rows.ld = p.cols + 8;
  if (rng.chance(0.3)) p.y.ld = p.cols + rng.integer(1, 9);
  const int64_t count = p.tokens * p.top_k;
  const auto fill = [&](const Matrix& matrix, int64_t rows, std::vector<uint8_t>& bytes) {
    const core::ResolvedMatrix m = core::resolve(matrix, rows, p.cols);
    bytes.assign(static_cast<size_t>(m.data_span_bytes(1)), kPoison);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < p.cols; ++col)
        store_element(bytes.data(), matrix.type, row * m.ld + col, rng.normal());
    }
  };
  fill(p.rows, count, c.rows);
  if (p.residual) fill(p.y, p.tokens, c.residual);
  c.y.assign(static_cast<size_t>(core::resolve(p.y, p.tokens, p.cols).data_span_bytes(1)), kPoison);
  for (int64_t i = 0; i < count; ++i) {
    c.places.push_back(!rng.chance(0.1)  ? static_cast<int32_t>(rng.integer(0, count - 1))
                       : rng.chance(0.5) ? -1
                                         : static_cast<int32_t>(count));
  }
  if (rng.chance(0.8)) {
    c.weights.resize(static_cast<size_t>(count * core::bytes_of(p.weights_type, 1)));
    for (int64_t i = 0; i < count; ++i)
      store_element(c.weights.data(), p.weights_type, i, rng.uniform(-1.0f, 1.0f));
    // NaN and infinity of a row of none count for nothing, of others they are the sum's.
    if (count > 0 && rng.chance(0.3))
      store_element(c.weights.data(), p.weights_type, rng.integer(0, count - 1),
                    rng.chance(0.5) ? NAN : INFINITY);
  }
  return c;
}

// y as its definition has it, bit for bit; what lies between rows is poison.
inline std::vector<uint8_t> combined(const CombineCase& c) {
  const CombineProblem& p = c.problem;
  const int64_t count = p.tokens * p.top_k;
  const int64_t row_ld = core::resolve(p.rows, count, p.cols).ld;
  const int64_t y_ld = core::resolve(p.y, p.tokens, p.cols).ld;
  std::vector<uint8_t> y(c.y.size(), kPoison);
  for (int64_t token = 0; token < p.tokens; ++token) {
    for (int64_t col = 0; col < p.cols; ++col) {
      float sum = 0.0f;
      for (int64_t j = 0; j < p.top_k; ++j) {
        const int64_t index = token * p.top_k + j;
        const int64_t place = c.places[static_cast<size_t>(index)];
        if (place < 0 || place >= count) continue;
        const float weight = c.weights.empty() ? 1.0f : weight_at(p.weights_type, c.weights, index);
        const float value = load_element(c.rows.data(), p.rows.type, place * row_ld + col);
        const float product = weight * value;
        sum = sum + product;
      }
      if (p.residual) sum = sum + load_element(c.residual.data(), p.y.type, token * y_ld + col);
      if (std::isnan(sum)) sum = std::numeric_limits<float>::quiet_NaN();
      store_element(y.data(), p.y.type, token * y_ld + col, sum);
    }
  }
  return y;
}

}  // namespace dualgemm::test
