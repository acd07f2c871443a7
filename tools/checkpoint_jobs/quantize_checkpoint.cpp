#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/quantize_selection.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {
namespace {

// Files promise no alignment; a copy is made only where it lacks.
struct AlignedValues {
  const void* data = nullptr;
  verify::AlignedBytes copy;
};
Expected<AlignedValues> aligned_values(const checkpoint::TensorView& tensor) {
  AlignedValues values;
  values.data = tensor.data.data();
  const auto element_bytes = static_cast<uintptr_t>(checkpoint::bits_of(tensor.dtype) / 8);
  if (reinterpret_cast<uintptr_t>(values.data) % element_bytes == 0) return values;
  Expected<verify::AlignedBytes> copy =
      verify::allocate_filled(static_cast<int64_t>(tensor.data.size()), 0);
  if (!copy) return copy.status();
  std::memcpy(copy->data(), tensor.data.data(), tensor.data.size());
  values.copy = *std::move(copy);
  values.data = values.copy.data();
  return values;
}

struct Quantized {
  verify::AlignedBytes codes, scales;
  float global_scale = 1.0f;
};

Expected<Quantized> quantize_matrix(const std::string& origin, const checkpoint::TensorView& tensor,
                                    int64_t rows, int64_t cols, const QuantizeOptions& options,
                                    const void* values) {
  const Expected<int64_t> span = checked_scale_span(options.scale_layout, rows, cols / kSfVec);
  if (!span) return span.status();
  Expected<verify::AlignedBytes> codes = verify::allocate_filled(rows * (cols / 2), 0);
  if (!codes) return codes.status();
  Expected<verify::AlignedBytes> scales = verify::allocate_filled(*span, 0);
  if (!scales) return scales.status();
  const Expected<float> global = quantize_nvfp4(values, *float_type(tensor.dtype), rows, cols, 0,
                                                codes->data(), 0, scales->data(), options);
  if (!global) {
    const Status& why = global.status();
    return Status::error(why.code(), origin + ", tensor '" + tensor.name + "', " + why.argument(),
                         why.observed(), why.rule());
  }
  return Quantized{*std::move(codes), *std::move(scales), *global};
}

// The input scale that `calibration` gives: what its own quantisation would use as the global
// scale.
Expected<float> input_scale_of(const Calibration& calibration, int threads) {
  const checkpoint::TensorView& activations = calibration.activations;
  if (!float_type(activations.dtype) || activations.shape.empty() || activations.elements() == 0 ||
      activations.shape.back() % kSfVec != 0) {
    return Status::invalid(activations.name,
                           std::string(checkpoint::name_of(activations.dtype)) + " " +
                               checkpoint::format_shape(activations.shape),
                           "calibration needs F32, F16 or BF16 [..., K], K a multiple of 16");
  }
  const Expected<AlignedValues> values = aligned_values(activations);
  if (!values) return values.status();
  QuantizeOptions options;
  options.threads = threads;
  const int64_t cols = activations.shape.back();
  const Expected<Quantized> quantized = quantize_matrix(
      calibration.origin, activations, activations.elements() / cols, cols, options, values->data);
  if (!quantized) return quantized.status();
  return quantized->global_scale;
}

// Columns -> the input scale of weights that have so many.
Expected<std::map<int64_t, float>> input_scales_of(const QuantizeCheckpointOptions& options) {
  std::map<int64_t, float> scales;
  for (const Calibration& calibration : options.calibrations) {
    const Expected<float> scale = input_scale_of(calibration, options.quantize.threads);
    if (!scale) return scale.status();
    float& largest = scales[calibration.activations.shape.back()];
    largest = std::max(largest, *scale);
  }
  return scales;
}

// `shared_scale`: 0 = the tensor's own. `input_scale`: null = none.
Status add_quantized(const std::string& origin, const checkpoint::TensorView& tensor,
                     const QuantizeCheckpointOptions& options, float shared_scale,
                     const float* input_scale, checkpoint::TensorFile& out,
                     QuantizedTensor& entry) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  const Expected<AlignedValues> values = aligned_values(tensor);
  if (!values) return values.status();
  QuantizeOptions quantize = options.quantize;
  if (shared_scale != 0.0f) quantize.global_scale = shared_scale;
  Expected<Quantized> quantized = quantize_matrix(origin, tensor, n, k, quantize, values->data);
  if (!quantized) return quantized.status();
  auto memory = std::make_shared<const Quantized>(*std::move(quantized));

  checkpoint::Weight weight;
  weight.convention = holds_blocks(options.convention) ? checkpoint::Convention::kModelOpt
                                                       : options.convention;  // packed at the end
  weight.type = DataType::kE2M1;
  weight.n = n;
  weight.k = k;
  weight.data = {reinterpret_cast<const std::byte*>(memory->codes.data()),
                 static_cast<size_t>(memory->codes.size())};
  weight.scales = {memory->scales.data(), static_cast<size_t>(memory->scales.size())};
  weight.scale_layout = options.quantize.scale_layout;
  weight.dequant_global_scales = {memory->global_scale};
  if (input_scale != nullptr) weight.dequant_input_scales = {*input_scale};

  entry = {tensor.name,
           module_of_tensor(tensor.name),
           n,
           k,
           static_cast<int64_t>(tensor.data.size()),
           memory->codes.size() + memory->scales.size(),
           memory->global_scale,
           shared_scale != 0.0f,
           input_scale != nullptr,
           std::nullopt};
  if (options.measure_error) {
    const Expected<QuantizationError> error =
        quantization_error(values->data, *float_type(tensor.dtype), n, k, 0, memory->codes.data(),
                           memory->scales.data(), options.quantize.scale_layout,
                           memory->global_scale, options.quantize.threads);
    if (!error) return error.status();
    entry.error = *error;
  }
  DUALGEMM_TRY(checkpoint::add_weight(out, entry.module, weight));
  out.keep_alive(memory);  // add_weight only refers to it
  return {};
}

Status check_options(const QuantizeCheckpointOptions& options) {
  DUALGEMM_TRY(check_target(options.convention, StatusCode::kInvalidArgument));
  if (holds_blocks(options.convention) && options.quantize.scale_layout != ScaleLayout::kLinear) {
    return Status::invalid("scale_layout", name_of(options.quantize.scale_layout),
                           "ggml blocks hold their scales: linear only");
  }
  return {};
}

}  // namespace

Expected<checkpoint::TensorFile> quantize_checkpoint(const checkpoint::TensorFile& in,
                                                     const QuantizeCheckpointOptions& options,
                                                     QuantizeCheckpointReport* report) {
  DUALGEMM_TRY(check_options(options));
  const Expected<QuantizationChoice> choice = choose_tensors(in, options);
  if (!choice) return choice.status();
  QuantizeCheckpointReport local;
  Expected<checkpoint::TensorFile> out = quantize_chosen(in, *choice, options, local);
  if (out && report != nullptr) *report = std::move(local);
  return out;
}

Expected<checkpoint::TensorFile> quantize_chosen(const checkpoint::TensorFile& in,
                                                 const QuantizationChoice& choice,
                                                 const QuantizeCheckpointOptions& options,
                                                 QuantizeCheckpointReport& report) {
  DUALGEMM_TRY(check_options(options));
  const auto input_scales = input_scales_of(options);
  if (!input_scales) return input_scales.status();
  const auto holds = [](const std::vector<std::string>& sorted, const std::string& name) {
    return std::binary_search(sorted.begin(), sorted.end(), name);
  };
  checkpoint::TensorFile out;
  out.metadata() = in.metadata();
  out.share_memory_of(in);
  for (const auto& [name, tensor] : in.tensors()) {
    const auto taken = choice.taken.find(name);
    if (taken == choice.taken.end()) {
      DUALGEMM_TRY(out.add(tensor));
      report.copied.push_back(name);
      if (holds(choice.left_alone, name)) report.left_alone.push_back(name);
      if (holds(choice.unfit, name)) report.unfit.push_back(name);
      continue;
    }
    const auto calibrated = input_scales->find(tensor.shape[1]);
    const float* input_scale = calibrated == input_scales->end() ? nullptr : &calibrated->second;
    QuantizedTensor entry;
    DUALGEMM_TRY(
        add_quantized(in.origin(), tensor, options, taken->second, input_scale, out, entry));
    report.quantized.push_back(std::move(entry));
  }
  if (!holds_blocks(options.convention)) return out;
  checkpoint::ConvertOptions packed;
  packed.convention = options.convention;
  return checkpoint::convert_checkpoint(out, packed);
}

}  // namespace dualgemm::checkpoint
