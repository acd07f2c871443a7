#include "tools/checkpoint_jobs/layer_problem.hpp"

#include <cstring>
#include <optional>

#include "checkpoint/linear_layers.hpp"
#include "core/problem.hpp"
#include "dualgemm/formats.hpp"
#include "tools/checkpoint_jobs/activation_file.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"

namespace dualgemm::checkpoint {
namespace {

Status load_weights(const LayerSource& source, LayerProblem& out) {
  Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(source.weights);
  if (!file) return file.status();
  const Expected<std::string> prefix = choose_prefix(*file, source);
  if (!prefix) return prefix.status();
  checkpoint::LayerOptions options;
  options.stacked_order = source.stacked_order;
  options.max_input_scale = source.max_input_scale;
  options.expert = source.expert;
  options.weight.allow_nan = source.allow_nan;
  options.pre_quant_scale = options.rotates = true;
  const Expected<ModelQuantization> said = quantization_beside(*file);
  if (!said) return said.status();
  options.quantization = &*said;
  Expected<checkpoint::MlpLayer> layer = checkpoint::load_mlp_layer(*file, *prefix, options);
  if (!layer) return layer.status();
  DUALGEMM_TRY(check_runnable(*layer));
  DUALGEMM_TRY(checkpoint::make_runnable(*layer));
  out.prefix = *prefix;
  out.layer = *std::move(layer);
  return {};
}

Expected<verify::AlignedBytes> copy_of(const void* data, size_t size) {
  Expected<verify::AlignedBytes> copy = verify::allocate_filled(static_cast<int64_t>(size), 0);
  if (copy && size > 0) std::memcpy(copy->data(), data, size);
  return copy;
}

// Rounds through FP32, once.
Status convert_floats(const checkpoint::TensorView& tensor, DataType type,
                      verify::AlignedBytes& out) {
  const Expected<std::vector<float>> values = checkpoint::decode_to_f32(tensor);
  if (!values) return values.status();
  Expected<verify::AlignedBytes> memory =
      verify::allocate_filled(core::bytes_of(type, static_cast<int64_t>(values->size())), 0);
  if (!memory) return memory.status();
  for (size_t i = 0; i < values->size(); ++i) {
    const float value = (*values)[i];
    if (type == DataType::kF32) reinterpret_cast<float*>(memory->data())[i] = value;
    if (type == DataType::kF16) reinterpret_cast<uint16_t*>(memory->data())[i] = encode_f16(value);
    if (type == DataType::kBF16)
      reinterpret_cast<uint16_t*>(memory->data())[i] = encode_bf16(value);
  }
  out = *std::move(memory);
  return {};
}

// Float values of the file in `type`: as they are, or rounded to it.
Status load_floats(const checkpoint::TensorView& tensor, DataType type, LayerProblem& out) {
  if (float_type(tensor.dtype) == type) {
    Expected<verify::AlignedBytes> copy = copy_of(tensor.data.data(), tensor.data.size());
    if (!copy) return copy.status();
    out.a = *std::move(copy);
    return {};
  }
  // F32 holds every F16 and BF16; neither of these two holds the other.
  const bool exact = type == DataType::kF32 && float_type(tensor.dtype).has_value();
  out.notes.push_back(std::string("activations ") + (exact ? "widened" : "rounded") + " from " +
                      checkpoint::name_of(tensor.dtype) + " to " + name_of(type));
  return convert_floats(tensor, type, out.a);
}

// Returns the global scale of A.
Expected<float> quantize_activations(const checkpoint::TensorView& tensor, const Problem& problem,
                                     int threads, LayerProblem& out) {
  const DataType type = float_type(tensor.dtype).value_or(DataType::kF32);
  LayerProblem values;
  DUALGEMM_TRY(load_floats(tensor, type, values));
  const core::ResolvedProblem resolved = core::resolve(problem);
  Expected<verify::AlignedBytes> codes = verify::allocate_filled(resolved.a.data_span_bytes(1), 0);
  if (!codes) return codes.status();
  Expected<verify::AlignedBytes> scales =
      verify::allocate_filled(resolved.a.scale_span_bytes(1), 0);
  if (!scales) return scales.status();
  QuantizeOptions options;
  options.scale_layout = problem.a.scale_layout;
  options.threads = threads;
  options.global_scale = out.layer.dequant_input_scale.value_or(0.0f);
  const Expected<float> global = quantize_nvfp4(values.a.data(), type, problem.m, problem.k, 0,
                                                codes->data(), 0, scales->data(), options);
  if (!global) {
    const Status& why = global.status();
    return Status::error(
        why.code(),
        out.activation_file.origin() + ", tensor '" + tensor.name + "', " + why.argument(),
        why.observed(), why.rule());
  }
  if (out.layer.unwritten_input_scale)
    out.notes.push_back("the checkpoint's input scale is 0 or NaN: it is not used");
  out.notes.push_back(std::string("activations quantised from ") + name_of(type) + " with " +
                      (out.layer.dequant_input_scale ? "the checkpoint's input scale "
                                                     : "their own amax, global scale ") +
                      std::to_string(*global));
  out.a = *std::move(codes);
  out.a_scales = *std::move(scales);
  return *global;
}

// Rows and columns of [..., K].
Status set_token_shape(const checkpoint::TensorView& tensor, Problem& problem) {
  if (tensor.shape.empty() || tensor.elements() == 0) {
    return Status::invalid(tensor.name, checkpoint::format_shape(tensor.shape),
                           "activations must be [..., K], not empty");
  }
  problem.k = tensor.shape.back();
  problem.m = tensor.elements() / problem.k;
  return {};
}

Status check_k(int64_t activations_k, const LayerProblem& out, const std::string& name) {
  if (activations_k == out.layer.k) return {};
  return Status::invalid(name, std::to_string(activations_k) + " columns",
                         "must have the layer's K of " + std::to_string(out.layer.k));
}

// Returns the global scale of A.
Expected<float> take_nvfp4_activations(const ActivationFile& from, LayerProblem& out) {
  if (out.problem.a.type != DataType::kE2M1)
    return Status::unsupported(from.name, "NVFP4 activations", "need a of type e2m1");
  DUALGEMM_TRY(check_k(from.nvfp4->k, out, from.name));
  Expected<CodedActivations> coded = take_codes(*from.nvfp4, std::nullopt);
  if (!coded) return coded.status();
  const Expected<float> global = one_global_scale(*coded, from.name);
  if (!global) return global;
  out.problem.m = coded->rows;
  out.problem.k = coded->k;
  out.problem.a.scale_layout = coded->scale_layout;
  out.a = std::move(coded->codes);
  out.a_scales = std::move(coded->scales);
  out.notes.push_back("activations are NVFP4 already");
  return global;
}

// Fills a, a_scales, m and k. Returns the global scale of a (1 for float activations).
Expected<float> load_activations(const LayerSource& source, int threads, LayerProblem& out) {
  Expected<ActivationFile> from = open_activations(source);
  if (!from) return from.status();
  if (!from->nvfp4) {
    DUALGEMM_TRY(set_token_shape(from->values, out.problem));
    DUALGEMM_TRY(check_k(out.problem.k, out, from->name));
  }
  const int64_t first_row = 0;
  DUALGEMM_TRY(transform_columns({&out.layer.pre_quant_scale, 1}, {&first_row, 1},
                                 out.layer.hadamard, *from, out.notes));
  out.activation_file = from->file;
  if (from->nvfp4) return take_nvfp4_activations(*from, out);
  if (out.problem.a.type == DataType::kE2M1)
    return quantize_activations(from->values, out.problem, threads, out);
  DUALGEMM_TRY(load_floats(from->values, out.problem.a.type, out));
  return 1.0f;
}

}  // namespace

Expected<std::string> choose_prefix(const TensorFile& file, const LayerSource& source) {
  if (!source.prefix.empty()) return source.prefix;
  std::vector<std::string> prefixes;
  if (source.expert) {
    prefixes = list_expert_layers(file);
  } else {
    for (const LayerEntry& entry : list_mlp_layers(file)) prefixes.push_back(entry.prefix);
  }
  if (prefixes.size() == 1) return prefixes.front();
  std::string names;
  for (size_t i = 0; i < prefixes.size() && i < 5; ++i) names += (i ? ", " : "") + prefixes[i];
  if (prefixes.size() > 5) names += ", ...";
  const char* kind = source.expert ? " layers with experts in " : " layers in ";
  return Status::error(StatusCode::kNotFound, "prefix",
                       std::to_string(prefixes.size()) + kind + file.origin(),
                       prefixes.empty() ? "needs gate_proj and up_proj, w1 and w3, or gate_up_proj"
                                        : "name one of: " + names);
}

Status check_no_bias_wanted(const Problem& request) {
  if (request.bias == BiasType::kNone) return {};
  return Status::invalid("bias", name_of(request.bias),
                         "must not be given for a checkpoint's layer, which brings its own");
}

Expected<LayerProblem> open_layer_problem(const LayerSource& source, const Problem& request,
                                          int threads) {
  DUALGEMM_TRY(check_no_bias_wanted(request));
  LayerProblem out;
  DUALGEMM_TRY(load_weights(source, out));
  out.problem = request;
  out.problem.l = 1;
  out.problem.n = out.layer.n;
  out.problem.gate.scale_layout = out.problem.up.scale_layout = out.layer.scale_layout;
  if (!out.layer.gate_bias.empty()) {
    out.problem.bias = BiasType::kF32;
    out.buffers.bias_gate = out.layer.gate_bias.data();
    out.buffers.bias_up = out.layer.up_bias.data();
    out.notes.push_back("Gate and Up have a bias");
  }
  const Expected<float> a_global = load_activations(source, threads, out);
  if (!a_global) return a_global.status();

  out.buffers.a = out.a.data();
  out.buffers.a_scales = out.problem.a.type == DataType::kE2M1 ? out.a_scales.data() : nullptr;
  out.buffers.gate = out.layer.gate.codes();
  out.buffers.gate_scales = out.layer.gate.scales.data();
  out.buffers.up = out.layer.up.codes();
  out.buffers.up_scales = out.layer.up.scales.data();
  out.buffers.alpha_gate = *a_global * out.layer.gate.dequant_global_scale;
  out.buffers.alpha_up = *a_global * out.layer.up.dequant_global_scale;
  return out;
}

Expected<checkpoint::TensorFile> output_tensors(const Problem& problem,
                                                const verify::Output& output,
                                                const std::string& name) {
  if (problem.l != 1)
    return Status::unsupported("l", std::to_string(problem.l), "one batch can be written");
  checkpoint::TensorFile file;
  const auto bytes = [](const verify::AlignedBytes& memory) {
    return std::span(reinterpret_cast<const std::byte*>(memory.data()),
                     static_cast<size_t>(memory.size()));
  };
  if (problem.d.type == DataType::kE2M1) {
    checkpoint::Weight weight;
    weight.convention = checkpoint::Convention::kModelOpt;
    weight.type = DataType::kE2M1;
    weight.n = problem.m;
    weight.k = problem.n;
    weight.data = bytes(output.d);
    weight.scales = {output.d_scales.data(), static_cast<size_t>(output.d_scales.size())};
    weight.scale_layout = problem.d.scale_layout;
    weight.dequant_global_scales = {output.d_global_scale};
    DUALGEMM_TRY(checkpoint::add_weight(file, name, weight));
    return file;
  }
  checkpoint::TensorView view;
  view.name = name;
  view.dtype = element_type(problem.d.type);
  view.shape = {problem.m, problem.n};
  view.data = bytes(output.d);
  DUALGEMM_TRY(file.add(view));
  return file;
}

}  // namespace dualgemm::checkpoint
