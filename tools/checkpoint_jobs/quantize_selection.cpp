#include "tools/checkpoint_jobs/quantize_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "checkpoint/glob.hpp"
#include "core/int_math.hpp"
#include "core/quantize_block.hpp"
#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/measure/parallel_for.hpp"

namespace dualgemm::checkpoint {
namespace {

// Embeddings, output heads, routers, norms and other small things, biases and other towers, as
// Hugging Face, the first LLaMA and Mixtral, T5 and GGUF name them.
constexpr std::array kLeftAlone = {"*embed*",
                                   "*embd*",
                                   "*wte.*",
                                   "*wpe.*",
                                   "shared.weight",
                                   "*lm_head*",
                                   "*output_layer*",
                                   "output.weight",
                                   "*proj_out.*",
                                   "score.weight",
                                   "classifier.weight",
                                   "*router*",
                                   "*.gate.weight",
                                   "*mlp.gate.*",
                                   "*block_sparse_moe.gate.*",
                                   "*feed_forward.gate.*",
                                   "*shared_expert_gate.*",
                                   "*ffn_gate_inp*",
                                   "*norm*",
                                   "*conv1d*",
                                   "*linear_attn.in_proj_a*",
                                   "*linear_attn.in_proj_b*",
                                   "mtp.*",
                                   "*bias*",
                                   "*vision*",
                                   "*visual*",
                                   "*multi_modal_projector*"};

// Projections of one input: loaders fuse them and keep one global scale for all.
const std::array kGroups = {
    std::vector<std::string>{"gate_proj", "up_proj"},
    std::vector<std::string>{"w1", "w3"},
    std::vector<std::string>{"q_proj", "k_proj", "v_proj"},
    std::vector<std::string>{"wq", "wk", "wv"},
    std::vector<std::string>{"attn_q", "attn_k", "attn_v"},
    std::vector<std::string>{"query", "key", "value"},
    std::vector<std::string>{"q_a_proj", "kv_a_proj_with_mqa"},
    std::vector<std::string>{"in_proj_qkv", "in_proj_z"},
    std::vector<std::string>{"ffn_gate", "ffn_up"},
    std::vector<std::string>{"ffn_gate_shexp", "ffn_up_shexp"},
};

// Why a tensor cannot be quantised; ok when it can.
Status fits(const TensorView& tensor, Convention convention) {
  const int64_t multiple = holds_blocks(convention) ? 64 : kSfVec;
  if (!float_type(tensor.dtype))
    return Status::unsupported(tensor.name, name_of(tensor.dtype), "must be F32, F16 or BF16");
  if (tensor.shape.size() != 2)
    return Status::unsupported(tensor.name, format_shape(tensor.shape), "must have two extents");
  if (tensor.elements() == 0)
    return Status::unsupported(tensor.name, format_shape(tensor.shape), "must not be empty");
  if (tensor.shape[1] % multiple != 0) {
    return Status::unsupported(tensor.name, std::to_string(tensor.shape[1]) + " columns",
                               "must be a multiple of " + std::to_string(multiple));
  }
  return {};
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_glob(pattern, name); });
}

bool is_left_alone(const std::string& name) {
  return std::any_of(kLeftAlone.begin(), kLeftAlone.end(),
                     [&](const char* pattern) { return matches_glob(pattern, name); });
}

// A pattern that matches nothing is a slip.
Status check_patterns(const TensorFile& in, const QuantizeCheckpointOptions& options) {
  const auto check = [&](const char* option, const std::string& pattern, bool must_fit) {
    for (const auto& [name, tensor] : in.tensors()) {
      if (matches_glob(pattern, name) && (!must_fit || fits(tensor, options.convention).ok()))
        return Status();
    }
    return Status::error(StatusCode::kNotFound, std::string(option) + " '" + pattern + "'",
                         std::string("matches no tensor ") +
                             (must_fit ? "that can be quantised " : "") + "of " + in.origin(),
                         "* stands for any characters, ? for one; the whole name must match");
  };
  for (const std::string& pattern : options.include) DUALGEMM_TRY(check("include", pattern, true));
  for (const std::string& pattern : options.exclude) DUALGEMM_TRY(check("exclude", pattern, false));
  return {};
}

Status choose_by_name(const TensorFile& in, const QuantizeCheckpointOptions& options,
                      QuantizationChoice& choice) {
  for (const std::string& name : options.tensors) {
    const Expected<TensorView> tensor = in.get(name);
    if (!tensor) return tensor.status();
    DUALGEMM_TRY(fits(*tensor, options.convention));
    choice.taken.emplace(name, 0.0f);
  }
  return {};
}

void choose_by_pattern(const TensorFile& in, const QuantizeCheckpointOptions& options,
                       QuantizationChoice& choice) {
  for (const auto& [name, tensor] : in.tensors()) {
    const bool wanted = options.include.empty()
                            ? name.starts_with(options.prefix) && !is_left_alone(name)
                            : any_matches(options.include, name);
    const bool taken = wanted && !any_matches(options.exclude, name);
    if (fits(tensor, options.convention).ok()) {
      taken ? choice.taken.emplace(name, 0.0f), void() : choice.left_alone.push_back(name);
    } else if (float_type(tensor.dtype) && tensor.shape.size() >= 2) {
      choice.unfit.push_back(name);
    }
  }
}

// Magnitudes of floats order as their bits do.
template <class Bits>
uint32_t largest_bits(const TensorView& tensor, uint32_t sign) {
  constexpr int64_t kRun = 1 << 16;
  const int64_t count = tensor.elements();
  std::vector<uint32_t> largest(static_cast<size_t>(core::ceil_div(count, kRun)), 0u);
  measure::parallel_for(static_cast<int64_t>(largest.size()), [&](int64_t run) {
    uint32_t most = 0;
    const int64_t end = std::min(count, (run + 1) * kRun);
    for (int64_t i = run * kRun; i < end; ++i)
      most = std::max(most, uint32_t{load_element<Bits>(tensor.data, i)} & ~sign);
    largest[static_cast<size_t>(run)] = most;
  });
  return largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
}

// Infinite or NaN where the tensor has such a value.
float amax_of(const TensorView& tensor) {
  if (tensor.dtype == ElementType::kF32)
    return std::bit_cast<float>(largest_bits<uint32_t>(tensor, 0x80000000u));
  const auto bits = static_cast<uint16_t>(largest_bits<uint16_t>(tensor, 0x8000u));
  return tensor.dtype == ElementType::kF16 ? decode_f16(bits) : decode_bf16(bits);
}

// "a.b.q_proj.weight" -> "a.b.q_proj|k_proj|v_proj"; "" when the tensor is in no group.
std::string group_of(const std::string& name) {
  const std::string module = module_of_tensor(name);
  const size_t dot = module.rfind('.');
  const std::string last = dot == module.npos ? module : module.substr(dot + 1);
  for (const std::vector<std::string>& group : kGroups) {
    if (std::find(group.begin(), group.end(), last) != group.end())
      return module.substr(0, module.size() - last.size()) + group.front();
  }
  return {};
}

void share_scales(const TensorFile& in, QuantizationChoice& choice) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& [name, scale] : choice.taken) {
    if (const std::string group = group_of(name); !group.empty()) groups[group].push_back(name);
  }
  for (const auto& [group, names] : groups) {
    if (names.size() < 2) continue;
    float amax = 0.0f;
    bool finite = true;  // else the tensor's own quantisation names the place
    for (const std::string& name : names) {
      const float largest = amax_of(*in.find(name));
      finite = finite && std::isfinite(largest);
      amax = std::max(amax, largest);
    }
    if (!finite) continue;
    for (const std::string& name : names)
      choice.taken[name] = core::global_scale_of_amax(amax).dequantize;
  }
}

}  // namespace

std::span<const char* const> patterns_left_alone() { return kLeftAlone; }

std::string module_of_tensor(const std::string& name) {
  constexpr std::string_view kSuffix = ".weight";
  const bool has = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  return has ? name.substr(0, name.size() - kSuffix.size()) : name;
}

Expected<QuantizationChoice> choose_tensors(const TensorFile& in,
                                            const QuantizeCheckpointOptions& options) {
  QuantizationChoice choice;
  DUALGEMM_TRY(check_patterns(in, options));
  DUALGEMM_TRY(choose_by_name(in, options, choice));
  if (options.tensors.empty()) choose_by_pattern(in, options, choice);
  if (choice.taken.empty()) {
    const std::string left = choice.left_alone.empty()
                                 ? std::string()
                                 : " (" + std::to_string(choice.left_alone.size()) +
                                       " that fit are left alone, as " + choice.left_alone.front() +
                                       ")";
    return Status::error(StatusCode::kNotFound, in.origin(),
                         std::to_string(in.tensors().size()) + " tensors, none to quantise" +
                             (options.prefix.empty() ? "" : " under '" + options.prefix + "'") +
                             left,
                         "needs 2-D F32, F16 or BF16 with a multiple of 16 columns; --include "
                         "takes what is left alone");
  }
  if (!options.separate_scales && options.quantize.global_scale == 0.0f) share_scales(in, choice);
  return choice;
}

}  // namespace dualgemm::checkpoint
