// What the configs of a model say about its quantisation: config.json's quantization_config
// (compressed-tensors, ModelOpt, mxfp4, fp8) and ModelOpt's hf_quant_config.json. Where both speak,
// config.json counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/module_pattern.hpp"
#include "checkpoint/quantization_scheme.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// One group of a config: the modules that it claims, and what it says of them.
struct SchemeGroup {
  ModulePatterns targets;  // none: every linear layer
  ModulePatterns ignore;   // of this group alone
  LinearScheme scheme;
};

// An online rotation: the input of what it targets is multiplied by Hadamard matrices of this size.
struct InputRotation {
  ModulePatterns targets;  // none: nothing
  ModulePatterns ignore;
  int64_t size = 0;
  std::string name;    // "R4": MODULE.R4_input.weight is the matrix, where a file has it
  std::string source;  // "transform_config.config_groups.R4"
};

class ModelQuantization {
 public:
  // From the texts of the two files; empty: there is none. kCorruptFile, with the place: JSON that
  // is none, is nested too deeply, or holds a value of another kind than the format has there.
  static Expected<ModelQuantization> parse(std::string_view config, std::string_view hf_config,
                                           const std::string& folder);
  // The files in `folder`; what is missing says nothing.
  static Expected<ModelQuantization> read(const std::string& folder);

  // "modelopt", "compressed-tensors", "mxfp4", "fp8", ...; empty: the configs say nothing.
  const std::string& method() const noexcept { return method_; }
  // A word on the whole: "mixed-precision", "NVFP4".
  const std::string& algorithm() const noexcept { return algorithm_; }
  // What was read and is of no concern here, as a scheme for the KV cache; and where the two files
  // disagree. For people.
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  const std::vector<SchemeGroup>& groups() const noexcept { return groups_; }

  // Every scheme that a group has for the module, the strongest claim first: by the whole name, by
  // a pattern, by its class, and among equals in the order of the config. None: left in 16 bits.
  // Entries of `ignore` beat every target.
  std::vector<const LinearScheme*> schemes_of(std::string_view module) const;
  bool is_ignored(std::string_view module) const;
  // The size of the Hadamard matrices (RowTransform of quantize.hpp) that the layer's input is
  // multiplied by while it runs; 0: none. kUnsupported: there are two.
  Expected<int64_t> hadamard_of(const std::string& module) const;
  const std::vector<InputRotation>& rotations() const noexcept { return rotations_; }
  // Whether `module` holds the matrix of a rotation, and is no layer.
  bool is_rotation(std::string_view module) const;

 private:
  friend class QuantizationParser;
  std::string method_, algorithm_;
  std::vector<std::string> notes_;
  std::vector<SchemeGroup> groups_;
  std::vector<InputRotation> rotations_;
  ModulePatterns ignore_;
};

// hadamard_of() for a layer with k columns, which it must divide.
Expected<int64_t> rotation_of(const ModelQuantization& quantization, const std::string& module,
                              int64_t k);

}  // namespace dualgemm::checkpoint
