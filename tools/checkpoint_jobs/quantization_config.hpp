// What a model's folder says about its quantisation, as loaders of Hugging Face checkpoints read
// it.
#pragma once

#include <optional>
#include <string>

#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

namespace dualgemm::checkpoint {

// Modules whose float matrix was left in the model, and "lm_head" where none was quantised: what
// loaders must not expect to be NVFP4. Sorted.
std::vector<std::string> unquantized_modules(const QuantizeCheckpointReport& report);

// hf_quant_config.json in ModelOpt's form. "NVFP4" when every weight has an input scale, else
// "W4A16_NVFP4": loaders of the former wait for the scale.
std::string hf_quant_config(const QuantizeCheckpointReport& report);

// `config` (the text of config.json; empty: an object with nothing else in it) with
// quantization_config in the form of `convention`, kModelOpt or kCompressedTensors; all else keeps
// its bytes. An error when `config` is no JSON object as Python reads it (json_text.hpp) or has a
// quantization_config already; null is none.
Expected<std::string> config_with_quantization(const std::string& config, const std::string& origin,
                                               Convention convention,
                                               const QuantizeCheckpointReport& report);

}  // namespace dualgemm::checkpoint
