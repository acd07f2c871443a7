#include <set>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/checkpoint_tensors.hpp"
#include "tools/checkpoint/guard.hpp"

namespace dualgemm::checkpoint {
namespace {

// Where one weight is on its way from the input's form to the output's. New bytes are kept alive by
// `out`.
class WeightConversion {
 public:
  WeightConversion(Weight weight, TensorFile& out) : weight_(std::move(weight)), out_(out) {}
  const Weight& weight() const { return weight_; }

  Status to(Convention convention, ScaleLayout layout, NibbleOrder order) {
    if (weight_.convention == Convention::kGgml && convention != Convention::kGgml) {
      DUALGEMM_TRY(unpack_ggml());
    }
    if (weight_.convention == Convention::kGgml) return {};
    const bool pack = convention == Convention::kGgml;  // wants linear scales, low_even nibbles
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
    std::span<const std::byte> blocks;
    uint8_t* out = allocate(weight_.n * (weight_.k / kGgmlBlockValues * kGgmlBlockBytes), blocks);
    DUALGEMM_TRY(to_ggml_nvfp4(data(), weight_.scales.data(), weight_.n, weight_.k, out));
    weight_.data = blocks;
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

std::vector<std::string> nvfp4_modules(const TensorFile& file, GgmlBlocks ggml) {
  std::set<std::string> modules;
  for (const auto& [name, tensor] : file.tensors()) {
    const size_t dot = name.rfind('.');
    if (dot == name.npos) continue;
    const std::string last = name.substr(dot), module = name.substr(0, dot);
    const bool is_data = last == ".weight" || last == ".weight_packed";
    if (is_data && is_nvfp4_weight(file, module, ggml)) modules.insert(module);
  }
  return {modules.begin(), modules.end()};
}

// Adds the converted MODULE.* to `out` and the names of the input's tensors that it stands for to
// `replaced`.
Status convert_module(const TensorFile& in, const std::string& module,
                      const ConvertOptions& options, GgmlBlocks ggml, TensorFile& out,
                      std::set<std::string>& replaced) {
  WeightOptions input = options.input;
  input.convention.reset();  // kGgml names what may be, not what each weight must be
  if (ggml != GgmlBlocks::kNone && !in.contains(module + ".weight_scale"))
    input.convention = Convention::kGgml;
  Expected<Weight> weight = load_weight(in, module, input);
  if (!weight) return weight.status();
  const Convention convention = options.convention.value_or(weight->convention);
  const ScaleLayout layout = options.scale_layout.value_or(weight->scale_layout);
  const NibbleOrder order = options.nibble_order.value_or(weight->nibble_order);
  const bool was_ggml = weight->convention == Convention::kGgml;
  const bool same = convention == weight->convention &&
                    (was_ggml || (layout == weight->scale_layout && order == weight->nibble_order));
  if (same) return record_layout(out, *weight);  // its tensors pass through as they are
  const WeightNames names = weight_names(weight->convention, module);
  for (const std::string& name :
       {names.data, names.scales, names.global_scale, names.input_scale}) {
    replaced.insert(name);
  }
  WeightConversion conversion(*std::move(weight), out);
  DUALGEMM_TRY(conversion.to(convention, layout, order));
  return add_weight(out, module, conversion.weight());
}

}  // namespace

Expected<TensorFile> convert_checkpoint(const TensorFile& in, const ConvertOptions& options,
                                        ConvertReport* report) {
  return guarded(in.origin(), [&]() -> Expected<TensorFile> {
    if (options.convention == Convention::kPlain) {
      return Status::unsupported("convention", "plain",
                                 "must be modelopt, compressed_tensors or ggml");
    }
    const Expected<GgmlBlocks> ggml = ggml_blocks_of(in, options.input);
    if (!ggml) return ggml.status();
    TensorFile out;
    out.share_memory_of(in);
    out.metadata() = in.metadata();
    for (const char* key : {kScaleLayoutKey, kNibbleOrderKey, kConventionKey}) {
      out.metadata().erase(key);
    }
    const std::vector<std::string> modules = nvfp4_modules(in, *ggml);
    std::set<std::string> replaced;
    for (const std::string& module : modules) {
      DUALGEMM_TRY(convert_module(in, module, options, *ggml, out, replaced));
    }
    ConvertReport counted{static_cast<int64_t>(modules.size()), 0};
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
