#include "core/routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "core/enum_table.hpp"
#include "core/quantize_rows.hpp"
#include "core/validate.hpp"
#include "core/wide_block.hpp"

namespace dualgemm {
namespace core {
namespace {

constexpr int64_t kNoExpert = -1;
// Columns that a thread sums up at a time.
constexpr int64_t kSumCols = 256;

Status check_rows(int64_t tokens, int64_t top_k) {
  for (const auto& [name, value, least] :
       {std::tuple{"tokens", tokens, int64_t{0}}, std::tuple{"top_k", top_k, int64_t{1}}}) {
    if (value < least) {
      return Status::invalid(name, std::to_string(value),
                             "must be at least " + std::to_string(least));
    }
  }
  int64_t rows = 0;
  if (!__builtin_mul_overflow(tokens, top_k, &rows) && rows <= std::numeric_limits<int32_t>::max())
    return {};
  return Status::error(StatusCode::kOverflow, "tokens * top_k",
                       fmt::format("{} * {}", tokens, top_k), "must be below 2^31");
}

Status check_wide_type(const char* name, DataType type) {
  DUALGEMM_TRY(check_enumerator(name, type));
  if (type != DataType::kE2M1) return {};
  return Status::invalid(name, name_of(type), "must be f16, bf16 or f32");
}

// The outputs, the last ones, lie apart from each other and from all else.
Status check_all(const RoutingArrays& arrays) {
  for (const MemoryRange& range : arrays.all) DUALGEMM_TRY(check_range(range));
  for (size_t out = arrays.all.size() - arrays.outputs; out < arrays.all.size(); ++out) {
    for (size_t other = 0; other < out; ++other)
      DUALGEMM_TRY(check_apart(arrays.all[out], arrays.all[other]));
  }
  return {};
}

float load_weight(DataType type, const void* weights, int64_t index) noexcept {
  return with_wide_type(type, [&](auto known) {
    if constexpr (known() == DataType::kF32) {
      return static_cast<const float*>(weights)[index];
    } else {
      const uint16_t bits = static_cast<const uint16_t*>(weights)[index];
      return known() == DataType::kF16 ? decode_f16(bits) : decode_bf16(bits);
    }
  });
}

int64_t id_at(const RoutingProblem& problem, const RoutingBuffers& buffers, int64_t index) {
  return problem.wide_ids ? static_cast<const int64_t*>(buffers.ids)[index]
                          : static_cast<const int32_t*>(buffers.ids)[index];
}

// kNoExpert, or 0 .. experts - 1.
int64_t expert_at(const RoutingProblem& problem, const RoutingBuffers& buffers, int64_t index) {
  const auto within = [](int64_t number, int64_t count) { return number >= 0 && number < count; };
  int64_t expert = id_at(problem, buffers, index);
  if (problem.named_experts > 0) {
    if (!within(expert, problem.named_experts)) return kNoExpert;
    expert = buffers.expert_map[expert];
  }
  return within(expert, problem.experts) ? expert : kNoExpert;
}

// Columns begin .. end-1 of a token's sum; both multiples of 16.
template <DataType kRows, DataType kY>
void sum_columns(const CombineProblem& problem, const CombineBuffers& buffers,
                 const ResolvedMatrix& rows, const ResolvedMatrix& y, int64_t token, int64_t begin,
                 int64_t end) noexcept {
  float sums[kSumCols] = {}, values[kSfVec];
  const int64_t blocks = (end - begin) / kSfVec, first = begin / kSfVec;
  for (int64_t j = 0; j < problem.top_k; ++j) {
    const int64_t index = token * problem.top_k + j, place = buffers.places[index];
    if (place < 0 || place >= rows.rows) continue;
    const float weight = buffers.weights == nullptr
                             ? 1.0f
                             : load_weight(problem.weights_type, buffers.weights, index);
    const auto* const row = static_cast<const uint8_t*>(buffers.rows) + place * rows.row_bytes();
    for (int64_t block = 0; block < blocks; ++block) {
      load_block<kRows>(row, first + block, values);
      for (int64_t i = 0; i < kSfVec; ++i) sums[block * kSfVec + i] += weight * values[i];
    }
  }
  const int64_t offset = token * y.row_bytes();
  auto* const to = static_cast<uint8_t*>(buffers.y) + offset;
  for (int64_t block = 0; block < blocks; ++block) {
    float* const sum = sums + block * kSfVec;
    if (problem.residual) {
      load_block<kY>(static_cast<const uint8_t*>(buffers.residual) + offset, first + block, values);
      for (int64_t i = 0; i < kSfVec; ++i) sum[i] += values[i];
    }
    store_canonical<kY>(to, first + block, sum);
  }
}

}  // namespace

RoutingArrays arrays_of(const RoutingProblem& p, const RoutingBuffers& buffers) {
  const int64_t rows = routed_rows(p);
  const int64_t id = p.wide_ids ? 8 : 4, weight = bytes_of(p.weights_type, 1);
  return {{{"ids", buffers.ids, rows * id, id, true},
           {"expert_map", buffers.expert_map, p.named_experts * 4, 4, p.named_experts > 0},
           {"weights", buffers.weights, rows * weight, weight, false},
           {"token_scale", buffers.token_scale, p.tokens * 4, 4, false},
           {"offsets", buffers.offsets, (p.experts + 1) * 4, 4, true},
           {"row_tokens", buffers.row_tokens, rows * 4, 4, true},
           {"places", buffers.places, rows * 4, 4, true},
           {"row_scale", buffers.row_scale, rows * 4, 4, false}},
          4};
}

RoutingArrays arrays_of(const CombineProblem& p, const CombineBuffers& buffers) {
  const int64_t rows = routed_rows(p), weight = bytes_of(p.weights_type, 1);
  const ResolvedMatrix from = resolve(p.rows, rows, p.cols), to = resolve(p.y, p.tokens, p.cols);
  const int64_t element = bytes_of(p.y.type, 1), y = to.data_span_bytes(1);
  return {{{"rows", buffers.rows, from.data_span_bytes(1), bytes_of(p.rows.type, 1), true},
           {"places", buffers.places, rows * 4, 4, true},
           {"weights", buffers.weights, rows * weight, weight, false},
           {"residual", buffers.residual, p.residual ? y : 0, element, p.residual},
           {"y", buffers.y, y, element, true}},
          1};
}

Status check_arrays(const RoutingProblem& problem, const RoutingBuffers& buffers) {
  if (problem.named_experts == 0) {
    DUALGEMM_TRY(check_absent("expert_map", buffers.expert_map,
                              "must be null: the problem's named_experts is 0"));
  }
  if (buffers.row_scale == nullptr) {
    const char* const rule = "must be null where row_scale is";
    DUALGEMM_TRY(check_absent("weights", buffers.weights, rule));
    DUALGEMM_TRY(check_absent("token_scale", buffers.token_scale, rule));
  }
  return check_all(arrays_of(problem, buffers));
}

Status check_arrays(const CombineProblem& problem, const CombineBuffers& buffers) {
  if (!problem.residual) {
    DUALGEMM_TRY(
        check_absent("residual", buffers.residual, "must be null: the problem has no residual"));
  }
  RoutingArrays arrays = arrays_of(problem, buffers);
  if (buffers.residual == buffers.y) arrays.all[3].bytes = 0;  // in place
  return check_all(arrays);
}

Status route_on_cpu(const RoutingProblem& problem, const RoutingBuffers& buffers) {
  const int64_t rows = routed_rows(problem);
  // Rows of each expert, then where the next one of it goes; the last: of none.
  std::vector<int32_t> next(problem.experts + 1, 0);
  std::vector<int32_t> experts(rows);
  for (int64_t index = 0; index < rows; ++index) {
    const int64_t expert = expert_at(problem, buffers, index);
    experts[index] = static_cast<int32_t>(expert == kNoExpert ? problem.experts : expert);
    ++next[experts[index]];
  }
  int32_t before = 0;
  for (int64_t expert = 0; expert <= problem.experts; ++expert) {
    buffers.offsets[expert] = before;
    before += std::exchange(next[expert], before);
  }
  for (int64_t index = 0; index < rows; ++index) {
    const int64_t token = index / problem.top_k;
    const bool exists = experts[index] < problem.experts;
    const int32_t row = next[experts[index]]++;
    buffers.row_tokens[row] = static_cast<int32_t>(token);
    buffers.places[index] = exists ? row : -1;
    if (buffers.row_scale == nullptr) continue;
    float scale = exists ? 1.0f : 0.0f;
    if (exists && buffers.weights != nullptr)
      scale = load_weight(problem.weights_type, buffers.weights, index);
    if (exists && buffers.token_scale != nullptr) scale *= buffers.token_scale[token];
    buffers.row_scale[row] = scale;
  }
  return {};
}

Status combine_on_cpu(const CombineProblem& problem, const CombineBuffers& buffers, int threads) {
  const ResolvedMatrix rows = resolve(problem.rows, routed_rows(problem), problem.cols);
  const ResolvedMatrix y = resolve(problem.y, problem.tokens, problem.cols);
  const int64_t parts = (problem.cols + kSumCols - 1) / kSumCols;
  const Expected<int> helpers =
      threads_for_blocks(threads, routed_rows(problem) * (problem.cols / kSfVec));
  if (!helpers) return helpers.status();
  Team team(*helpers);
  with_wide_type(rows.type, [&](auto from) {
    with_wide_type(y.type, [&](auto to) {
      team.run(problem.tokens * parts, [&](int64_t unit, int) {
        const int64_t begin = unit % parts * kSumCols;
        sum_columns<from(), to()>(problem, buffers, rows, y, unit / parts, begin,
                                  std::min(begin + kSumCols, problem.cols));
      });
    });
  });
  return {};
}

}  // namespace core

Status validate(const RoutingProblem& problem) {
  DUALGEMM_TRY(core::check_rows(problem.tokens, problem.top_k));
  for (const auto& [name, value, least] :
       {std::tuple{"experts", problem.experts, int64_t{1}},
        std::tuple{"named_experts", problem.named_experts, int64_t{0}}}) {
    if (value < least || value >= std::numeric_limits<int32_t>::max()) {
      return Status::invalid(name, std::to_string(value),
                             fmt::format("must be {} .. 2^31 - 2", least));
    }
  }
  return core::check_wide_type("weights_type", problem.weights_type);
}

Status validate(const CombineProblem& problem) {
  DUALGEMM_TRY(core::check_rows(problem.tokens, problem.top_k));
  if (problem.cols < kSfVec || problem.cols % kSfVec != 0) {
    return Status::invalid("cols", std::to_string(problem.cols),
                           "must be a positive multiple of 16");
  }
  DUALGEMM_TRY(core::check_wide_type("rows.type", problem.rows.type));
  DUALGEMM_TRY(core::check_wide_type("y.type", problem.y.type));
  DUALGEMM_TRY(core::check_wide_type("weights_type", problem.weights_type));
  DUALGEMM_TRY(
      core::check_matrix("rows", problem.rows, core::routed_rows(problem), problem.cols, 1, false));
  return core::check_matrix("y", problem.y, problem.tokens, problem.cols, 1, false);
}

}  // namespace dualgemm
