#include "api/mlp_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "api/backend.hpp"
#include "api/mlp_parts.hpp"
#include "core/enum_table.hpp"
#include "core/memory_range.hpp"
#include "core/problem.hpp"
#include "core/row_transform.hpp"
#include "core/validate.hpp"

namespace dualgemm::api {
namespace {

using core::MemoryRange;

Status check_columns(const char* name, int64_t columns) {
  if (columns >= kSfVec && columns % kSfVec == 0) return {};
  return Status::invalid(name, std::to_string(columns), "must be a positive multiple of 16");
}

Status check_type(const char* name, DataType type, std::initializer_list<DataType> legal,
                  const char* rule) {
  DUALGEMM_TRY(core::check_enumerator(name, type));
  for (const DataType one : legal) {
    if (type == one) return {};
  }
  return Status::invalid(name, name_of(type), rule);
}

bool is_given(GlobalScaling scaling) {
  return scaling == GlobalScaling::kGiven || scaling == GlobalScaling::kGivenPerBatch;
}

// All that run() touches, by the names of MlpBuffers.
struct Arrays {
  std::vector<MemoryRange> read;
  MemoryRange residual, y;
};

Arrays arrays_of(const MlpProblem& p, const MlpBuffers& b, bool prepared) {
  const core::ResolvedMatrix gate = core::resolve(p.gate, p.intermediate, p.hidden);
  const core::ResolvedMatrix up = core::resolve(p.up, p.intermediate, p.hidden);
  const core::ResolvedQuantize x = core::resolve(quantize_problem_of(p));
  const bool routed = is_routed(p);
  const bool contiguous = p.grouping == Grouping::kContiguous;
  const bool masked = p.grouping == Grouping::kMasked;
  const int64_t batches = contiguous || routed ? 1 : p.l;
  const core::ResolvedMatrix down = core::resolve(p.down, p.hidden, p.intermediate);
  const core::ResolvedMatrix y = core::resolve(p.y, p.m, p.hidden);

  const auto required = [](const char* name, const void* data, int64_t bytes, int64_t alignment) {
    return MemoryRange{name, data, bytes, alignment, true};
  };
  const auto optional = [](const char* name, const void* data, int64_t count) {
    return MemoryRange{name, data, count * 4, 4, false};
  };
  // Weights that are prepared may have been freed.
  const auto weight = [&](const char* name, const void* data, int64_t bytes,
                          const PreparedView* view) {
    const bool raw = !prepared && view == nullptr;
    return MemoryRange{name, raw ? data : nullptr, bytes, 1, raw};
  };
  const auto view_of = [](const char* name, const PreparedView* view) {
    if (view == nullptr) return MemoryRange{name, nullptr, 0, 1, false};
    return MemoryRange{name, view->memory, view->descriptor.bytes, 1, true};
  };
  const int64_t bias_bytes = core::bytes_of(p.bias);
  const auto bias = [&](const char* name, const void* data, int64_t columns) {
    if (bias_bytes == 0) return MemoryRange{name, nullptr, 0, 1, false};
    return MemoryRange{name, data, p.l * columns * bias_bytes, bias_bytes, true};
  };
  const auto factors = [](const char* name, const float* data, int64_t columns,
                          const RowTransform& transform) {
    if (!transform.factors) return MemoryRange{name, nullptr, 0, 4, false};
    return MemoryRange{name, data, columns * 4, 4, true};
  };
  const auto of_gate = [&](const MemoryRange& range) {
    return p.gated ? range : MemoryRange{range.name, nullptr, 0, 1, false};
  };
  const bool given = p.quantize_x && is_given(p.x_scaling);
  const int64_t scales = given ? core::sizes_of(x).global_scale : 0;
  const int64_t y_bytes = y.data_span_bytes(batches);
  const int64_t y_alignment = core::bytes_of(p.y.type, 1);
  const int64_t ids = routed ? product_rows(p) : 0, id_bytes = p.wide_ids ? 8 : 4;
  const int64_t weight_bytes = core::bytes_of(p.weights_type, 1);
  return {
      .read = {required("x", b.x, x.x.data_span_bytes(batches), core::bytes_of(p.x.type, 1)),
               {"x_global_scale", b.x_global_scale, scales, 4, given},
               optional("alpha_gate_per_batch", b.alpha_gate_per_batch, p.l),
               optional("alpha_up_per_batch", b.alpha_up_per_batch, p.l),
               optional("alpha_down_per_batch", b.alpha_down_per_batch, p.l),
               optional("expert_offsets", b.expert_offsets, contiguous ? p.l + 1 : 0),
               {"expert_rows", b.expert_rows, masked ? p.l * 4 : 0, 4, masked},
               optional("row_experts", b.row_experts, contiguous ? p.m : 0),
               {"topk_ids", b.topk_ids, ids * id_bytes, id_bytes, routed},
               {"expert_map", b.expert_map, p.named_experts * 4, 4, p.named_experts > 0},
               {"topk_weights", b.topk_weights, ids * weight_bytes, weight_bytes, false},
               of_gate(weight("gate", b.gate, gate.data_span_bytes(p.l), b.prepared_gate_up)),
               of_gate(weight("gate_scales", b.gate_scales, gate.scale_span_bytes(p.l),
                              b.prepared_gate_up)),
               weight("up", b.up, up.data_span_bytes(p.l), b.prepared_gate_up),
               weight("up_scales", b.up_scales, up.scale_span_bytes(p.l), b.prepared_gate_up),
               weight("down", b.down, down.data_span_bytes(p.l), b.prepared_down),
               weight("down_scales", b.down_scales, down.scale_span_bytes(p.l), b.prepared_down),
               view_of("prepared_gate_up", b.prepared_gate_up),
               view_of("prepared_down", b.prepared_down),
               of_gate(bias("bias_gate", b.bias_gate, p.intermediate)),
               bias("bias_up", b.bias_up, p.intermediate),
               factors("x_column_factors", b.x_column_factors, p.hidden, p.x_transform),
               factors("h_column_factors", b.h_column_factors, p.intermediate, p.h_transform),
               bias("bias_down", b.bias_down, p.hidden)},
      .residual = {"residual", b.residual, p.residual ? y_bytes : 0, y_alignment, p.residual},
      .y = required("y", b.y, y_bytes, y_alignment)};
}

Status check_absent_arrays(const MlpProblem& p, const MlpBuffers& b) {
  if (!p.quantize_x || !is_given(p.x_scaling)) {
    DUALGEMM_TRY(core::check_absent("x_global_scale", b.x_global_scale,
                                    "must be null: x has no scale that is given"));
  }
  if (!p.gated) {
    for (const auto& [name, data] : {std::pair<const char*, const void*>{"gate", b.gate},
                                     {"gate_scales", b.gate_scales},
                                     {"alpha_gate_per_batch", b.alpha_gate_per_batch},
                                     {"bias_gate", b.bias_gate}})
      DUALGEMM_TRY(core::check_absent(name, data, "must be null: the MLP has no gate"));
  }
  for (const auto& [name, data, transform] :
       {std::tuple{"x_column_factors", b.x_column_factors, p.x_transform},
        {"h_column_factors", b.h_column_factors, p.h_transform}}) {
    if (transform.factors) continue;
    DUALGEMM_TRY(core::check_absent(name, data, "must be null: the transform has no factors"));
  }
  if (!is_routed(p)) {
    for (const auto& [name, data] : {std::pair<const char*, const void*>{"topk_ids", b.topk_ids},
                                     {"topk_weights", b.topk_weights}})
      DUALGEMM_TRY(core::check_absent(name, data, "must be null: the problem's top_k is 0"));
  }
  if (p.named_experts == 0) {
    DUALGEMM_TRY(core::check_absent("expert_map", b.expert_map,
                                    "must be null: the problem's named_experts is 0"));
  }
  if (is_routed(p) || p.grouping != Grouping::kContiguous) {
    const char* const rule = "must be null unless grouping is contiguous";
    DUALGEMM_TRY(core::check_absent("expert_offsets", b.expert_offsets, rule));
    DUALGEMM_TRY(core::check_absent("row_experts", b.row_experts, rule));
  }
  if (p.bias == BiasType::kNone) {
    for (const auto& [name, data] :
         {std::pair{"bias_gate", b.bias_gate}, {"bias_up", b.bias_up}, {"bias_down", b.bias_down}})
      DUALGEMM_TRY(core::check_absent(name, data, "must be null: the problem's bias is none"));
  }
  if (p.residual) return {};
  return core::check_absent("residual", b.residual, "must be null: the problem has no residual");
}

}  // namespace

Status renamed(const Status& status, std::initializer_list<Renamed> words) {
  if (status.ok()) return status;
  const std::string from = status.argument();
  std::string to;
  for (size_t begin = 0, end = 0; begin < from.size(); begin = end) {
    const auto in_word = [&](size_t i) {
      return i < from.size() && std::isalnum(static_cast<unsigned char>(from[i])) != 0;
    };
    while (in_word(end)) ++end;
    std::string_view word(from.data() + begin, end - begin);
    for (const Renamed& one : words) {
      if (word != one.from) continue;
      word = one.to;
      break;
    }
    to += word;
    while (end < from.size() && !in_word(end)) to += from[end++];
  }
  return Status::error(status.code(), to, status.observed(), status.rule());
}

namespace {

// The rules of a mixture's experts, or that nothing is said of them.
Status check_routing(const MlpProblem& problem) {
  if (problem.top_k < 0)
    return Status::invalid("top_k", std::to_string(problem.top_k), "must not be negative");
  if (!is_routed(problem)) {
    const bool plain = problem.named_experts == 0 && !problem.wide_ids &&
                       problem.weights_type == DataType::kF32 && !problem.weights_on_input;
    return plain ? Status()
                 : Status::invalid("top_k", "0",
                                   "must be positive beside named_experts, wide_ids, weights_type "
                                   "or weights_on_input");
  }
  if (problem.grouping != Grouping::kNone) {
    return Status::invalid("grouping", name_of(problem.grouping),
                           "must be none where ids say which experts a row gets (top_k)");
  }
  if (problem.quantize_x && problem.x_scaling == GlobalScaling::kGivenPerBatch) {
    return Status::invalid("x_scaling", name_of(problem.x_scaling),
                           "must be row or given: a token is quantised once for all its experts");
  }
  if (problem.l < 1) return Status::invalid("l", std::to_string(problem.l), "must be at least 1");
  DUALGEMM_TRY(renamed(validate(routing_problem_of(problem)), {{"tokens", "m"}}));
  return renamed(validate(combine_problem_of(problem)), {{"tokens", "m"}, {"cols", "hidden"}});
}

// For rules of what is made of at least one row.
MlpProblem with_a_token(MlpProblem problem) {
  if (is_routed(problem)) problem.m = std::max<int64_t>(problem.m, 1);
  return problem;
}

}  // namespace

Status check_problem(const MlpProblem& given) {
  const MlpProblem problem = with_a_token(given);
  if (is_routed(given) && given.m < 0)
    return Status::invalid("m", std::to_string(given.m), "must not be negative");
  DUALGEMM_TRY(check_columns("hidden", problem.hidden));
  DUALGEMM_TRY(check_columns("intermediate", problem.intermediate));
  DUALGEMM_TRY(check_type("x.type", problem.x.type,
                          {DataType::kF16, DataType::kBF16, DataType::kF32},
                          "must be f16, bf16 or f32"));
  DUALGEMM_TRY(check_type("y.type", problem.y.type,
                          {DataType::kF16, DataType::kBF16, DataType::kF32},
                          "must be f16, bf16 or f32"));
  DUALGEMM_TRY(core::check_enumerator("x_scaling", problem.x_scaling));
  if (problem.x_scaling == GlobalScaling::kTensor) {
    return Status::invalid("x_scaling", name_of(problem.x_scaling),
                           "must be row, given or given_per_batch");
  }
  DUALGEMM_TRY(core::check_enumerator("h_scaling", problem.h_scaling));
  if (problem.h_scaling != GlobalScaling::kGiven && problem.h_scaling != GlobalScaling::kRow) {
    return Status::invalid("h_scaling", name_of(problem.h_scaling), "must be given or row");
  }
  DUALGEMM_TRY(check_routing(problem));
  DUALGEMM_TRY(renamed(validate(quantize_problem_of(problem)),
                       {{"rows", "m"}, {"cols", "hidden"}, {"transform", "x_transform"}}));
  DUALGEMM_TRY(core::check_transform("h_transform", problem.h_transform, problem.intermediate));
  if (problem.gated) {
    DUALGEMM_TRY(renamed(validate(gate_up_problem_of(problem)),
                         {{"n", "intermediate"}, {"k", "hidden"}, {"a", "x"}, {"d", "h"}}));
  } else {
    if (!(problem.gate == Matrix{}))
      return Status::invalid("gate", "a layout", "must be the default: the MLP has no gate");
    DUALGEMM_TRY(
        renamed(dual_problem(up_problem_of(problem)).status(),
                {{"n", "intermediate"}, {"k", "hidden"}, {"a", "x"}, {"w", "up"}, {"d", "h"}}));
  }
  return renamed(dual_problem(down_problem_of(problem)).status(),
                 {{"n", "hidden"}, {"k", "intermediate"}, {"a", "h"}, {"w", "down"}, {"d", "y"}});
}

Status check_arrays(const MlpProblem& problem, const MlpBuffers& buffers, bool prepared,
                    const void* workspace, int64_t workspace_bytes) {
  DUALGEMM_TRY(check_absent_arrays(problem, buffers));
  const float h_scale = buffers.h_global_scale;
  if (problem.quantize_h && !quantizes_h_apart(problem) &&
      !(std::isfinite(h_scale) && h_scale > 0.0f)) {
    return Status::invalid("h_global_scale", fmt::to_string(h_scale), "must be finite and > 0");
  }
  const Arrays arrays = arrays_of(problem, buffers, prepared);
  const MemoryRange scratch{"workspace", workspace, workspace_bytes, 1, false};
  for (const MemoryRange& range : arrays.read) DUALGEMM_TRY(core::check_range(range));
  for (const MemoryRange& range : {arrays.residual, arrays.y, scratch})
    DUALGEMM_TRY(core::check_range(range));
  for (const MemoryRange& output : {arrays.y, scratch}) {
    for (const MemoryRange& input : arrays.read) DUALGEMM_TRY(core::check_apart(output, input));
  }
  DUALGEMM_TRY(core::check_apart(scratch, arrays.y));
  DUALGEMM_TRY(core::check_apart(scratch, arrays.residual));
  if (buffers.residual == buffers.y) return {};
  return core::check_apart(arrays.y, arrays.residual);
}

Status check_experts(const MlpProblem& problem, const MlpBuffers& buffers) {
  Buffers experts;
  experts.expert_offsets = buffers.expert_offsets;
  experts.expert_rows = buffers.expert_rows;
  experts.row_experts = buffers.row_experts;
  return core::check_groups(gate_up_problem_of(problem), experts, core::GroupArrays::kHost);
}

Status check_places(DeviceKind device, const MlpProblem& problem, const MlpBuffers& buffers,
                    const void* workspace) {
  std::vector<NamedArray> all;
  const Arrays arrays = arrays_of(problem, buffers, false);
  for (const MemoryRange& range : arrays.read) {
    if (range.used()) all.push_back({range.name, range.data});
  }
  if (arrays.residual.used()) all.push_back({"residual", buffers.residual});
  all.push_back({"y", buffers.y});
  all.push_back({"workspace", workspace});
  return backend_of(device).check_arrays(all, buffers.stream);
}

}  // namespace dualgemm::api
