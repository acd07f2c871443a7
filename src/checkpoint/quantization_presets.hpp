// The names that ModelOpt and compressed-tensors give to whole schemes, and compressed-tensors'
// arguments of one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/quantization_scheme.hpp"

namespace dualgemm::checkpoint {

// compressed_tensors.quantization.QuantizationArgs, with its defaults.
struct QuantizationArguments {
  int64_t bits = 8;
  std::string type = "int";
  std::string strategy;        // empty: found from the rest
  int64_t group = 0;           // along K; 0: none
  std::vector<int64_t> block;  // rows and columns
};

// Format and granularity.
void set_weights(const QuantizationArguments& args, LinearScheme& scheme);

// ModelOpt's quant_algo; one that is not known here is kOther. group: its group_size, or 0.
LinearScheme modelopt_scheme(const std::string& algorithm, int64_t group);

// compressed_tensors.quantization.PRESET_SCHEMES; nothing: there is none of this name.
std::optional<LinearScheme> preset_scheme(std::string_view name);

}  // namespace dualgemm::checkpoint
