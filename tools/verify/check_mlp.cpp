#include "tools/verify/check_mlp.hpp"

#include <algorithm>
#include <cmath>

#include "api/mlp_checks.hpp"
#include "api/mlp_parts.hpp"
#include "core/problem.hpp"
#include "core/team.hpp"
#include "dualgemm/formats.hpp"
#include "tools/measure/parallel_for.hpp"
#include "tools/verify/operands.hpp"
#include "tools/verify/stored_h.hpp"
#include "tools/verify/transformed_h.hpp"

namespace dualgemm::verify {
namespace {

constexpr double kRound = 0x1p-24;      // largest relative error of one rounding to FP32
constexpr double kTiny = 0x1p-149;      // at least the absolute error of a result that is subnormal
constexpr double kLeastScale = 0x1p-6;  // what Accumulator::scale_product counts a smaller one as

// A row of Down, decoded.
struct WeightRow {
  std::vector<double> values, scales;
};

void decode_row(const core::ResolvedMatrix& matrix, const void* codes, const uint8_t* scales,
                int64_t batch, int64_t row, WeightRow& out) {
  const auto* bytes =
      static_cast<const uint8_t*>(codes) + (batch * matrix.batch_stride + row * matrix.ld) / 2;
  const ScaleMap map = matrix.scale_map();
  out.values.resize(static_cast<size_t>(matrix.cols));
  out.scales.resize(static_cast<size_t>(matrix.sf_cols));
  for (int64_t block = 0; block < matrix.sf_cols; ++block) {
    const double scale = decode_scale(scales[batch * matrix.scale_batch_stride + map(row, block)]);
    out.scales[static_cast<size_t>(block)] = scale;
    for (int64_t k = block * kSfVec; k < (block + 1) * kSfVec; ++k) {
      out.values[static_cast<size_t>(k)] =
          decode_e2m1(static_cast<uint8_t>(bytes[k / 2] >> (k % 2 * 4)) & 0xF) * scale;
    }
  }
}

// The product of a row of H with a row of Down, with what the bound needs for any H that may be
// there; moved: how far the product of another H may lie.
struct Product {
  reference::Accumulator acc;
  double moved = 0.0;
};

Product product_of(const StoredH& h, int64_t row, const WeightRow& down) {
  Product out;
  const double* const values = &h.value[static_cast<size_t>(row * h.cols)];
  const double* const moved = &h.moved[static_cast<size_t>(row * h.cols)];
  for (int64_t block = 0; block < h.cols / kSfVec; ++block) {
    for (int64_t k = block * kSfVec; k < (block + 1) * kSfVec; ++k) {
      const double weight = down.values[static_cast<size_t>(k)];
      out.acc.value += values[k] * weight;
      if (moved[k] > 0.0 && weight != 0.0) out.moved += moved[k] * std::abs(weight);
      out.acc.abs_sum += std::abs(values[k] * weight);
    }
    out.acc.running_sum += std::abs(out.acc.value) + out.moved;
    if (h.scales.empty()) continue;
    const double scale = h.scales[static_cast<size_t>(row * (h.cols / kSfVec) + block)];
    out.acc.scale_product = std::max(
        out.acc.scale_product, std::max(scale, kLeastScale) *
                                   std::max(down.scales[static_cast<size_t>(block)], kLeastScale));
  }
  out.acc.abs_sum += out.moved;
  return out;
}

double load(DataType type, const void* data, int64_t index) {
  switch (type) {
    case DataType::kF16:
      return decode_f16(static_cast<const uint16_t*>(data)[index]);
    case DataType::kBF16:
      return decode_bf16(static_cast<const uint16_t*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

// What an element of Y should be, and what is accepted.
struct Wanted {
  double expected, lowest, highest;
};

// row_scale: of H, by which the sum is multiplied beside alpha.
Wanted wanted(const Product& product, const MlpProblem& problem, double alpha_alone,
              double row_scale, double bias, double residual,
              reference::Accumulation accumulation) {
  const int64_t k = problem.intermediate;
  const double alpha = alpha_alone * row_scale;
  const double scaled = alpha * product.acc.value;
  // The additions of this file, in double.
  const double own = static_cast<double>(2 * k) * 0x1p-52 * product.acc.abs_sum;
  double error = std::abs(alpha) *
                 (product.moved + own + reference::accumulator_error(product.acc, k, accumulation));
  error += (row_scale == 1.0 ? 3.0 : 4.0) * kRound * (std::abs(scaled) + error) +
           kTiny * (1.0 + std::abs(product.acc.value)) * (1.0 + std::abs(alpha));
  double value = scaled;
  for (const double addend : {bias, residual}) {  // one FP32 addition each
    if (addend == 0.0) continue;
    value += addend;
    error += kRound * (std::abs(value) + error) + kTiny;
  }
  if (std::isfinite(value) && std::isnan(error)) error = HUGE_VAL;
  if (!std::isfinite(value)) error = 0.0;
  return {value, rounded_to(problem.y.type, value - error),
          rounded_to(problem.y.type, value + error)};
}

struct Judged {
  double share = 0.0, actual = 0.0;
  Wanted wanted{};
  bool good = true;
};

Judged judge(double actual, const Wanted& wanted) {
  Judged out{0.0, actual, wanted, true};
  if (std::isnan(wanted.expected)) {
    out.good = std::isnan(actual);
  } else {
    out.good = (wanted.lowest <= actual && actual <= wanted.highest) ||
               (std::isinf(wanted.highest) && std::isinf(wanted.lowest) &&
                wanted.highest != wanted.lowest);  // H may be anything, so Y may be, too
  }
  if (!out.good) out.share = HUGE_VAL;
  const double room =
      actual > wanted.expected ? wanted.highest - wanted.expected : wanted.expected - wanted.lowest;
  const double share = std::abs(actual - wanted.expected) / room;
  if (share > 0.0 && std::isfinite(share)) out.share = out.good ? std::min(share, 1.0) : share;
  return out;
}

class Checker {
 public:
  Checker(const MlpProblem& problem, const MlpBuffers& buffers, Isa gate_up, Isa down)
      : problem_(problem),
        buffers_(buffers),
        gate_up_(core::resolve(api::gate_up_problem_of(problem))),
        down_(core::resolve(problem.down, problem.hidden, problem.intermediate)),
        y_(core::resolve(problem.y, problem.m, problem.hidden)),
        first_(reference::accumulation_of(gate_up_.problem, gate_up)),
        second_(reference::accumulation_of(second_problem(problem), down)) {}

  Expected<CheckReport> run() {
    Plan same;  // only its problem counts: the products themselves need no workspace here
    same.problem = gate_up_.problem;
    const api::MlpWorkspace places = api::workspace_of(problem_, same, Plan());
    Expected<AlignedBytes> memory = allocate_filled(places.bytes, 0);
    if (!memory) return memory.status();
    if (problem_.quantize_x && problem_.m > 0) {
      DUALGEMM_TRY(quantize(api::quantize_problem_of(problem_),
                            api::quantize_buffers_of(problem_, buffers_, places, memory->data())));
    }
    if (api::stores_x(problem_) && problem_.m > 0) {
      DUALGEMM_TRY(transform_rows(api::transform_x_problem_of(problem_),
                                  api::transform_x_buffers_of(buffers_, places, memory->data())));
    }
    if (api::is_routed(problem_)) {
      DUALGEMM_TRY(
          route_tokens(api::routing_problem_of(problem_),
                       api::routing_buffers_of(problem_, buffers_, places, memory->data())));
    }
    const Buffers first = api::gate_up_buffers_of(problem_, buffers_, places, memory->data());
    CheckReport report = empty_report();
    rows_.resize(api::is_routed(problem_)
                     ? static_cast<size_t>(api::product_rows(problem_) * problem_.hidden)
                     : 0);
    core::RowGroups groups(gate_up_.problem, first);
    for (core::RowGroup group; groups.next(group);) {
      if (group.rows > 0) check_group(read_h(first, group), group, report);
    }
    if (api::is_routed(problem_)) {
      check_tokens(api::routing_buffers_of(problem_, buffers_, places, memory->data()).places,
                   report);
    }
    return report;
  }

 private:
  // As far as the order of additions depends on it.
  static Problem second_problem(const MlpProblem& problem) {
    Problem second;
    second.a = api::down_problem_of(problem).a;
    return second;
  }

  // H as the second product reads it.
  StoredH read_h(const Buffers& first, const core::RowGroup& group) const {
    StoredH h = stored_h(gate_up_, first, group, first_);
    if (problem_.h_transform.any())
      transform_h(problem_.h_transform, buffers_.h_column_factors, problem_.x.type, h);
    if (api::quantizes_h_apart(problem_)) quantize_rows_of_h(h);
    return h;
  }

  int64_t batches() const {
    return api::product_grouping(problem_) == Grouping::kContiguous ? 1 : problem_.l;
  }
  int64_t map_rows_of_batch() const { return (problem_.m + kMapTile - 1) / kMapTile; }

  CheckReport empty_report() const {
    CheckReport report;
    report.map_rows = map_rows_of_batch() * batches();
    report.map_cols = (problem_.hidden + kMapTile - 1) / kMapTile;
    report.map.assign(static_cast<size_t>(report.map_rows * report.map_cols),
                      TileState::kNotCompared);
    return report;
  }

  double bias_at(int64_t batch, int64_t col) const {
    const int64_t index = batch * problem_.hidden + col;
    switch (problem_.bias) {
      case BiasType::kF32:
        return static_cast<const float*>(buffers_.bias_down)[index];
      case BiasType::kBF16:
        return load(DataType::kBF16, buffers_.bias_down, index);
      case BiasType::kNone:
        break;
    }
    return 0.0;
  }

  // What a token's sum should be: places of its rows; the weights are the combination's.
  Wanted sum_of(const int32_t* places, int64_t token, int64_t col, double residual) const {
    double value = 0.0, lowest = 0.0, highest = 0.0, magnitude = 0.0;
    const int64_t top_k = problem_.top_k;
    for (int64_t index = token * top_k; index < (token + 1) * top_k; ++index) {
      if (places[index] < 0) continue;
      const Wanted& row = rows_[static_cast<size_t>(places[index] * problem_.hidden + col)];
      const double weight = problem_.weights_on_input || buffers_.topk_weights == nullptr
                                ? 1.0
                                : load(problem_.weights_type, buffers_.topk_weights, index);
      value += weight * row.expected;
      lowest += std::min(weight * row.lowest, weight * row.highest);
      highest += std::max(weight * row.lowest, weight * row.highest);
      magnitude += std::abs(weight) * std::max(std::abs(row.lowest), std::abs(row.highest));
    }
    magnitude += std::abs(residual);
    // A rounding of each product, and of each sum, which is at most the magnitudes'.
    const double error = static_cast<double>(2 * top_k + 2) * (kRound * magnitude + kTiny);
    return {value + residual, rounded_to(problem_.y.type, lowest + residual - error),
            rounded_to(problem_.y.type, highest + residual + error)};
  }

  void check_tokens(const int32_t* places, CheckReport& report) const {
    const core::RowGroup all{0, 0, problem_.m, 0, 0, 0};
    for (int64_t token = 0; token < problem_.m; ++token) {
      for (int64_t col = 0; col < problem_.hidden; ++col) {
        const int64_t at = offset(all, token, col);
        const double residual = problem_.residual ? load(problem_.y.type, residual_, at) : 0.0;
        count(judge(load(problem_.y.type, buffers_.y, at), sum_of(places, token, col, residual)),
              all, token, col, report);
      }
    }
  }

  void check_group(const StoredH& h, const core::RowGroup& group, CheckReport& report) {
    const int64_t hidden = problem_.hidden;
    std::vector<Judged> judged(static_cast<size_t>(group.rows * hidden));
    const double alpha = buffers_.alpha_down_per_batch != nullptr
                             ? buffers_.alpha_down_per_batch[group.batch]
                             : buffers_.alpha_down;
    core::Team team(measure::threads_or_default(0));
    std::vector<WeightRow> decoded(static_cast<size_t>(team.threads()));
    measure::parallel_for(team, hidden, [&](int64_t col, int seat) {
      WeightRow& weights = decoded[static_cast<size_t>(seat)];
      decode_row(down_, buffers_.down, buffers_.down_scales, group.batch, col, weights);
      const double bias = bias_at(group.batch, col);
      for (int64_t row = 0; row < group.rows; ++row) {
        const double row_scale =
            h.row_scales.empty() ? 1.0 : h.row_scales[static_cast<size_t>(row)];
        if (!rows_.empty()) {
          rows_[static_cast<size_t>((group.row_begin + row) * hidden + col)] =
              wanted(product_of(h, row, weights), problem_, alpha, row_scale, bias, 0.0, second_);
          continue;
        }
        const int64_t at = offset(group, row, col);
        const double residual = problem_.residual ? load(problem_.y.type, residual_, at) : 0.0;
        judged[static_cast<size_t>(row * hidden + col)] =
            judge(load(problem_.y.type, buffers_.y, at),
                  wanted(product_of(h, row, weights), problem_, alpha, row_scale, bias, residual,
                         second_));
      }
    });
    if (!rows_.empty()) return;
    for (int64_t i = 0; i < group.rows * hidden; ++i)
      count(judged[static_cast<size_t>(i)], group, i / hidden, i % hidden, report);
  }

  int64_t offset(const core::RowGroup& group, int64_t row, int64_t col) const {
    return group.a_batch * y_.batch_stride + (group.row_begin + row) * y_.ld + col;
  }

  void count(const Judged& one, const core::RowGroup& group, int64_t group_row, int64_t col,
             CheckReport& report) const {
    const int64_t row = group.row_begin + group_row;
    const int64_t map_row = group.a_batch * map_rows_of_batch() + row / kMapTile;
    TileState& state = report.map[static_cast<size_t>(map_row * report.map_cols + col / kMapTile)];
    state = std::max(state, one.good ? TileState::kRight : TileState::kWrong);
    report.failed += one.good ? 0 : 1;
    if (++report.compared > 1 && one.share <= report.worst_share) return;
    report.worst_share = one.share;
    report.worst_batch = group.batch;
    report.worst_row = row;
    report.worst_col = col;
    report.actual = one.actual;
    report.expected = one.wanted.expected;
    report.lowest = one.wanted.lowest;
    report.highest = one.wanted.highest;
  }

  const MlpProblem& problem_;
  const MlpBuffers& buffers_;
  const core::ResolvedProblem gate_up_;
  const core::ResolvedMatrix down_, y_;
  const reference::Accumulation first_, second_;
  const void* const residual_ = buffers_.residual;
  std::vector<Wanted> rows_;  // of Down, where tokens are sums of them
};

}  // namespace

Expected<CheckReport> check_mlp(const MlpProblem& problem, const MlpBuffers& buffers, Isa gate_up,
                                Isa down) {
  MlpBuffers raw = buffers;
  raw.prepared_gate_up = raw.prepared_down = nullptr;
  DUALGEMM_TRY(api::check_problem(problem));
  DUALGEMM_TRY(api::check_arrays(problem, raw, false, nullptr, 0));
  if (problem.residual && raw.residual == raw.y) {
    return Status::invalid("residual", "is y",
                           "must be what was added, which the run has replaced");
  }
  return Checker(problem, raw, gate_up, down).run();
}

}  // namespace dualgemm::verify
