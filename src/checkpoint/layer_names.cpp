#include "checkpoint/layer_names.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <string_view>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/mxfp4_weight.hpp"

namespace dualgemm::checkpoint {
namespace {

struct Family {
  const char *gate, *up, *stacked, *down;
};
constexpr std::array kFamilies = {
    Family{"gate_proj", "up_proj", "gate_up_proj", "down_proj"},
    Family{"w1", "w3", "w13", "w2"},                                             // Mixtral, vLLM
    Family{"ffn_gate", "ffn_up", "ffn_gate_up", "ffn_down"},                     // GGUF
    Family{"ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps", "ffn_down_exps"}  // its experts
};

// GGUF's shared experts lie beside the experts: PREFIX.shexp stands for PREFIX.ffn_gate_shexp and
// so on.
constexpr Family kShared = {"ffn_gate_shexp", "ffn_up_shexp", "ffn_gate_up_shexp",
                            "ffn_down_shexp"};
constexpr std::string_view kSharedPrefix = "shexp";

// Where a layer may keep its experts.
constexpr std::array kExpertPlaces = {"", "experts", "mlp.experts", "feed_forward.experts",
                                      "block_sparse_moe.experts"};

bool has_weight(const TensorFile& file, const std::string& module) {
  return find_names(file, module).has_value() || file.contains(module + kMxBlocks);
}

int64_t experts_of(const TensorFile& file, const std::string& module) {
  const std::optional<WeightNames> names = find_names(file, module);
  const TensorView* data = file.find(names ? names->data : module + kMxBlocks);
  return data == nullptr ? 0 : experts_in(*data);
}

// gpt-oss's names end behind a parameter's own, as a tensor of another name does.
std::optional<std::string> module_of_mxfp4(const std::string& name) {
  for (const char* suffix : {kMxBlocks, kMxScales}) {
    if (auto module = module_before(name, suffix, false)) return module;
  }
  return std::nullopt;
}

// The module of a tensor that stands beside its data by all conventions: where the data lack, the
// layer is broken, not absent.
std::optional<std::string> module_of_part(const std::string& name) {
  std::optional<std::string> found;
  size_t longest = 0;  // suffix: one may end in another
  for (const ConventionRow& row : conventions()) {
    for (const Suffixes& suffixes : {row.module, row.parameter}) {
      // Behind the module's own name, others keep scales beside weights that are not read.
      if (suffixes.data == nullptr || *suffixes.data == '\0') continue;
      for (const char* suffix : {suffixes.scales, suffixes.global_scale, suffixes.input_scale}) {
        auto module = module_before(name, suffix, suffixes.underscore);
        if (!module || std::string_view(suffix).size() <= longest) continue;
        longest = std::string_view(suffix).size();
        found = std::move(module);
      }
    }
  }
  return found;
}

// The prefix of the layer that `module` is a part of; nothing when it is no part of a gated layer.
std::optional<std::string> prefix_of_module(const TensorFile& file, const std::string& module) {
  const size_t dot = module.rfind('.');
  const std::string last = dot == module.npos ? module : module.substr(dot + 1);
  const std::string prefix = dot == module.npos ? std::string() : module.substr(0, dot);
  if (last == kShared.gate || last == kShared.stacked)
    return join_names(prefix, std::string(kSharedPrefix));
  for (const Family& family : kFamilies) {
    if (last == family.stacked) return prefix;
    if (last != family.gate) continue;
    // w1 alone may be anything.
    const bool alone = last == "w1" && !has_weight(file, join_names(prefix, family.up));
    return alone ? std::nullopt : std::optional(prefix);
  }
  return std::nullopt;
}

// "X.7" gives X and 7.
std::optional<std::pair<std::string, int64_t>> split_number(const std::string& prefix) {
  const size_t dot = prefix.rfind('.');
  if (dot == prefix.npos || dot + 1 == prefix.size() || prefix.size() - dot > 10)
    return std::nullopt;
  int64_t number = 0;
  for (const char c : prefix.substr(dot + 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return std::pair(prefix.substr(0, dot), number);
}

// "X.shexp" gives X.
std::optional<std::string> parent_of_shared(const std::string& prefix) {
  const size_t dot = prefix.rfind('.');
  const size_t last = dot == prefix.npos ? 0 : dot + 1;
  if (prefix.substr(last) != kSharedPrefix) return std::nullopt;
  return prefix.substr(0, last == 0 ? 0 : dot);
}

std::optional<LayerModules> family_below(const TensorFile& file, const std::string& prefix,
                                         const Family& family) {
  LayerModules modules;
  const auto take = [&](const char* name, std::string& module) {
    if (has_weight(file, join_names(prefix, name))) module = join_names(prefix, name);
  };
  take(family.gate, modules.gate);
  take(family.up, modules.up);
  take(family.stacked, modules.stacked);
  if (modules.gate.empty() && modules.stacked.empty()) return std::nullopt;
  if (std::string_view(family.gate) == "w1" && modules.up.empty() && modules.stacked.empty())
    return std::nullopt;
  modules.experts = experts_of(file, modules.gate.empty() ? modules.stacked : modules.gate);
  if (modules.stacked.empty()) modules.up = join_names(prefix, family.up);  // must exist
  modules.down = join_names(prefix, family.down);
  return modules;
}

struct ExpertPlace {
  std::string prefix;
  int64_t experts = 0;
};

// Looks for that expert alone: asking for all of them, one after the other, counts none twice.
std::optional<LayerModules> expert_below(const TensorFile& file, const std::string& prefix,
                                         int64_t expert) {
  for (const char* place : kExpertPlaces) {
    const std::string at = *place == '\0' ? prefix : join_names(prefix, place);
    std::optional<LayerModules> fused = find_modules(file, at);
    if (fused && fused->experts > 0)
      return expert < fused->experts ? std::move(fused) : std::nullopt;
    if (find_modules(file, join_names(at, "0")))
      return find_modules(file, join_names(at, std::to_string(expert)));
  }
  return std::nullopt;
}

std::optional<ExpertPlace> find_experts(const TensorFile& file, const std::string& prefix) {
  for (const char* place : kExpertPlaces) {
    const std::string at = *place == '\0' ? prefix : join_names(prefix, place);
    if (const auto modules = find_modules(file, at); modules && modules->experts > 0) {
      return ExpertPlace{at, modules->experts};
    }
    int64_t count = 0;
    while (find_modules(file, join_names(at, std::to_string(count)))) ++count;
    if (count > 0) return ExpertPlace{at, count};
  }
  return std::nullopt;
}

}  // namespace

std::string join_names(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::optional<std::pair<std::string, int64_t>> split_expert(const std::string& prefix) {
  auto split = split_number(prefix);
  if (split && !split->first.ends_with("experts")) split.reset();
  return split;
}

std::optional<LayerModules> find_modules(const TensorFile& file, const std::string& prefix) {
  if (const auto parent = parent_of_shared(prefix)) return family_below(file, *parent, kShared);
  for (const Family& family : kFamilies) {
    if (const auto modules = family_below(file, prefix, family)) return modules;
  }
  return std::nullopt;
}

Expected<LayerModules> find_expert(const TensorFile& file, const std::string& prefix,
                                   int64_t expert) {
  if (expert >= 0) {
    std::optional<LayerModules> found = expert_below(file, prefix, expert);
    if (found) return *std::move(found);
  }
  const std::optional<ExpertPlace> place = find_experts(file, prefix);
  if (!place) return count_experts(file, prefix).status();
  return Status::invalid(
      "expert", fmt::format("{}", expert),
      fmt::format("'{}' has {} experts, numbered from 0", prefix, place->experts));
}

Expected<int64_t> count_experts(const TensorFile& file, const std::string& prefix) {
  const std::optional<ExpertPlace> place = find_experts(file, prefix);
  if (place) return place->experts;
  const std::vector<std::string> layers = list_expert_layers(file);
  const std::vector<std::string_view> views(layers.begin(), layers.end());
  return Status::error(StatusCode::kNotFound, fmt::format("layer '{}'", prefix),
                       fmt::format("no experts in {}", file.origin()),
                       layers.empty()
                           ? std::string("no layer of this file has experts")
                           : fmt::format("nearest of {} layers that have: {}", layers.size(),
                                         fmt::join(nearest_names(prefix, views), ", ")));
}

std::vector<LayerEntry> list_mlp_layers(const TensorFile& file) {
  std::map<std::string, int64_t> layers;
  for (const auto& [name, tensor] : file.tensors()) {
    std::optional<std::string> module = module_of_mxfp4(name);
    if (!module) module = module_of_data(file, name);
    if (!module) module = module_of_part(name);
    if (!module) continue;
    const std::optional<std::string> prefix = prefix_of_module(file, *module);
    if (prefix) layers.emplace(*prefix, experts_of(file, *module));
  }
  std::vector<LayerEntry> entries;
  for (const auto& [prefix, experts] : layers) entries.push_back({prefix, experts});
  return entries;
}

std::vector<std::string> list_expert_layers(const TensorFile& file) {
  std::set<std::string> layers;
  for (const LayerEntry& entry : list_mlp_layers(file)) {
    if (entry.experts > 0) layers.insert(entry.prefix);
    if (const auto split = split_expert(entry.prefix)) layers.insert(split->first);
  }
  return {layers.begin(), layers.end()};
}

Status no_such_layer(const TensorFile& file, const std::string& prefix, bool near_names) {
  if (const std::optional<ExpertPlace> place = find_experts(file, prefix)) {
    return Status::error(StatusCode::kNotFound, fmt::format("layer '{}'", prefix),
                         fmt::format("{} experts in {}", place->experts, file.origin()),
                         "take one of them (--expert 0) or all (--experts)");
  }
  const auto missing = [&](std::string rule) {
    return Status::error(
        StatusCode::kNotFound, fmt::format("layer '{}'", prefix),
        fmt::format("no gate and up, and no stacked gate_up, under it in {}", file.origin()),
        std::move(rule));
  };
  if (!near_names) return missing("must be there");
  const std::vector<LayerEntry> layers = list_mlp_layers(file);
  if (layers.empty()) {  // the names of the file's own tensors tell most
    return file.get(join_names(prefix, "gate_proj.weight")).status();
  }
  std::vector<std::string_view> names;
  for (const LayerEntry& layer : layers) {
    if (layer.prefix == prefix) return missing("the weight of gate must be beside its scales");
    names.push_back(layer.prefix);
  }
  return missing(fmt::format("nearest of {} layers: {}", layers.size(),
                             fmt::join(nearest_names(prefix, names), ", ")));
}

}  // namespace dualgemm::checkpoint
