// Which tensors of a checkpoint are quantised, and which of them share one global scale.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/quantize_checkpoint.hpp"

namespace dualgemm::checkpoint {

// What is left alone unless it is asked for: embeddings, output heads, routers of experts, norms,
// convolutions, biases and the vision branch, as ModelOpt does. Patterns of matches_glob().
std::span<const char* const> patterns_left_alone();

struct QuantizationChoice {
  // Tensor -> the global scale that it shares with others; 0: its own.
  std::map<std::string, float> taken;
  std::vector<std::string> left_alone;  // would fit, but a pattern names them; sorted
  std::vector<std::string> unfit;       // of two extents and float, but columns do not fit; sorted
};

// Reads the values of tensors that share a scale. An include or exclude pattern that matches
// nothing is kNotFound.
Expected<QuantizationChoice> choose_tensors(const TensorFile& in,
                                            const QuantizeCheckpointOptions& options);

// "a.b.weight" -> "a.b"; any other name as it is.
std::string module_of_tensor(const std::string& name);

}  // namespace dualgemm::checkpoint
