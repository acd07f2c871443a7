#include "tools/checkpoint_jobs/activation_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/npy.hpp"
#include "core/problem.hpp"
#include "dualgemm/formats.hpp"
#include "dualgemm/quantize.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/checkpoint_jobs/stacked_weights.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr size_t kMostNamed = 5;

// Modules whose codes the file holds, by names and dtypes.
std::set<std::string> nvfp4_modules(const TensorFile& file) {
  std::set<std::string> modules;
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.dtype != ElementType::kU8 && tensor.dtype != ElementType::kF4) continue;
    if (const auto module = module_of_data(file, name)) modules.insert(*module);
  }
  return modules;
}

// What `file` could be asked for: its modules, and the tensors that belong to none of them.
std::vector<std::string> candidates_of(const TensorFile& file,
                                       const std::set<std::string>& modules) {
  std::set<std::string> parts;
  for (const std::string& module : modules) {
    const WeightNames names = *find_names(file, module);
    parts.insert({names.data, names.scales, names.global_scale, names.input_scale});
  }
  std::vector<std::string> candidates(modules.begin(), modules.end());
  for (const auto& [name, tensor] : file.tensors()) {
    if (parts.count(name) == 0) candidates.push_back(name);
  }
  return candidates;
}

Status several(const TensorFile& file, const std::vector<std::string>& candidates) {
  const std::vector<std::string> first(
      candidates.begin(),
      candidates.begin() + static_cast<std::ptrdiff_t>(std::min(kMostNamed, candidates.size())));
  return Status::invalid(
      file.origin(),
      fmt::format("{} tensors or modules that could be the activations", candidates.size()),
      fmt::format("name one with --activations-tensor ({}{})", fmt::join(first, ", "),
                  candidates.size() > first.size() ? ", ..." : ""));
}

// The NVFP4 module that is meant; nothing: a tensor of values is.
Expected<std::optional<std::string>> choose_module(const TensorFile& file,
                                                   const std::string& wanted) {
  using Choice = std::optional<std::string>;
  const std::set<std::string> modules = nvfp4_modules(file);
  if (modules.empty()) return Choice();
  if (wanted.empty()) {
    const std::vector<std::string> candidates = candidates_of(file, modules);
    if (candidates.size() == 1) return Choice(*modules.begin());
    return several(file, candidates);
  }
  for (const std::string& module : modules) {
    const std::string data = find_names(file, module)->data;
    if (wanted != module && wanted != data) continue;
    if (wanted != data && file.contains(wanted)) return several(file, {data, wanted});
    return Choice(module);
  }
  return Choice();
}

Status take_module(const std::string& module, ActivationFile& out) {
  Expected<Weight> weight = load_weight(out.file, module);
  if (!weight) return weight.status();
  out.name = module;
  if (holds_blocks(weight->convention))
    return Status::unsupported(module, "ggml blocks", "activations need plain codes");
  const size_t batches = static_cast<size_t>(std::max<int64_t>(1, weight->experts));
  if (weight->dequant_global_scales.size() != 1 &&
      weight->dequant_global_scales.size() != batches) {
    return Status::unsupported(
        module, fmt::format("{} global scales", weight->dequant_global_scales.size()),
        "activations need one, or one for each batch");
  }
  if (weight->experts > 0) out.shape.push_back(weight->experts);
  out.shape.insert(out.shape.end(), {weight->n, weight->k});
  out.nvfp4 = *std::move(weight);
  return {};
}

}  // namespace

bool ActivationFile::empty() const noexcept {
  return shape.empty() || std::find(shape.begin(), shape.end(), 0) != shape.end();
}

int64_t ActivationFile::rows() const noexcept {
  return std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<int64_t>());
}

Expected<ActivationFile> open_activations(const LayerSource& source) {
  const bool npy = source.activations.ends_with(".npy");
  Expected<TensorFile> file = npy ? open_npy(source.activations, {.u2_is_bf16 = source.u2_is_bf16})
                                  : TensorFile::open(source.activations);
  if (!file) return file.status();
  ActivationFile out;
  out.file = *std::move(file);
  const auto module = choose_module(out.file, source.activations_tensor);
  if (!module) return module.status();
  if (*module) {
    DUALGEMM_TRY(take_module(**module, out));
    return out;
  }
  Expected<TensorView> tensor = out.file.get_or_only(source.activations_tensor);
  if (!tensor) return tensor.status();
  if (tensor->dtype == ElementType::kU16 && npy) {
    return Status::unsupported(tensor->name, "uint16", "if it is bf16, say so with --u2-is-bf16");
  }
  out.values = *std::move(tensor);
  out.name = out.values.name;
  out.shape = out.values.shape;
  return out;
}

Status transform_columns(std::span<const std::vector<float>> factors,
                         std::span<const int64_t> first_rows, int64_t hadamard,
                         ActivationFile& activations, std::vector<std::string>& notes) {
  const auto is_empty = [](const std::vector<float>& of_one) { return of_one.empty(); };
  const bool multiplies = !std::all_of(factors.begin(), factors.end(), is_empty);
  if (!multiplies && hadamard == 0) return {};
  if (activations.nvfp4) {
    return Status::unsupported(activations.name,
                               multiplies ? "NVFP4 activations, and a pre_quant_scale"
                                          : "NVFP4 activations, and a rotation of the input",
                               "must be floats, which the layer changes before they are quantised");
  }
  Expected<std::vector<float>> values = decode_to_f32(activations.values);
  if (!values) return values.status();
  const DataType type = float_type(activations.values.dtype).value_or(DataType::kF32);
  const auto k = static_cast<size_t>(activations.shape.back());
  auto bytes = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(core::bytes_of(type, static_cast<int64_t>(values->size()))));
  auto* const floats = reinterpret_cast<float*>(bytes->data());
  auto* const halves = reinterpret_cast<uint16_t*>(bytes->data());
  size_t expert = 0;
  for (size_t i = 0; i < values->size(); ++i) {
    while (expert + 1 < factors.size() && first_rows[expert + 1] <= static_cast<int64_t>(i / k))
      ++expert;
    const std::vector<float>& own = factors[expert];
    const float value = own.empty() ? (*values)[i] : (*values)[i] * own[i % k];
    if (type == DataType::kF32) floats[i] = value;
    if (type == DataType::kF16) halves[i] = encode_f16(value);
    if (type == DataType::kBF16) halves[i] = encode_bf16(value);
  }
  if (hadamard != 0) {
    const Matrix matrix{.type = type};
    const TransformProblem rotation{.rows = static_cast<int64_t>(values->size() / k),
                                    .cols = static_cast<int64_t>(k),
                                    .x = matrix,
                                    .y = matrix,
                                    .transform = {.hadamard = hadamard}};
    DUALGEMM_TRY(transform_rows(rotation, {.x = bytes->data(), .y = bytes->data()}));
  }
  activations.values.dtype = element_type(type);
  activations.values.data = *bytes;
  activations.file.keep_alive(std::move(bytes));
  if (multiplies) notes.push_back("activations multiplied by the layer's pre_quant_scale");
  if (hadamard != 0) {
    notes.push_back(
        fmt::format("activations rotated by {} columns, as config.json says", hadamard));
  }
  return {};
}

Status check_same_rotation(const std::string& name, int64_t hadamard, int64_t expert,
                           int64_t& all) {
  if (expert == 0) all = hadamard;
  if (hadamard == all) return {};
  return Status::unsupported(
      name, fmt::format("an input rotated by {} columns, and {} for other experts", hadamard, all),
      "all experts of a layer must have the same");
}

Expected<CodedActivations> take_codes(const Weight& nvfp4, std::optional<ScaleLayout> layout) {
  const int64_t batches = std::max<int64_t>(1, nvfp4.experts), n = nvfp4.n, k = nvfp4.k;
  CodedActivations out;
  out.rows = batches * n;
  out.k = k;
  const ScaleLayout usual = nvfp4.experts > 0 ? ScaleLayout::kLinear : nvfp4.scale_layout;
  out.scale_layout = layout.value_or(usual);
  const Expected<int64_t> span = checked_scale_span(out.scale_layout, out.rows, k / kSfVec);
  if (!span) return span.status();
  DUALGEMM_TRY(take_bytes("activations", out.rows * (k / 2), out.codes));
  DUALGEMM_TRY(take_bytes("activations' scales", *span, out.scales));
  for (int64_t batch = 0; batch < batches; ++batch) {
    const Expected<Weight> one =
        nvfp4.experts > 0 ? slice_expert(nvfp4, batch) : Expected<Weight>(nvfp4);
    if (!one) return one.status();
    uint8_t* const codes = out.codes.data() + batch * n * (k / 2);
    const auto* const stored = reinterpret_cast<const uint8_t*>(one->data.data());
    std::memcpy(codes, stored, one->data.size());
    if (one->nibble_order == NibbleOrder::kHighEven)
      DUALGEMM_TRY(swap_nibbles(codes, codes, n * (k / 2)));
    DUALGEMM_TRY(convert_scale_layout(one->scales.data(), one->scale_layout, 0,
                                      out.scales.data() + batch * n * (k / kSfVec),
                                      out.scale_layout, 0, n, k / kSfVec));
    out.global_scales.push_back(one->dequant_global_scales.front());
  }
  return out;
}

Expected<float> one_global_scale(const CodedActivations& activations, const std::string& name) {
  const auto [low, high] =
      std::minmax_element(activations.global_scales.begin(), activations.global_scales.end());
  if (*low == *high) return *low;
  return Status::unsupported(name, fmt::format("global scales from {} to {}", *low, *high),
                             "must be one, except with --masked");
}

Expected<verify::AlignedBytes> values_of(const CodedActivations& activations, DataType type) {
  Expected<verify::AlignedBytes> values =
      verify::allocate_filled(activations.rows * activations.k * 2, 0);
  if (!values) return values;
  auto* const out = reinterpret_cast<uint16_t*>(values->data());
  const int64_t blocks = activations.k / kSfVec;
  const ScaleMap at(activations.scale_layout, activations.rows, blocks);
  for (int64_t row = 0; row < activations.rows; ++row) {
    for (int64_t k = 0; k < activations.k; ++k) {
      const int64_t index = row * activations.k + k;
      const unsigned byte = activations.codes.data()[index / 2];
      const float value = decode_e2m1(static_cast<uint8_t>(byte >> (k % 2 * 4) & 0xF)) *
                          decode_scale(activations.scales.data()[at(row, k / kSfVec)]);
      out[index] = type == DataType::kF16 ? encode_f16(value) : encode_bf16(value);
    }
  }
  return values;
}

}  // namespace dualgemm::checkpoint
