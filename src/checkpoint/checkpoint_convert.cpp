#include <algorithm>
#include <set>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/guard.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::checkpoint {
namespace {

// Where one weight is on its way from the input's form to the output's. New bytes are kept alive by
// `out`.
class WeightConversion {
 public:
  WeightConversion(Weight weight, TensorFile& out) : weight_(std::move(weight)), out_(out) {}
  const Weight& weight() const { return weight_; }

  Status to(Convention convention, ScaleLayout layout, NibbleOrder order) {
    const bool pack = holds_blocks(convention);  // wants linear scales, low_even nibbles
    if (holds_blocks(weight_.convention)) {
      if (pack) return {};
      DUALGEMM_TRY(unpack_ggml());
    }
    DUALGEMM_TRY(set_layout(pack ? ScaleLayout::kLinear : layout));
    DUALGEMM_TRY(set_nibble_order(pack ? NibbleOrder::kLowEven : order));
    if (pack) DUALGEMM_TRY(pack_ggml());
    weight_.convention = convention;
    return {};
  }

 private:
  uint8_t* allocate(int64_t bytes, std::span<const std::byte>& view) {
    auto owner = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
    view = *owner;
    auto* data = reinterpret_cast<uint8_t*>(owner->data());
    out_.keep_alive(std::move(owner));
    return data;
  }
  void set_scales(std::span<const std::byte> bytes) {
    weight_.scales = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(weight_.data.data()); }

  Status unpack_ggml() {
    std::span<const std::byte> codes, scales;
    uint8_t* codes_out = allocate(weight_.n * (weight_.k / 2), codes);
    uint8_t* scales_out = allocate(weight_.n * (weight_.k / kSfVec), scales);
    DUALGEMM_TRY(from_ggml_nvfp4(data(), weight_.n, weight_.k, codes_out, scales_out));
    weight_.data = codes;
    set_scales(scales);
    weight_.convention = Convention::kModelOpt;
    return {};
  }

  Status pack_ggml() {
    if (weight_.k % kGgmlBlockValues != 0) {
      return Status::unsupported(weight_.name, "k = " + std::to_string(weight_.k),
                                 "ggml blocks need k to be a multiple of 64");
    }
    std::span<const std::byte> ggml_blocks;
    uint8_t* out =
        allocate(weight_.n * (weight_.k / kGgmlBlockValues * kGgmlBlockBytes), ggml_blocks);
    DUALGEMM_TRY(to_ggml_nvfp4(data(), weight_.scales.data(), weight_.n, weight_.k, out));
    weight_.data = ggml_blocks;
    weight_.scales = {};
    return {};
  }

  Status set_layout(ScaleLayout layout) {
    if (layout == weight_.scale_layout) return {};
    const int64_t sf_cols = weight_.k / kSfVec;
    const Expected<int64_t> size = checked_scale_span(layout, weight_.n, sf_cols);
    if (!size) return size.status();
    std::span<const std::byte> scales;
    uint8_t* out = allocate(*size, scales);
    DUALGEMM_TRY(convert_scale_layout(weight_.scales.data(), weight_.scale_layout, 0, out, layout,
                                      0, weight_.n, sf_cols));
    set_scales(scales);
    weight_.scale_layout = layout;
    return {};
  }

  Status set_nibble_order(NibbleOrder order) {
    if (order == weight_.nibble_order) return {};
    std::span<const std::byte> codes;
    const auto size = static_cast<int64_t>(weight_.data.size());
    DUALGEMM_TRY(swap_nibbles(data(), allocate(size, codes), size));
    weight_.data = codes;
    weight_.nibble_order = order;
    return {};
  }

  Weight weight_;
  TensorFile& out_;
};

// The name that one expert of a tensor of all gets: X.experts.gate_up_proj and 3 give
// X.experts.3.gate_up_proj, blk.0.ffn_gate_exps gives blk.0.experts.3.ffn_gate.
std::string expert_module(const std::string& module, int64_t expert) {
  const size_t dot = module.rfind('.');
  std::string parent = dot == module.npos ? std::string() : module.substr(0, dot);
  std::string last = dot == module.npos ? module : module.substr(dot + 1);
  if (last.ends_with("_exps")) last.resize(last.size() - 5);
  if (!parent.ends_with("experts")) parent += parent.empty() ? "experts" : ".experts";
  return parent + "." + std::to_string(expert) + "." + last;
}

Status add_converted(Weight weight, const std::string& module, Convention convention,
                     const ConvertOptions& options, TensorFile& out) {
  if (weight.owner) out.keep_alive(weight.owner);
  const ScaleLayout layout = options.scale_layout.value_or(weight.scale_layout);
  const NibbleOrder order = options.nibble_order.value_or(weight.nibble_order);
  WeightConversion conversion(std::move(weight), out);
  DUALGEMM_TRY(conversion.to(convention, layout, order));
  return add_weight(out, module, conversion.weight());
}

// Adds the converted MODULE.* to `out` and the names of the input's tensors that it stands for to
// `replaced`.
Status convert_module(const TensorFile& in, const std::string& module,
                      const ConvertOptions& options, TensorFile& out,
                      std::set<std::string>& replaced, int64_t& converted) {
  WeightOptions input = options.input;
  input.convention.reset();
  // Blocks are what a weight may be, not what each of the file must be.
  if (options.input.convention && holds_blocks(*options.input.convention)) {
    const std::optional<WeightNames> names = find_names(in, module);
    if (names && !in.contains(names->scales)) input.convention = options.input.convention;
  }
  Expected<Weight> weight = load_weight(in, module, input);
  if (!weight) return weight.status();
  const ConventionRow& row = row_of(weight->convention);
  const Convention unchanged = row.can_write && in.metadata().count(kFormatKey) == 0
                                   ? weight->convention
                                   : Convention::kModelOpt;
  const Convention convention = options.convention.value_or(unchanged);
  const ScaleLayout layout = options.scale_layout.value_or(weight->scale_layout);
  const NibbleOrder order = options.nibble_order.value_or(weight->nibble_order);
  const bool was_ggml = row.stored == Stored::kGgmlBlocks;
  const bool stays =
      weight->experts == 0 && weight->names == weight_names(weight->convention, module) &&
      convention == weight->convention &&
      (was_ggml || (layout == weight->scale_layout && order == weight->nibble_order));
  converted += std::max<int64_t>(1, weight->experts);
  if (stays) return record_layout(out, *weight);  // its tensors pass through as they are
  const WeightNames& names = weight->names;
  for (const std::string& name :
       {names.data, names.scales, names.global_scale, names.input_scale}) {
    replaced.insert(name);
  }
  for (const std::string& name : {names.global_scale, names.input_scale}) {
    out.metadata().erase(kMultiplierKey + name);
    out.metadata().erase(kDivisorKey + name);
  }
  out.metadata().erase(module + ".weight");  // torchao's description of it
  if (row.described_in_metadata) out.metadata().erase(module);
  if (weight->experts == 0) {
    return add_converted(*std::move(weight), module, convention, options, out);
  }
  for (int64_t expert = 0; expert < weight->experts; ++expert) {
    Expected<Weight> one = slice_expert(*weight, expert);
    if (!one) return one.status();
    DUALGEMM_TRY(
        add_converted(*std::move(one), expert_module(module, expert), convention, options, out));
  }
  return {};
}

}  // namespace

Expected<TensorFile> convert_checkpoint(const TensorFile& in, const ConvertOptions& options,
                                        ConvertReport* report) {
  return guarded(in.origin(), [&]() -> Expected<TensorFile> {
    if (options.convention)
      DUALGEMM_TRY(check_target(*options.convention, StatusCode::kUnsupported));
    const Expected<std::vector<std::string>> modules = list_nvfp4_weights(in, options.input);
    if (!modules) return modules.status();
    TensorFile out;
    out.share_memory_of(in);
    out.metadata() = in.metadata();
    for (const char* key : {kScaleLayoutKey, kNibbleOrderKey, kConventionKey, kFormatKey}) {
      out.metadata().erase(key);
    }
    std::set<std::string> replaced;
    ConvertReport counted;
    for (const std::string& module : *modules) {
      DUALGEMM_TRY(convert_module(in, module, options, out, replaced, counted.weights_converted));
    }
    for (const auto& [name, tensor] : in.tensors()) {
      if (replaced.count(name) != 0) continue;
      DUALGEMM_TRY(out.add(tensor));
      ++counted.tensors_copied;
    }
    if (report != nullptr) *report = counted;
    return out;
  });
}

}  // namespace dualgemm::checkpoint
