#include "checkpoint/model_quantization.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <map>

#include "checkpoint/config_object.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/mapped_file.hpp"
#include "checkpoint/quantization_presets.hpp"
#include "core/row_transform.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr int64_t kMostConfigBytes = 64 << 20;  // real ones have below 1 MiB

bool is_file(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Expected<std::string> text_of_file(const std::string& path) {
  if (!is_file(path)) return std::string();
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  const std::span<const std::byte> bytes = (*mapped)->bytes();
  if (static_cast<int64_t>(bytes.size()) > kMostConfigBytes) {
    return Status::error(StatusCode::kCorruptFile, path, fmt::format("{} bytes", bytes.size()),
                         fmt::format("must be at most {}", kMostConfigBytes));
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

// Fills one ModelQuantization.
class QuantizationParser {
 public:
  explicit QuantizationParser(std::string folder) : folder_(std::move(folder)) {}

  Expected<ModelQuantization> parse(std::string_view config, std::string_view hf_config) {
    ConfigObject described, hf;
    DUALGEMM_TRY(find_config(config, described));
    DUALGEMM_TRY(find_hf_config(hf_config, hf));
    if (described.exists()) {
      DUALGEMM_TRY(read_config(described, hf));
    } else if (hf.exists()) {
      result_.method_ = "modelopt";
      DUALGEMM_TRY(read_modelopt(hf, hf));
    }
    return std::move(result_);
  }

 private:
  Status find_config(std::string_view text, ConfigObject& found) const {
    if (text.empty()) return {};
    const Expected<ConfigObject> root = ConfigObject::parse(text, folder_ + "/config.json");
    if (!root) return root.status();
    for (const char* key : {"quantization_config", "compression_config"}) {
      DUALGEMM_TRY(root->object(key, found));
      if (found.exists()) return {};
    }
    ConfigObject language;  // a model of several towers keeps that of its language model there
    DUALGEMM_TRY(root->object("text_config", language));
    return language.exists() ? language.object("quantization_config", found) : Status();
  }

  Status find_hf_config(std::string_view text, ConfigObject& found) const {
    if (text.empty()) return {};
    const Expected<ConfigObject> root =
        ConfigObject::parse(text, folder_ + "/hf_quant_config.json");
    if (!root) return root.status();
    return root->object("quantization", found);
  }

  Status read_config(const ConfigObject& config, const ConfigObject& hf) {
    DUALGEMM_TRY(config.text("quant_method", result_.method_));
    const std::string& method = result_.method_;
    if (method.empty() && (config.has("quant_algo") || config.has("quantized_layers")))
      result_.method_ = "modelopt";
    if (method.empty() && config.has("config_groups")) result_.method_ = "compressed-tensors";
    if (method.starts_with("modelopt")) return read_modelopt(config, hf);
    if (method == "compressed-tensors") return read_compressed_tensors(config);
    if (method == "mxfp4") return read_mxfp4(config);
    if (method == "fp8" || method == "fbgemm_fp8") return read_fp8(config);
    return {};  // the tensors speak for themselves, or are of no format here
  }

  // ---- ModelOpt
  Status read_modelopt(const ConfigObject& config, const ConfigObject& hf) {
    DUALGEMM_TRY(config.text("quant_algo", result_.algorithm_));
    DUALGEMM_TRY(note_cache(config));
    DUALGEMM_TRY(compare(hf));
    for (const char* key : {"ignore", "exclude_modules"}) {
      DUALGEMM_TRY(config.each_text(key, [&](const std::string& text, const std::string&) {
        result_.ignore_.add(ModulePattern::of_exclusion(text));
        return Status();
      }));
    }
    if (config.has("quantized_layers")) return read_quantized_layers(config);
    if (config.has("config_groups")) return read_groups(config);
    if (!is_mixed(result_.algorithm_)) return add_algorithm(config);
    // config.json that only names the algorithm: the list of layers is in the other file.
    if (hf.exists() && hf.has("quantized_layers")) return read_quantized_layers(hf);
    return config.wrong("quant_algo", result_.algorithm_,
                        "needs quantized_layers or config_groups, which say what each layer is");
  }

  static bool is_mixed(const std::string& algorithm) { return algorithm == "MIXED_PRECISION"; }

  // Both files are ModelOpt's: where they differ somebody has edited one.
  Status compare(const ConfigObject& hf) {
    std::string other;
    if (!hf.exists()) return {};
    DUALGEMM_TRY(hf.text("quant_algo", other));
    if (other == result_.algorithm_ || result_.algorithm_.empty()) return {};
    result_.notes_.push_back(
        fmt::format("hf_quant_config.json says quant_algo {}, config.json {}, which counts",
                    printable(other), printable(result_.algorithm_)));
    return {};
  }

  Status read_quantized_layers(const ConfigObject& config) {
    ConfigObject layers;
    DUALGEMM_TRY(config.object("quantized_layers", layers));
    // One group for all layers of one algorithm, whose names may be ten thousands.
    std::map<std::pair<std::string, int64_t>, SchemeGroup> groups;
    const auto read_layer = [&](const std::string& name, const ConfigObject& layer) -> Status {
      std::string algorithm;
      int64_t group_size = 0;
      DUALGEMM_TRY(read_algorithm(layer, config, algorithm, group_size));
      if (algorithm.empty()) return {};  // null: not quantised
      SchemeGroup& group = groups[{algorithm, group_size}];
      group.targets.add(ModulePattern::of_holder(name));
      group.scheme = modelopt_scheme(algorithm, group_size);
      group.scheme.source = "quantized_layers";
      return {};
    };
    DUALGEMM_TRY(layers.each_object(read_layer));
    for (auto& [algorithm, group] : groups) result_.groups_.push_back(std::move(group));
    return {};
  }

  static Status read_algorithm(const ConfigObject& from, const ConfigObject& outer,
                               std::string& algorithm, int64_t& group_size) {
    DUALGEMM_TRY(from.text("quant_algo", algorithm));
    DUALGEMM_TRY(from.integer("group_size", group_size));
    return group_size == 0 ? outer.integer("group_size", group_size) : Status();
  }

  // One algorithm for all layers.
  Status add_algorithm(const ConfigObject& config) {
    std::string algorithm;
    int64_t group_size = 0;
    DUALGEMM_TRY(read_algorithm(config, config, algorithm, group_size));
    if (algorithm.empty()) return {};
    SchemeGroup added;
    added.scheme = modelopt_scheme(algorithm, group_size);
    added.scheme.source = "quant_algo";
    result_.groups_.push_back(std::move(added));
    return {};
  }

  // ---- compressed-tensors; ModelOpt's config_groups have the same form
  Status read_compressed_tensors(const ConfigObject& config) {
    DUALGEMM_TRY(config.text("format", result_.algorithm_));
    DUALGEMM_TRY(note_cache(config));
    DUALGEMM_TRY(config.each_text("ignore", [&](const std::string& text, const std::string& at) {
      return add_target(text, at, result_.ignore_);
    }));
    DUALGEMM_TRY(read_transforms(config));
    return read_groups(config);
  }

  static Status add_target(const std::string& text, const std::string& at,
                           ModulePatterns& patterns) {
    Expected<ModulePattern> pattern = ModulePattern::of_target(text, at);
    if (!pattern) return pattern.status();
    patterns.add(*std::move(pattern));
    return {};
  }

  Status read_groups(const ConfigObject& config) {
    ConfigObject groups;
    DUALGEMM_TRY(config.object("config_groups", groups));
    if (!groups.exists()) return {};
    return groups.each([&](const std::string& name, std::string_view value) -> Status {
      SchemeGroup group;
      group.scheme.source = "config_groups." + name;
      const auto targets = [&](const std::string& text, const std::string& at) {
        return add_target(text, at, group.targets);
      };
      if (value.starts_with('[')) {  // "FP8_DYNAMIC": ["Linear"]
        DUALGEMM_TRY(groups.each_text(name, targets));
        const std::optional<LinearScheme> preset = preset_scheme(name);
        if (!preset) return groups.wrong(name, name, "is no scheme that compressed-tensors has");
        const std::string source = group.scheme.source;
        group.scheme = *preset;
        group.scheme.source = source;
      } else {
        ConfigObject described;
        DUALGEMM_TRY(groups.object(name, described));
        if (!described.exists()) return {};
        DUALGEMM_TRY(described.each_text("targets", targets));
        DUALGEMM_TRY(
            described.each_text("ignore", [&](const std::string& text, const std::string& at) {
              return add_target(text, at, group.ignore);
            }));
        DUALGEMM_TRY(read_weights(described, group.scheme));
        DUALGEMM_TRY(read_activations(described, group.scheme));
      }
      result_.groups_.push_back(std::move(group));
      return {};
    });
  }

  static Status read_weights(const ConfigObject& group, LinearScheme& scheme) {
    ConfigObject weights;
    DUALGEMM_TRY(group.object("weights", weights));
    if (!weights.exists()) return {};  // activations alone
    QuantizationArguments args;
    DUALGEMM_TRY(weights.integer("num_bits", args.bits));
    DUALGEMM_TRY(weights.text("type", args.type));
    DUALGEMM_TRY(weights.text("strategy", args.strategy));
    DUALGEMM_TRY(weights.integer("group_size", args.group));
    DUALGEMM_TRY(weights.integers("block_structure", args.block));
    set_weights(args, scheme);
    return {};
  }

  static Status read_activations(const ConfigObject& group, LinearScheme& scheme) {
    ConfigObject input;
    DUALGEMM_TRY(group.object("input_activations", input));
    if (!input.exists()) return {};  // null: left in 16 bits
    const std::string_view dynamic = input.raw("dynamic");
    if (dynamic == "true") {
      scheme.activations = ActivationScheme::kDynamic;
    } else if (dynamic == "\"local\"") {
      scheme.activations = ActivationScheme::kLocal;
    } else if (dynamic.empty() || dynamic == "false" || dynamic == "null") {
      scheme.activations = ActivationScheme::kStatic;
    } else {
      return input.wrong("dynamic", dynamic, "must be true, false or \"local\"");
    }
    return {};
  }

  // Transforms of the weights are in the weights; Hadamard matrices in front of a layer are
  // computed. Everything else is a part of the model without which every value would be wrong.
  Status read_transforms(const ConfigObject& config) {
    ConfigObject transforms, groups;
    DUALGEMM_TRY(config.object("transform_config", transforms));
    if (!transforms.exists()) return {};
    DUALGEMM_TRY(transforms.object("config_groups", groups));
    if (!groups.exists()) return {};
    return groups.each_object([&](const std::string& name, const ConfigObject& group) {
      return group.each_element("apply", [&](const ConfigObject& apply) -> Status {
        std::string location;
        DUALGEMM_TRY(apply.text("location", location));
        if (location.starts_with("weight_")) return {};
        if (location != "input") {
          return Status::error(StatusCode::kUnsupported, apply.where(),
                               "a transform at " + printable(location),
                               "is not computed; only those of weights and of inputs are");
        }
        return add_rotation(name, group, apply);
      });
    });
  }

  Status add_rotation(const std::string& name, const ConfigObject& group,
                      const ConfigObject& apply) {
    const auto refuse = [&](const std::string& observed, const char* rule) {
      return Status::error(StatusCode::kUnsupported, group.where(), observed, rule);
    };
    std::string type;
    DUALGEMM_TRY(group.text("type", type));
    if (type != "hadamard") {
      return refuse("an online transform of type " + printable(type),
                    "is not computed; only hadamard is");
    }
    if (group.raw("randomize") == "true") {
      return refuse("an online transform with randomize",
                    "is not computed: its permutation is nowhere in the config");
    }
    InputRotation rotation;
    DUALGEMM_TRY(group.integer("head_dim", rotation.size));
    const Status size = core::check_transform("head_dim", {.hadamard = rotation.size}, 0);
    if (!size.ok() || rotation.size == 0) {
      return refuse(fmt::format("an online transform with head_dim {}",
                                rotation.size == 0 ? "null" : std::to_string(rotation.size)),
                    "is not computed; blocks of 16, 32, 64, 128 or 256 columns are");
    }
    DUALGEMM_TRY(apply.each_text("targets", [&](const std::string& text, const std::string& at) {
      return add_target(text, at, rotation.targets);
    }));
    DUALGEMM_TRY(apply.each_text("ignore", [&](const std::string& text, const std::string& at) {
      return add_target(text, at, rotation.ignore);
    }));
    rotation.name = name;
    rotation.source = "transform_config.config_groups." + printable(name);
    result_.notes_.push_back(fmt::format("{} rotates inputs while the model runs, by {} columns",
                                         rotation.source, rotation.size));
    result_.rotations_.push_back(std::move(rotation));
    return {};
  }

  // ---- transformers' own
  Status read_mxfp4(const ConfigObject& config) {
    DUALGEMM_TRY(read_exclusions(config));
    SchemeGroup group;
    group.targets.add(ModulePattern::of_holder("*experts*"));
    group.scheme.format = LinearFormat::kMxfp4;
    group.scheme.granularity = Granularity::kGroup;
    group.scheme.cols = 32;
    group.scheme.source = "quant_method mxfp4";
    result_.groups_.push_back(std::move(group));
    return {};
  }

  Status read_fp8(const ConfigObject& config) {
    DUALGEMM_TRY(read_exclusions(config));
    std::vector<int64_t> block;
    DUALGEMM_TRY(config.integers("weight_block_size", block));
    std::string activations;
    DUALGEMM_TRY(config.text("activation_scheme", activations));
    if (!activations.empty() && activations != "dynamic" && activations != "static")
      return config.wrong("activation_scheme", activations, "must be dynamic or static");
    SchemeGroup group;
    QuantizationArguments args;
    args.type = "float";
    args.strategy = !block.empty()                    ? "block"
                    : result_.method_ == "fbgemm_fp8" ? "channel"
                                                      : "tensor";
    args.block = block;
    set_weights(args, group.scheme);
    group.scheme.activations =
        activations == "static" ? ActivationScheme::kStatic : ActivationScheme::kDynamic;
    group.scheme.source = "quant_method " + result_.method_;
    result_.groups_.push_back(std::move(group));
    return {};
  }

  Status read_exclusions(const ConfigObject& config) {
    for (const char* key : {"modules_to_not_convert", "ignored_layers", "ignore"}) {
      DUALGEMM_TRY(config.each_text(key, [&](const std::string& text, const std::string&) {
        result_.ignore_.add(ModulePattern::of_exclusion(text));
        return Status();
      }));
    }
    return {};
  }

  Status note_cache(const ConfigObject& config) {
    for (const char* key : {"kv_cache_scheme", "kv_cache_quant_algo"}) {
      const std::string_view value = config.raw(key);
      if (!value.empty() && value != "null")
        result_.notes_.push_back(fmt::format("{} is the engine's, of no concern to a layer", key));
    }
    return {};
  }

  std::string folder_;
  ModelQuantization result_;
};

Expected<ModelQuantization> ModelQuantization::parse(std::string_view config,
                                                     std::string_view hf_config,
                                                     const std::string& folder) {
  return guarded(folder, [&] { return QuantizationParser(folder).parse(config, hf_config); });
}

Expected<ModelQuantization> ModelQuantization::read(const std::string& folder) {
  return guarded(folder, [&]() -> Expected<ModelQuantization> {
    const Expected<std::string> config = text_of_file(folder + "/config.json");
    if (!config) return config.status();
    const Expected<std::string> hf_config = text_of_file(folder + "/hf_quant_config.json");
    if (!hf_config) return hf_config.status();
    return parse(*config, *hf_config, folder);
  });
}

bool ModelQuantization::is_ignored(std::string_view module) const {
  return ignore_.match(module) != ModuleMatch::kNone;
}

bool ModelQuantization::is_rotation(std::string_view module) const {
  for (const InputRotation& rotation : rotations_) {
    if (module.ends_with("." + rotation.name + "_input")) return true;
  }
  return false;
}

Expected<int64_t> ModelQuantization::hadamard_of(const std::string& module) const {
  const InputRotation* found = nullptr;
  for (const InputRotation& rotation : rotations_) {
    if (rotation.targets.match(module) == ModuleMatch::kNone ||
        rotation.ignore.match(module) != ModuleMatch::kNone)
      continue;
    if (found != nullptr) {
      return Status::unsupported(module, found->source + " and " + rotation.source,
                                 "rotate its input, and only one may");
    }
    found = &rotation;
  }
  return found == nullptr ? 0 : found->size;
}

std::vector<const LinearScheme*> ModelQuantization::schemes_of(std::string_view module) const {
  std::vector<const LinearScheme*> found;
  if (is_ignored(module)) return found;
  std::array<std::vector<const LinearScheme*>, 4> by_match;
  for (const SchemeGroup& group : groups_) {
    const ModuleMatch match =
        group.targets.empty() ? ModuleMatch::kClass : group.targets.match(module);
    if (match == ModuleMatch::kNone || group.ignore.match(module) != ModuleMatch::kNone) continue;
    by_match[static_cast<size_t>(match)].push_back(&group.scheme);
  }
  for (auto schemes = by_match.rbegin(); schemes != by_match.rend(); ++schemes)
    found.insert(found.end(), schemes->begin(), schemes->end());
  return found;
}

Expected<int64_t> rotation_of(const ModelQuantization& quantization, const std::string& module,
                              int64_t k) {
  const Expected<int64_t> size = quantization.hadamard_of(module);
  if (!size || *size == 0 || k % *size == 0) return size;
  return Status::unsupported(module, fmt::format("{} columns", k),
                             fmt::format("are rotated by {}, which must divide them", *size));
}

}  // namespace dualgemm::checkpoint
