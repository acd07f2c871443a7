// From files to a gated MLP that can run: a whole layer of a checkpoint, or all its experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dualgemm/mlp.hpp"
#include "tools/checkpoint_jobs/layer_problem.hpp"

namespace dualgemm::checkpoint {

struct MlpRequest {
  std::optional<DataType> x_type;  // kF16 or kBF16; nothing: the file's, BF16 if it has another
  DataType y_type = DataType::kF16;
  Activation act{};
  bool batch_invariant = false;
  bool quantize_x = false, quantize_h = false;
  float h_global_scale = 0.0f;  // 0: the checkpoint's input scale of Down
  bool experts = false;         // all of the layer, else one gated layer (or LayerSource::expert)
  std::string expert_rows;      // with experts: see read_expert_rows()
  bool masked = false;          // with experts: activations [experts, rows, K]
};

struct MlpFromFiles {
  MlpProblem problem;         // linear scales
  MlpBuffers buffers;         // without Y; points into what follows
  std::vector<int64_t> rows;  // of each expert; empty for a layer without
  std::string prefix;
  std::vector<std::string> notes;

  verify::AlignedBytes x;
  verify::AlignedBytes gate, gate_scales, up, up_scales, down, down_scales;
  std::vector<float> alpha_gate, alpha_up, alpha_down;  // of each expert
  std::vector<float> x_scale;                           // likewise, or empty
  std::vector<float> bias_gate, bias_up, bias_down;     // all of them or none
  std::vector<std::vector<float>> x_factors;            // of each expert; empty ones: none
  int64_t x_hadamard = 0;                               // RowTransform of X
  std::vector<float> h_factors;                         // of H, of all experts; empty: none
  std::vector<int32_t> offsets, counts;
};

// Activations: float or NVFP4, [..., K], or with `masked` [experts, rows, K]. NVFP4 is multiplied
// in 16 bits, exactly, quantize_x or not. With quantize_x a float X is quantised with the
// checkpoint's input scales, each expert's with its own; if one has none, each row with its amax. H
// has one scale for all experts: the largest of Down's input scales.
Expected<MlpFromFiles> open_mlp_problem(const LayerSource& source, const MlpRequest& request);

}  // namespace dualgemm::checkpoint
