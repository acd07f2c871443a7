#include "tools/checkpoint_jobs/expert_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/linear_layers.hpp"
#include "checkpoint/mapped_file.hpp"
#include "checkpoint/npy.hpp"
#include "core/problem.hpp"
#include "dualgemm/formats.hpp"
#include "tools/checkpoint_jobs/activation_file.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/stacked_weights.hpp"

namespace dualgemm::checkpoint {
namespace {

Expected<std::vector<int64_t>> numbers_of_npy(const std::string& path) {
  const Expected<TensorFile> file = open_npy(path);
  if (!file) return file.status();
  const TensorView& tensor = file->tensors().begin()->second;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype == ElementType::kI64) {
      numbers.push_back(load_element<int64_t>(tensor.data, i));
    } else if (tensor.dtype == ElementType::kI32) {
      numbers.push_back(load_element<int32_t>(tensor.data, i));
    } else {
      return Status::invalid(path, name_of(tensor.dtype), "must be int32 or int64");
    }
  }
  return numbers;
}

Expected<std::vector<int64_t>> numbers_of_text(const std::string& path) {
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  const auto* text = reinterpret_cast<const char*>((*mapped)->bytes().data());
  const char* const end = text + (*mapped)->bytes().size();
  std::vector<int64_t> numbers;
  const auto is_gap = [](char c) {
    return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r';
  };
  while (true) {
    while (text != end && is_gap(*text)) ++text;
    if (text == end) return numbers;
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(text, end, number);
    if (error != std::errc() || (stop != end && !is_gap(*stop))) {
      const char* const most = text + std::min<std::ptrdiff_t>(end - text, 20);
      return Status::invalid(path, printable({text, std::find_if(text, most, is_gap)}),
                             "must be whole numbers of 64 bits");
    }
    numbers.push_back(number);
    text = stop;
  }
}

struct Weights {
  int64_t n = 0, k = 0, experts = 0;
  std::vector<float> gate_scale, up_scale;  // global, multipliers
  std::vector<std::optional<float>> input_scale;
  std::vector<std::vector<float>> pre_quant_scale;
  int64_t hadamard = 0;
};

// Biases of expert `expert` and zeros of those before it that have none.
void append_biases(const MlpLayer& layer, int64_t expert, ExpertProblem& out) {
  if (layer.gate_bias.empty()) return;
  const auto before = static_cast<size_t>(expert * layer.n);
  out.bias_gate.resize(before);
  out.bias_up.resize(before);
  out.bias_gate.insert(out.bias_gate.end(), layer.gate_bias.begin(), layer.gate_bias.end());
  out.bias_up.insert(out.bias_up.end(), layer.up_bias.begin(), layer.up_bias.end());
}

Status load_experts(const TensorFile& file, const LayerSource& source, ExpertProblem& out,
                    Weights& weights) {
  LayerOptions options;
  options.stacked_order = source.stacked_order;
  options.max_input_scale = source.max_input_scale;
  options.weight.allow_nan = source.allow_nan;
  options.pre_quant_scale = options.rotates = true;
  const Expected<ModelQuantization> said = quantization_beside(file);
  if (!said) return said.status();
  options.quantization = &*said;
  for (int64_t expert = 0; expert < weights.experts; ++expert) {
    options.expert = expert;
    Expected<MlpLayer> layer = load_mlp_layer(file, out.prefix, options);
    if (!layer) return layer.status();
    DUALGEMM_TRY(check_runnable(*layer));
    DUALGEMM_TRY(make_runnable(*layer));
    if (expert == 0) {
      weights.n = layer->n;
      weights.k = layer->k;
      int64_t codes = 0;
      if (__builtin_mul_overflow(layer->n * (layer->k / 2), weights.experts, &codes)) {
        return Status::error(StatusCode::kOverflow, out.prefix,
                             std::to_string(weights.experts) + " experts",
                             "their size must fit in 64 bits");
      }
      for (verify::AlignedBytes* bytes : {&out.gate, &out.up})
        DUALGEMM_TRY(take_bytes("weights of all experts", codes, *bytes));
      for (verify::AlignedBytes* bytes : {&out.gate_scales, &out.up_scales})
        DUALGEMM_TRY(take_bytes("scales of all experts", codes / 8, *bytes));
    }
    if (layer->n != weights.n || layer->k != weights.k) {
      return Status::error(StatusCode::kCorruptFile, layer->gate.tensor_name,
                           std::to_string(layer->n) + " x " + std::to_string(layer->k),
                           "all experts of a layer must have the same shape");
    }
    const MatrixShape shape{layer->n, layer->k, layer->scale_layout};
    DUALGEMM_TRY(append(layer->gate, shape, expert, {&out.gate, &out.gate_scales}));
    DUALGEMM_TRY(append(layer->up, shape, expert, {&out.up, &out.up_scales}));
    append_biases(*layer, expert, out);
    DUALGEMM_TRY(
        check_same_rotation(layer->gate.tensor_name, layer->hadamard, expert, weights.hadamard));
    weights.gate_scale.push_back(layer->gate.dequant_global_scale);
    weights.up_scale.push_back(layer->up.dequant_global_scale);
    weights.input_scale.push_back(layer->dequant_input_scale);
    weights.pre_quant_scale.push_back(std::move(layer->pre_quant_scale));
  }
  return {};
}

// M and K from the activations; rows must add up.
Status set_shape(const ActivationFile& from, const Weights& weights, bool masked,
                 ExpertProblem& out) {
  const std::vector<int64_t>& shape = from.shape;
  const bool fits = masked ? shape.size() == 3 && shape[0] == weights.experts : shape.size() >= 2;
  if (!fits || from.empty() || shape.back() != weights.k) {
    return Status::invalid(
        from.name, format_shape(shape),
        masked ? "must be [experts, rows, K] = [" + std::to_string(weights.experts) + ", ..., " +
                     std::to_string(weights.k) + "], not empty"
               : "must be [rows, K], K = " + std::to_string(weights.k) + ", not empty");
  }
  out.problem.m = masked ? shape[1] : from.rows();
  out.problem.k = weights.k;
  int64_t sum = 0, most = 0;
  for (const int64_t rows : out.rows) {
    sum += rows;  // each at most 2^31: read_expert_rows
    most = std::max(most, rows);
  }
  const std::string given = std::to_string(masked ? most : sum) + " rows";
  if (!masked && sum != out.problem.m) {
    return Status::invalid("--expert-tokens", given + " in all",
                           "the activations have " + std::to_string(out.problem.m));
  }
  if (masked && most > out.problem.m) {
    return Status::invalid("--expert-tokens", given + " for one expert",
                           "the activations have " + std::to_string(out.problem.m) + " for each");
  }
  return {};
}

int64_t first_row(const ExpertProblem& out, int64_t expert) {
  return out.problem.grouping == Grouping::kMasked ? expert * out.problem.m
                                                   : out.offsets[static_cast<size_t>(expert)];
}

Status fill_floats(const std::vector<float>& values, DataType type, ExpertProblem& out) {
  DUALGEMM_TRY(
      take_bytes("activations", core::bytes_of(type, static_cast<int64_t>(values.size())), out.a));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DataType::kF32) reinterpret_cast<float*>(out.a.data())[i] = values[i];
    if (type == DataType::kF16)
      reinterpret_cast<uint16_t*>(out.a.data())[i] = encode_f16(values[i]);
    if (type == DataType::kBF16)
      reinterpret_cast<uint16_t*>(out.a.data())[i] = encode_bf16(values[i]);
  }
  return {};
}

// Each expert's rows with its own input scale, or all with the amax of all.
Status fill_codes(const std::string& origin, const std::vector<float>& values,
                  const Weights& weights, int threads, ExpertProblem& out) {
  const int64_t k = weights.k, rows = static_cast<int64_t>(values.size()) / k;
  DUALGEMM_TRY(take_bytes("activations", rows * (k / 2), out.a));
  DUALGEMM_TRY(take_bytes("activations' scales", rows * (k / kSfVec), out.a_scales));
  QuantizeOptions options;
  options.threads = threads;
  const auto quantize = [&](int64_t row, int64_t count) -> Expected<float> {
    Expected<float> global = quantize_nvfp4(values.data() + row * k, DataType::kF32, count, k, 0,
                                            out.a.data() + row * (k / 2), 0,
                                            out.a_scales.data() + row * (k / kSfVec), options);
    if (global) return global;
    const Status& why = global.status();
    return Status::error(why.code(),
                         origin + ", rows from " + std::to_string(row) + ", " + why.argument(),
                         why.observed(), why.rule());
  };
  const Expected<float> all = quantize(0, rows);  // also fills what no expert takes
  if (!all) return all.status();
  bool own = false;
  for (int64_t expert = 0; expert < weights.experts; ++expert) {
    const auto index = static_cast<size_t>(expert);
    const float global = weights.input_scale[index].value_or(*all);
    if (weights.input_scale[index] && out.rows[index] > 0) {
      options.global_scale = global;
      const Expected<float> done = quantize(first_row(out, expert), out.rows[index]);
      if (!done) return done.status();
      own = true;
    }
    out.alpha_gate.push_back(global * weights.gate_scale[index]);
    out.alpha_up.push_back(global * weights.up_scale[index]);
  }
  out.notes.push_back(own ? "activations quantised with each expert's input scale"
                          : "activations quantised with their own amax, global scale " +
                                std::to_string(*all));
  return {};
}

// Codes as they are in the file. Batches [experts, rows, K] have a global scale each.
Status take_nvfp4_activations(const ActivationFile& from, const Weights& weights, bool masked,
                              ExpertProblem& out) {
  if (out.problem.a.type != DataType::kE2M1)
    return Status::unsupported(from.name, "NVFP4 activations", "need a of type e2m1");
  Expected<CodedActivations> coded = take_codes(*from.nvfp4, ScaleLayout::kLinear);
  if (!coded) return coded.status();
  if (!masked) {
    const Expected<float> global = one_global_scale(*coded, from.name);
    if (!global) return global.status();
    coded->global_scales.assign(static_cast<size_t>(weights.experts), *global);
  }
  for (size_t expert = 0; expert < static_cast<size_t>(weights.experts); ++expert) {
    out.alpha_gate.push_back(coded->global_scales[expert] * weights.gate_scale[expert]);
    out.alpha_up.push_back(coded->global_scales[expert] * weights.up_scale[expert]);
  }
  out.a = std::move(coded->codes);
  out.a_scales = std::move(coded->scales);
  out.notes.push_back("activations are NVFP4 already");
  return {};
}

Status load_activations(const LayerSource& source, const Weights& weights, bool masked, int threads,
                        ExpertProblem& out) {
  Expected<ActivationFile> from = open_activations(source);
  if (!from) return from.status();
  DUALGEMM_TRY(set_shape(*from, weights, masked, out));
  std::vector<int64_t> first_rows;
  for (int64_t expert = 0; expert < weights.experts; ++expert)
    first_rows.push_back(first_row(out, expert));
  DUALGEMM_TRY(
      transform_columns(weights.pre_quant_scale, first_rows, weights.hadamard, *from, out.notes));
  if (from->nvfp4) return take_nvfp4_activations(*from, weights, masked, out);
  const Expected<std::vector<float>> values = decode_to_f32(from->values);
  if (!values) return values.status();
  if (out.problem.a.type == DataType::kE2M1)
    return fill_codes(from->file.origin() + ", tensor '" + from->name + "'", *values, weights,
                      threads, out);
  out.alpha_gate = weights.gate_scale;
  out.alpha_up = weights.up_scale;
  return fill_floats(*values, out.problem.a.type, out);
}

}  // namespace

Expected<std::string> choose_expert_layer(const TensorFile& file, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::vector<std::string> layers = list_expert_layers(file);
  if (layers.size() == 1) return layers.front();
  return Status::error(StatusCode::kNotFound, "prefix",
                       std::to_string(layers.size()) + " layers with experts in " + file.origin(),
                       layers.empty() ? "needs experts" : "name one, as " + layers.front());
}

Expected<std::vector<int64_t>> read_expert_rows(const std::string& path, int64_t experts) {
  return guarded(path, [&]() -> Expected<std::vector<int64_t>> {
    Expected<std::vector<int64_t>> numbers =
        path.ends_with(".npy") ? numbers_of_npy(path) : numbers_of_text(path);
    if (!numbers) return numbers;
    const auto count = static_cast<int64_t>(numbers->size());
    if (count != experts && count != experts + 1) {
      return Status::invalid(path, std::to_string(count) + " numbers",
                             "must be " + std::to_string(experts) + " counts or " +
                                 std::to_string(experts + 1) + " offsets");
    }
    std::vector<int64_t> rows = *numbers;
    if (count == experts + 1) {
      rows.pop_back();
      for (size_t i = 0; i < rows.size(); ++i) {
        if ((*numbers)[i + 1] < (*numbers)[i] || numbers->front() != 0) {
          return Status::invalid(path, "offset " + std::to_string((*numbers)[i + 1]),
                                 "offsets must start at 0 and not decrease");
        }
        rows[i] = (*numbers)[i + 1] - (*numbers)[i];
      }
    }
    for (const int64_t value : rows) {
      if (value >= 0 && value <= INT32_MAX) continue;
      return Status::invalid(path, std::to_string(value) + " rows", "must be 0 to 2147483647");
    }
    return rows;
  });
}

Expected<ExpertProblem> open_expert_problem(const LayerSource& source, const std::string& rows_path,
                                            bool masked, const Problem& request, int threads) {
  return guarded(source.weights, [&]() -> Expected<ExpertProblem> {
    DUALGEMM_TRY(check_no_bias_wanted(request));
    Expected<TensorFile> file = TensorFile::open(source.weights);
    if (!file) return file.status();
    Expected<std::string> prefix = choose_expert_layer(*file, source.prefix);
    if (!prefix) return prefix.status();
    ExpertProblem out;
    out.prefix = *std::move(prefix);
    Weights weights;
    const Expected<int64_t> experts = count_experts(*file, out.prefix);
    if (!experts) return experts.status();
    weights.experts = *experts;
    Expected<std::vector<int64_t>> rows = read_expert_rows(rows_path, *experts);
    if (!rows) return rows.status();
    out.rows = *std::move(rows);
    DUALGEMM_TRY(load_experts(*file, source, out, weights));
    out.problem = request;
    out.problem.grouping = masked ? Grouping::kMasked : Grouping::kContiguous;
    out.problem.l = weights.experts;
    out.problem.n = weights.n;
    if (!out.bias_gate.empty()) {
      out.problem.bias = BiasType::kF32;
      for (std::vector<float>* bias : {&out.bias_gate, &out.bias_up})
        bias->resize(static_cast<size_t>(weights.experts * weights.n));
      out.notes.push_back("Gate and Up have a bias");
    }
    out.offsets = {0};
    for (const int64_t count : out.rows) {
      out.counts.push_back(static_cast<int32_t>(count));
      const int64_t end = out.offsets.back() + count;
      if (end > INT32_MAX && !masked)
        return Status::error(StatusCode::kOverflow, rows_path, std::to_string(end) + " rows",
                             "at most 2147483647 in all");
      out.offsets.push_back(static_cast<int32_t>(std::min<int64_t>(end, INT32_MAX)));
    }
    DUALGEMM_TRY(load_activations(source, weights, masked, threads, out));
    Buffers& buffers = out.buffers;
    buffers.a = out.a.data();
    buffers.a_scales = out.problem.a.type == DataType::kE2M1 ? out.a_scales.data() : nullptr;
    buffers.gate = out.gate.data();
    buffers.gate_scales = out.gate_scales.data();
    buffers.up = out.up.data();
    buffers.up_scales = out.up_scales.data();
    buffers.alpha_gate_per_batch = out.alpha_gate.data();
    buffers.alpha_up_per_batch = out.alpha_up.data();
    if (out.problem.bias != BiasType::kNone) {
      buffers.bias_gate = out.bias_gate.data();
      buffers.bias_up = out.bias_up.data();
    }
    buffers.expert_offsets = masked ? nullptr : out.offsets.data();
    buffers.expert_rows = masked ? out.counts.data() : nullptr;
    return out;
  });
}

}  // namespace dualgemm::checkpoint
