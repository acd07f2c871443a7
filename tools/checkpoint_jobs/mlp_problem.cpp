#include "tools/checkpoint_jobs/mlp_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/guard.hpp"
#include "checkpoint/linear_layers.hpp"
#include "core/problem.hpp"
#include "tools/checkpoint_jobs/activation_file.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/expert_problem.hpp"
#include "tools/checkpoint_jobs/stacked_weights.hpp"
#include "tools/checkpoint_jobs/ungated_layer.hpp"

namespace dualgemm::checkpoint {
namespace {

// One expert, or the layer itself.
struct Projections {
  MlpLayer layer;
  DownProjection down;
  bool gated;
};

// Up, and Gate where there is one.
Expected<MlpLayer> load_first(const TensorFile& file, const std::string& prefix,
                              const std::optional<UngatedModules>& ungated,
                              const LayerOptions& options) {
  if (ungated) return load_ungated_up(file, ungated->up, options);
  Expected<MlpLayer> layer = load_mlp_layer(file, prefix, options);
  if (!layer) return layer;
  DUALGEMM_TRY(check_runnable(*layer));
  DUALGEMM_TRY(make_runnable(*layer));
  return layer;
}

Expected<Projections> load_projections(const TensorFile& file, const std::string& prefix,
                                       const LayerOptions& options) {
  const std::optional<UngatedModules> ungated =
      options.expert ? find_ungated_expert(file, prefix, *options.expert)
                     : find_ungated(file, prefix);
  Expected<MlpLayer> layer = load_first(file, prefix, ungated, options);
  if (!layer) return layer.status();
  LayerOptions alone = options;
  alone.expert.reset();
  Expected<DownProjection> down = ungated ? load_linear(file, ungated->down, alone)
                                          : load_down_projection(file, prefix, options);
  if (!down) return down.status();
  DUALGEMM_TRY(make_runnable(*down));
  if (down->n != layer->k || down->k != layer->n) {
    return Status::error(StatusCode::kCorruptFile, down->down.tensor_name,
                         fmt::format("{} x {}", down->n, down->k),
                         fmt::format("must be {} x {}, as {} {} x {}", layer->k, layer->n,
                                     ungated ? "up is" : "gate and up are", layer->n, layer->k));
  }
  return Projections{*std::move(layer), *std::move(down), !ungated};
}

Status take_weights(const MlpProblem& problem, MlpFromFiles& out) {
  int64_t values = 0, codes = 0;
  if (__builtin_mul_overflow(problem.hidden, problem.intermediate, &values) ||
      __builtin_mul_overflow(values / 2, problem.l, &codes)) {
    return Status::error(StatusCode::kOverflow, out.prefix, fmt::format("{} experts", problem.l),
                         "their size must fit in 64 bits");
  }
  for (verify::AlignedBytes* bytes : {&out.gate, &out.up, &out.down}) {
    if (problem.gated || bytes != &out.gate)
      DUALGEMM_TRY(take_bytes("weights of the layer", codes, *bytes));
  }
  for (verify::AlignedBytes* bytes : {&out.gate_scales, &out.up_scales, &out.down_scales}) {
    if (problem.gated || bytes != &out.gate_scales)
      DUALGEMM_TRY(take_bytes("scales of the layer", codes / 8, *bytes));
  }
  return {};
}

// A bias of one expert behind those of the experts before it; what some experts lack is zeros.
void append_bias(const std::vector<float>& bias, int64_t columns, int64_t expert,
                 std::vector<float>& out) {
  if (bias.empty()) return;
  out.resize(static_cast<size_t>(expert * columns));
  out.insert(out.end(), bias.begin(), bias.end());
}

// Global scales of the activations as the file has them.
struct InputScales {
  std::vector<std::optional<float>> x;
  std::optional<float> h;  // the largest
};

Status append_expert(const Projections& one, int64_t expert, MlpFromFiles& out,
                     InputScales& scales) {
  const auto& [layer, down, gated] = one;
  MlpProblem& problem = out.problem;
  if (expert == 0) {
    problem.gated = gated;
    problem.hidden = layer.k;
    problem.intermediate = layer.n;
    DUALGEMM_TRY(take_weights(problem, out));
  }
  if (layer.n != problem.intermediate || layer.k != problem.hidden) {
    return Status::error(StatusCode::kCorruptFile, layer.up.tensor_name,
                         fmt::format("{} x {}", layer.n, layer.k),
                         "all experts of a layer must have the same shape");
  }
  if (gated != problem.gated) {
    return Status::error(StatusCode::kCorruptFile, layer.up.tensor_name,
                         gated ? "a gate" : "no gate", "all experts of a layer must be alike");
  }
  const MatrixShape first{layer.n, layer.k, layer.scale_layout};
  if (gated) DUALGEMM_TRY(append(layer.gate, first, expert, {&out.gate, &out.gate_scales}));
  DUALGEMM_TRY(append(layer.up, first, expert, {&out.up, &out.up_scales}));
  DUALGEMM_TRY(append(down.down, {down.n, down.k, down.scale_layout}, expert,
                      {&out.down, &out.down_scales}));
  append_bias(layer.gate_bias, layer.n, expert, out.bias_gate);
  append_bias(layer.up_bias, layer.n, expert, out.bias_up);
  append_bias(down.bias, down.n, expert, out.bias_down);
  out.alpha_gate.push_back(layer.gate.dequant_global_scale);
  out.alpha_up.push_back(layer.up.dequant_global_scale);
  out.alpha_down.push_back(down.down.dequant_global_scale);
  scales.x.push_back(layer.dequant_input_scale);
  out.x_factors.push_back(layer.pre_quant_scale);
  DUALGEMM_TRY(check_same_rotation(layer.up.tensor_name, layer.hadamard, expert, out.x_hadamard));
  int64_t& h_hadamard = problem.h_transform.hadamard;
  DUALGEMM_TRY(check_same_rotation(down.down.tensor_name, down.hadamard, expert, h_hadamard));
  if (expert == 0) out.h_factors = down.pre_quant_scale;
  if (out.h_factors != down.pre_quant_scale) {
    return Status::unsupported(down.down.tensor_name, "another pre_quant_scale",
                               "all experts of a layer must have the same for down");
  }
  if (down.dequant_input_scale)
    scales.h = std::max(scales.h.value_or(0.0f), *down.dequant_input_scale);
  return {};
}

void take_biases(MlpFromFiles& out) {
  if (out.bias_gate.empty() && out.bias_up.empty() && out.bias_down.empty()) return;
  const MlpProblem& p = out.problem;
  out.problem.bias = BiasType::kF32;
  if (p.gated) out.bias_gate.resize(static_cast<size_t>(p.l * p.intermediate));
  out.bias_up.resize(static_cast<size_t>(p.l * p.intermediate));
  out.bias_down.resize(static_cast<size_t>(p.l * p.hidden));
  out.notes.push_back("the layer has biases");
}

void take_transform_of_h(MlpFromFiles& out) {
  RowTransform& transform = out.problem.h_transform;
  transform.factors = !out.h_factors.empty();
  if (transform.factors) out.notes.push_back("H multiplied by down's pre_quant_scale");
  if (transform.hadamard != 0) {
    out.notes.push_back(
        fmt::format("H rotated by {} columns, as config.json says", transform.hadamard));
  }
}

// The scales of X and H, into the alphas too.
Status take_input_scales(const InputScales& scales, const MlpRequest& request, MlpFromFiles& out) {
  if (out.problem.quantize_x) {
    const bool given = std::all_of(scales.x.begin(), scales.x.end(),
                                   [](const auto& scale) { return scale.has_value(); });
    out.problem.x_scaling = given ? GlobalScaling::kGivenPerBatch : GlobalScaling::kRow;
    out.notes.push_back(given ? "X quantised with the checkpoint's input scale"
                              : "X quantised with each row's amax: the checkpoint has no input "
                                "scale for it");
    for (size_t i = 0; given && i < scales.x.size(); ++i) {
      out.x_scale.push_back(*scales.x[i]);
      out.alpha_gate[i] *= *scales.x[i];
      out.alpha_up[i] *= *scales.x[i];
    }
  }
  if (!request.quantize_h) return {};
  if (out.problem.h_transform.any()) {  // which leaves H in 16 bits first
    out.notes.push_back("H quantised with each row's amax, behind its transform");
    return {};
  }
  const bool named = request.h_global_scale > 0.0f;
  if (!named && !scales.h) {
    return Status::invalid("--h-global-scale", "not given",
                           "is needed: the checkpoint has no input scale for down");
  }
  const float scale = named ? request.h_global_scale : *scales.h;
  out.buffers.h_global_scale = scale;
  for (float& alpha : out.alpha_down) alpha *= scale;
  out.notes.push_back(fmt::format("H quantised with {}global scale {}",
                                  named ? "" : "the checkpoint's input scale, ", scale));
  return {};
}

Status load_all(const TensorFile& file, const LayerSource& source, const MlpRequest& request,
                MlpFromFiles& out) {
  LayerOptions options;
  options.stacked_order = source.stacked_order;
  options.max_input_scale = source.max_input_scale;
  options.expert = source.expert;
  options.weight.allow_nan = source.allow_nan;
  options.pre_quant_scale = options.rotates = true;
  const Expected<ModelQuantization> said = quantization_beside(file);
  if (!said) return said.status();
  options.quantization = &*said;
  InputScales scales;
  for (int64_t expert = 0; expert < out.problem.l; ++expert) {
    if (request.experts) options.expert = expert;
    const Expected<Projections> one = load_projections(file, out.prefix, options);
    if (!one) return one.status();
    DUALGEMM_TRY(append_expert(*one, expert, out, scales));
  }
  take_biases(out);
  take_transform_of_h(out);
  return take_input_scales(scales, request, out);
}

// M from the activations; rows must add up.
Status take_rows(const ActivationFile& from, const MlpRequest& request, MlpFromFiles& out) {
  const std::vector<int64_t>& shape = from.shape;
  MlpProblem& problem = out.problem;
  const bool fits = request.masked ? shape.size() == 3 && shape[0] == problem.l : !shape.empty();
  if (!fits || from.empty() || shape.back() != problem.hidden) {
    return Status::invalid(
        from.name, format_shape(shape),
        request.masked ? fmt::format("must be [experts, rows, K] = [{}, ..., {}], not empty",
                                     problem.l, problem.hidden)
                       : fmt::format("must be [..., K], K = {}, not empty", problem.hidden));
  }
  problem.m = request.masked ? shape[1] : from.rows();
  if (!request.experts) return {};
  if (problem.m > INT32_MAX) {
    return Status::error(StatusCode::kOverflow, from.name, fmt::format("{} rows", problem.m),
                         "at most 2147483647");
  }
  int64_t sum = 0;
  out.offsets = {0};
  for (const int64_t rows : out.rows) {
    if (request.masked && rows > problem.m) {
      return Status::invalid("--expert-tokens", fmt::format("{} rows for one expert", rows),
                             fmt::format("the activations have {} for each", problem.m));
    }
    sum += rows;
    out.counts.push_back(static_cast<int32_t>(rows));
    out.offsets.push_back(static_cast<int32_t>(std::min<int64_t>(sum, INT32_MAX)));
  }
  if (request.masked || sum == problem.m) return {};
  return Status::invalid("--expert-tokens", fmt::format("{} rows in all", sum),
                         fmt::format("the activations have {}", problem.m));
}

// X that is NVFP4 in the file: its values without their global scales, which 16 bits hold exactly;
// the alphas contain the scales. Products with it are those of the codes.
Status take_nvfp4_x(const ActivationFile& from, const MlpRequest& request, MlpFromFiles& out) {
  Expected<CodedActivations> coded = take_codes(*from.nvfp4, ScaleLayout::kLinear);
  if (!coded) return coded.status();
  MlpProblem& problem = out.problem;
  problem.x.type = request.x_type.value_or(DataType::kBF16);
  Expected<verify::AlignedBytes> values = values_of(*coded, problem.x.type);
  if (!values) return values.status();
  out.x = *std::move(values);
  if (!request.masked) {
    const Expected<float> global = one_global_scale(*coded, from.name);
    if (!global) return global.status();
    coded->global_scales.assign(static_cast<size_t>(problem.l), *global);
  }
  for (size_t i = 0; i < out.alpha_gate.size(); ++i) {
    out.alpha_gate[i] *= coded->global_scales[i];
    out.alpha_up[i] *= coded->global_scales[i];
  }
  out.notes.push_back(fmt::format("X is NVFP4 already: multiplied as {}, which holds it exactly",
                                  dualgemm::name_of(problem.x.type)));
  return {};
}

Status take_float_x(const TensorView& tensor, const MlpRequest& request, MlpFromFiles& out) {
  const Expected<std::vector<float>> values = decode_to_f32(tensor);
  if (!values) return values.status();
  const std::optional<DataType> in_file = float_type(tensor.dtype);
  const DataType usual = in_file == DataType::kF16 ? DataType::kF16 : DataType::kBF16;
  const DataType type = request.x_type.value_or(usual);
  out.problem.x.type = type;
  if (in_file != type) {
    out.notes.push_back(fmt::format("activations rounded from {} to {}", name_of(tensor.dtype),
                                    dualgemm::name_of(type)));
  }
  DUALGEMM_TRY(
      take_bytes("activations", core::bytes_of(type, static_cast<int64_t>(values->size())), out.x));
  auto* const halves = reinterpret_cast<uint16_t*>(out.x.data());
  for (size_t i = 0; i < values->size(); ++i) {
    const float value = (*values)[i];
    halves[i] = type == DataType::kF16 ? encode_f16(value) : encode_bf16(value);
  }
  return {};
}

std::vector<int64_t> first_rows(const MlpRequest& request, const MlpFromFiles& out) {
  std::vector<int64_t> rows;
  for (int64_t expert = 0; expert < out.problem.l; ++expert) {
    const bool contiguous = request.experts && !request.masked;
    rows.push_back(contiguous ? out.offsets[static_cast<size_t>(expert)] : expert * out.problem.m);
  }
  return rows;
}

Status load_x(ActivationFile from, const MlpRequest& request, MlpFromFiles& out) {
  DUALGEMM_TRY(take_rows(from, request, out));
  DUALGEMM_TRY(
      transform_columns(out.x_factors, first_rows(request, out), out.x_hadamard, from, out.notes));
  return from.nvfp4 ? take_nvfp4_x(from, request, out) : take_float_x(from.values, request, out);
}

void attach(MlpFromFiles& out) {
  MlpBuffers& buffers = out.buffers;
  buffers.x = out.x.data();
  if (!out.x_scale.empty()) buffers.x_global_scale = out.x_scale.data();
  const bool gated = out.problem.gated;
  if (gated) buffers.gate = out.gate.data(), buffers.gate_scales = out.gate_scales.data();
  buffers.up = out.up.data();
  buffers.up_scales = out.up_scales.data();
  buffers.down = out.down.data();
  buffers.down_scales = out.down_scales.data();
  if (!out.h_factors.empty()) buffers.h_column_factors = out.h_factors.data();
  if (gated) buffers.alpha_gate_per_batch = out.alpha_gate.data();
  buffers.alpha_up_per_batch = out.alpha_up.data();
  buffers.alpha_down_per_batch = out.alpha_down.data();
  if (out.problem.bias != BiasType::kNone) {
    if (gated) buffers.bias_gate = out.bias_gate.data();
    buffers.bias_up = out.bias_up.data();
    buffers.bias_down = out.bias_down.data();
  }
  if (out.problem.grouping == Grouping::kContiguous) buffers.expert_offsets = out.offsets.data();
  if (out.problem.grouping == Grouping::kMasked) buffers.expert_rows = out.counts.data();
}

}  // namespace

Expected<MlpFromFiles> open_mlp_problem(const LayerSource& source, const MlpRequest& request) {
  return guarded(source.weights, [&]() -> Expected<MlpFromFiles> {
    const Expected<TensorFile> file = TensorFile::open(source.weights);
    if (!file) return file.status();
    Expected<std::string> prefix =
        request.experts ? choose_expert_layer(*file, source.prefix) : choose_prefix(*file, source);
    if (!prefix) return prefix.status();
    MlpFromFiles out;
    out.prefix = *std::move(prefix);
    out.problem.y.type = request.y_type;
    out.problem.act = request.act;
    out.problem.batch_invariant = request.batch_invariant;
    out.problem.quantize_x = request.quantize_x;
    out.problem.quantize_h = request.quantize_h;
    if (request.experts) {
      const int64_t ungated = count_ungated_experts(*file, out.prefix);
      const Expected<int64_t> experts =
          ungated > 0 ? Expected<int64_t>(ungated) : count_experts(*file, out.prefix);
      if (!experts) return experts.status();
      Expected<std::vector<int64_t>> rows = read_expert_rows(request.expert_rows, *experts);
      if (!rows) return rows.status();
      out.rows = *std::move(rows);
      out.problem.l = *experts;
      out.problem.grouping = request.masked ? Grouping::kMasked : Grouping::kContiguous;
    }
    const Expected<ActivationFile> x = open_activations(source);
    if (!x) return x.status();
    if (x->nvfp4) out.problem.quantize_x = false;  // it is quantised
    DUALGEMM_TRY(load_all(*file, source, request, out));
    DUALGEMM_TRY(load_x(*x, request, out));
    attach(out);
    return out;
  });
}

}  // namespace dualgemm::checkpoint
