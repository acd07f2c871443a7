#include "tools/checkpoint/quantize_checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tools/checkpoint/element_types.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {
namespace {

// Why a tensor is not quantised; ok when it is.
Status fits(const checkpoint::TensorView& tensor, checkpoint::Convention convention) {
  const int64_t multiple = convention == checkpoint::Convention::kGgml ? 64 : kSfVec;
  if (!float_type(tensor.dtype))
    return Status::unsupported(tensor.name, checkpoint::name_of(tensor.dtype),
                               "must be F32, F16 or BF16");
  if (tensor.shape.size() != 2)
    return Status::unsupported(tensor.name, checkpoint::format_shape(tensor.shape),
                               "must have two extents");
  if (tensor.elements() == 0)
    return Status::unsupported(tensor.name, checkpoint::format_shape(tensor.shape),
                               "must not be empty");
  if (tensor.shape[1] % multiple != 0) {
    return Status::unsupported(tensor.name, std::to_string(tensor.shape[1]) + " columns",
                               "must be a multiple of " + std::to_string(multiple));
  }
  return {};
}

Status select(const checkpoint::TensorFile& in, const QuantizeCheckpointOptions& options,
              std::vector<checkpoint::TensorView>& selected) {
  for (const std::string& name : options.tensors) {
    const Expected<checkpoint::TensorView> tensor = in.get(name);
    if (!tensor) return tensor.status();
    DUALGEMM_TRY(fits(*tensor, options.convention));
    selected.push_back(*tensor);
  }
  if (!options.tensors.empty()) return {};
  for (const auto& [name, tensor] : in.tensors()) {
    if (name.compare(0, options.prefix.size(), options.prefix) != 0) continue;
    if (fits(tensor, options.convention).ok()) selected.push_back(tensor);
  }
  if (!selected.empty()) return {};
  return Status::error(StatusCode::kNotFound, in.origin(),
                       std::to_string(in.tensors().size()) + " tensors, none to quantise" +
                           (options.prefix.empty() ? "" : " under '" + options.prefix + "'"),
                       "needs 2-D F32, F16 or BF16 with a multiple of 16 columns");
}

std::string module_of(const std::string& name) {
  constexpr std::string_view kSuffix = ".weight";
  const bool has = name.size() > kSuffix.size() &&
                   std::string_view(name).substr(name.size() - kSuffix.size()) == kSuffix;
  return has ? name.substr(0, name.size() - kSuffix.size()) : name;
}

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

Expected<Quantized> quantize_matrix(const checkpoint::TensorView& tensor, int64_t rows,
                                    int64_t cols, const QuantizeOptions& options,
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
    return Status::error(why.code(), tensor.name + ", " + why.argument(), why.observed(),
                         why.rule());
  }
  return Quantized{*std::move(codes), *std::move(scales), *global};
}

// The input scale that `calibration` gives: what its own quantisation would use as the global
// scale.
Expected<float> input_scale_of(const checkpoint::TensorView& activations, int threads) {
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
  const Expected<Quantized> quantized =
      quantize_matrix(activations, activations.elements() / cols, cols, options, values->data);
  if (!quantized) return quantized.status();
  return quantized->global_scale;
}

Status add_quantized(const checkpoint::TensorView& tensor, const QuantizeCheckpointOptions& options,
                     std::optional<float> input_scale, checkpoint::TensorFile& out,
                     QuantizedTensor& entry) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  const Expected<AlignedValues> values = aligned_values(tensor);
  if (!values) return values.status();
  Expected<Quantized> quantized = quantize_matrix(tensor, n, k, options.quantize, values->data);
  if (!quantized) return quantized.status();
  auto memory = std::make_shared<const Quantized>(*std::move(quantized));

  checkpoint::Weight weight;
  weight.convention = options.convention == checkpoint::Convention::kGgml
                          ? checkpoint::Convention::kModelOpt
                          : options.convention;
  weight.type = DataType::kE2M1;
  weight.n = n;
  weight.k = k;
  weight.data = {reinterpret_cast<const std::byte*>(memory->codes.data()),
                 static_cast<size_t>(memory->codes.size())};
  weight.scales = {memory->scales.data(), static_cast<size_t>(memory->scales.size())};
  weight.scale_layout = options.quantize.scale_layout;
  weight.dequant_global_scales = {memory->global_scale};
  if (input_scale) weight.dequant_input_scales = {*input_scale};

  entry = {tensor.name,
           module_of(tensor.name),
           n,
           k,
           static_cast<int64_t>(tensor.data.size()),
           memory->codes.size() + memory->scales.size(),
           memory->global_scale,
           input_scale.has_value(),
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
  checkpoint::TensorFile keeper;  // owns the memory that add_weight only refers to
  DUALGEMM_TRY(keeper.add({"owner", checkpoint::ElementType::kU8, {0}, {}}, memory));
  out.share_memory_of(keeper);
  return {};
}

}  // namespace

Expected<checkpoint::TensorFile> quantize_checkpoint(const checkpoint::TensorFile& in,
                                                     const QuantizeCheckpointOptions& options,
                                                     QuantizeCheckpointReport* report) {
  if (options.convention == checkpoint::Convention::kPlain) {
    return Status::invalid("convention", "plain", "must be modelopt, compressed_tensors or ggml");
  }
  if (options.convention == checkpoint::Convention::kGgml &&
      options.quantize.scale_layout != ScaleLayout::kLinear) {
    return Status::invalid("scale_layout", name_of(options.quantize.scale_layout),
                           "ggml blocks hold their scales: linear only");
  }
  std::vector<checkpoint::TensorView> selected;
  DUALGEMM_TRY(select(in, options, selected));
  std::optional<float> input_scale;
  if (options.calibration) {
    const Expected<float> scale = input_scale_of(*options.calibration, options.quantize.threads);
    if (!scale) return scale.status();
    input_scale = *scale;
  }

  QuantizeCheckpointReport local;
  checkpoint::TensorFile out;
  out.metadata() = in.metadata();
  out.share_memory_of(in);
  for (const auto& [name, tensor] : in.tensors()) {
    const bool chosen = std::any_of(selected.begin(), selected.end(),
                                    [&name = name](const auto& view) { return view.name == name; });
    if (!chosen) {
      DUALGEMM_TRY(out.add(tensor));
      local.copied.push_back(name);
      continue;
    }
    const bool calibrated = input_scale && options.calibration->shape.back() == tensor.shape[1];
    QuantizedTensor entry;
    DUALGEMM_TRY(
        add_quantized(tensor, options, calibrated ? input_scale : std::nullopt, out, entry));
    local.quantized.push_back(std::move(entry));
  }
  if (report != nullptr) *report = std::move(local);
  if (options.convention != checkpoint::Convention::kGgml) return out;
  checkpoint::ConvertOptions to_ggml;
  to_ggml.convention = checkpoint::Convention::kGgml;
  return checkpoint::convert_checkpoint(out, to_ggml);
}

}  // namespace dualgemm::checkpoint
