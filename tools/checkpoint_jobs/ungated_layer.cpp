#include "tools/checkpoint_jobs/ungated_layer.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "checkpoint/checkpoint_tensors.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> kPairs = {
    {{"up_proj", "down_proj"},
     {"fc1", "fc2"},
     {"fc_in", "fc_out"},
     {"c_fc", "c_proj"},
     {"dense_h_to_4h", "dense_4h_to_h"},
     {"wi", "wo"}}};

bool has(const TensorFile& file, const std::string& module) {
  return find_names(file, module).has_value();
}

}  // namespace

std::optional<UngatedModules> find_ungated(const TensorFile& file, const std::string& prefix) {
  for (const char* gate : {"gate_proj", "gate_up_proj"}) {
    if (has(file, fmt::format("{}.{}", prefix, gate))) return std::nullopt;
  }
  for (const auto& [up, down] : kPairs) {
    UngatedModules found{fmt::format("{}.{}", prefix, up), fmt::format("{}.{}", prefix, down)};
    if (has(file, found.up) && has(file, found.down)) return found;
  }
  return std::nullopt;
}

std::optional<UngatedModules> find_ungated_expert(const TensorFile& file, const std::string& prefix,
                                                  int64_t expert) {
  for (const char* between : {".experts.", "."}) {
    if (auto found = find_ungated(file, fmt::format("{}{}{}", prefix, between, expert)))
      return found;
  }
  return std::nullopt;
}

int64_t count_ungated_experts(const TensorFile& file, const std::string& prefix) {
  int64_t experts = 0;
  while (find_ungated_expert(file, prefix, experts)) ++experts;
  return experts;
}

Expected<MlpLayer> load_ungated_up(const TensorFile& file, const std::string& module,
                                   LayerOptions options) {
  options.expert.reset();
  Expected<DownProjection> up = load_linear(file, module, options);
  if (!up) return up.status();
  if (up->type != DataType::kE2M1) {
    return Status::unsupported(up->down.tensor_name, dualgemm::name_of(up->type),
                               "must be NVFP4; `dualgemm quantize` makes it");
  }
  DUALGEMM_TRY(make_runnable(*up));
  MlpLayer layer;
  layer.convention = up->convention;
  layer.type = up->type;
  layer.n = up->n;
  layer.k = up->k;
  layer.scale_layout = up->scale_layout;
  layer.nibble_order = up->nibble_order;
  layer.up = std::move(up->down);
  layer.dequant_input_scale = up->dequant_input_scale;
  layer.unwritten_input_scale = up->unwritten_input_scale;
  layer.up_bias = std::move(up->bias);
  layer.pre_quant_scale = std::move(up->pre_quant_scale);
  layer.hadamard = up->hadamard;
  layer.memory = std::move(up->memory);
  return layer;
}

}  // namespace dualgemm::checkpoint
