#include "tools/checkpoint_jobs/quantization_config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/guard.hpp"
#include "checkpoint/json_text.hpp"
#include "dualgemm/dualgemm.hpp"
#include "tools/checkpoint_jobs/quantize_selection.hpp"

namespace dualgemm::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

bool has_input_scales(const QuantizeCheckpointReport& report) {
  return std::all_of(report.quantized.begin(), report.quantized.end(),
                     [](const QuantizedTensor& tensor) { return tensor.has_input_scale; });
}

const char* algorithm(const QuantizeCheckpointReport& report) {
  return has_input_scales(report) ? "NVFP4" : "W4A16_NVFP4";
}

Json producer() { return {{"name", "dualgemm"}, {"version", version()}}; }

Json modelopt_config(const QuantizeCheckpointReport& report) {
  const Json four_bits = {
      {"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", kSfVec}};
  Json group = Json::object();
  if (has_input_scales(report)) group["input_activations"] = four_bits;
  group["weights"] = four_bits;
  group["targets"] = {"Linear"};
  return {{"config_groups", {{"group_0", group}}},
          {"ignore", unquantized_modules(report)},
          {"quant_algo", algorithm(report)},
          {"group_size", kSfVec},  // TensorRT-LLM compares it with hf_quant_config.json's
          {"producer", producer()},
          {"quant_method", "modelopt"}};
}

Json compressed_tensors_config(const QuantizeCheckpointReport& report) {
  const auto four_bits = [](const Json& dynamic) {
    // scale_dtype: without it compressed-tensors rounds no block scale of the activations.
    return Json{{"actorder", nullptr}, {"block_structure", nullptr},
                {"dynamic", dynamic},  {"group_size", kSfVec},
                {"num_bits", 4},       {"scale_dtype", "torch.float8_e4m3fn"},
                {"symmetric", true},   {"strategy", "tensor_group"},
                {"type", "float"}};
  };
  const Json group = {{"format", "nvfp4-pack-quantized"},
                      {"input_activations", has_input_scales(report) ? four_bits("local") : Json()},
                      {"output_activations", nullptr},
                      {"targets", {"Linear"}},
                      {"weights", four_bits(false)}};
  return {{"config_groups", {{"group_0", group}}}, {"format", "nvfp4-pack-quantized"},
          {"ignore", unquantized_modules(report)}, {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},  {"quantization_status", "compressed"}};
}

constexpr std::string_view kMember = "quantization_config";

// Text of several lines as a member of the outermost object.
std::string indented(const std::string& json) {
  std::string out;
  for (const char c : json) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

}  // namespace

std::vector<std::string> unquantized_modules(const QuantizeCheckpointReport& report) {
  std::set<std::string> modules;
  for (const std::vector<std::string>* names : {&report.left_alone, &report.unfit}) {
    for (const std::string& name : *names) modules.insert(module_of_tensor(name));
  }
  const auto is_head = [](const QuantizedTensor& tensor) { return tensor.module == "lm_head"; };
  if (std::none_of(report.quantized.begin(), report.quantized.end(), is_head))
    modules.insert("lm_head");  // a tied one has no tensor
  return {modules.begin(), modules.end()};
}

std::string hf_quant_config(const QuantizeCheckpointReport& report) {
  const Json config = {{"producer", producer()},
                       {"quantization",
                        {{"quant_algo", algorithm(report)},
                         {"kv_cache_quant_algo", nullptr},
                         {"group_size", kSfVec},
                         {"exclude_modules", unquantized_modules(report)}}}};
  return config.dump(2) + "\n";
}

Expected<std::string> config_with_quantization(const std::string& config, const std::string& origin,
                                               Convention convention,
                                               const QuantizeCheckpointReport& report) {
  return guarded(origin, [&]() -> Expected<std::string> {
    const ConventionRow& row = row_of(convention);
    if (!has_model_config(row)) {
      return Status::unsupported(
          "convention", row.name,
          "must be " + names_of(has_model_config) + " for a quantization_config");
    }
    const std::string text = config.empty() ? "{\n}\n" : config;
    const auto members = json_members(text, origin);
    if (!members) return members.status();
    const JsonMember* old = find_member(*members, kMember);
    if (old != nullptr && old->value != "null") {
      return Status::invalid(origin, "has a quantization_config",
                             "the model is quantised already; needs its float weights");
    }
    const Json added = row.config == ModelConfig::kModelOpt ? modelopt_config(report)
                                                            : compressed_tensors_config(report);
    return with_json_member(text, *members, kMember, indented(added.dump(2)));
  });
}

}  // namespace dualgemm::checkpoint
