// The activations of a run as a file holds them: float values, or NVFP4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/layer_problem.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {

struct ActivationFile {
  TensorFile file;              // what the others point into
  std::optional<Weight> nvfp4;  // else:
  TensorView values;            // of any type
  std::string name;             // of the tensor, or of the NVFP4 module
  std::vector<int64_t> shape;   // of the values, K last

  bool empty() const noexcept;
  int64_t rows() const noexcept;  // precondition: not empty
};

// source.activations: its only tensor, its only NVFP4 module where nothing lies beside it, or what
// source.activations_tensor names. Several that could be meant are an error that names them.
Expected<ActivationFile> open_activations(const LayerSource& source);

// What a model does with the input of a layer: multiplies the columns of every row by its expert's
// factors (pre_quant_scale), then rotates them (RowTransform), each rounded once, to the type of
// the values. first_rows: of each expert, non-decreasing; {0} for a layer without. Empty factors
// leave rows as they are, and so does hadamard = 0. kUnsupported: the activations are NVFP4
// already. A note says what was done.
Status transform_columns(std::span<const std::vector<float>> factors,
                         std::span<const int64_t> first_rows, int64_t hadamard,
                         ActivationFile& activations, std::vector<std::string>& notes);

// All experts of a layer have one rotation of their input; `all` is that of the experts before.
Status check_same_rotation(const std::string& name, int64_t hadamard, int64_t expert, int64_t& all);

// NVFP4 activations, tight, low nibble = even k.
struct CodedActivations {
  int64_t rows = 0, k = 0;  // rows: of all batches
  verify::AlignedBytes codes, scales;
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  std::vector<float> global_scales;  // multipliers, one for each batch [batches, rows, K]
};

// `layout`: of the scales that result; nothing: the file's, linear where it holds several batches.
Expected<CodedActivations> take_codes(const Weight& nvfp4, std::optional<ScaleLayout> layout);

// The one global scale of all batches; an error where they differ.
Expected<float> one_global_scale(const CodedActivations& activations, const std::string& name);

// Their values without the global scales, f16 or bf16: exactly, as the product of a code and a
// block scale has at most 6 significant bits.
Expected<verify::AlignedBytes> values_of(const CodedActivations& activations, DataType type);

}  // namespace dualgemm::checkpoint
