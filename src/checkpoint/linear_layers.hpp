// Every linear layer of a checkpoint: what its tensors are, and what the model's configs say of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/model_quantization.hpp"
#include "checkpoint/quantization_scheme.hpp"
#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// What a layer is for, by its name: memory and formats are told apart by it.
enum class LayerKind : int32_t { kMlp, kExperts, kAttention, kOther };
const char* name_of(LayerKind kind) noexcept;  // "mlp", "experts", "attention", "other"

struct LinearLayer {
  std::string module;
  LayerKind kind = LayerKind::kOther;
  int64_t n = 0, k = 0;  // of one matrix
  int64_t experts = 0;   // > 0: its tensors hold so many matrices
  int64_t bytes = 0;     // of its data and scales
  // Format and granularity as the tensors have them. The activations are what the config says,
  // where it speaks of this layer, else kStatic where the file has an input scale.
  LinearScheme scheme;
  // Where the config says something else than the tensors, which count: "config_groups.group_1 says
  // FP8 channel". Empty: they agree, or no config speaks.
  std::string contradiction;
  int64_t hadamard = 0;  // ModelQuantization::hadamard_of()
};

// Sorted by module; embeddings, norms and convolutions are none. In time linear in the tensors but
// for the lengths of names and of the config's patterns.
// kUnsupported: as hadamard_of(), or a rotation by more columns than fit.
Expected<std::vector<LinearLayer>> list_linear_layers(const TensorFile& file,
                                                      const ModelQuantization& quantization);

// For readers of single layers: a config that says nothing of layers here (no JSON, another
// quant_method) is no reason to refuse one; a transform that is not computed is, kUnsupported.
Expected<ModelQuantization> quantization_beside(const TensorFile& file);

// The folder whose configs describe the file: where it was opened from. Empty: memory.
std::string folder_of_model(const TensorFile& file);

}  // namespace dualgemm::checkpoint
