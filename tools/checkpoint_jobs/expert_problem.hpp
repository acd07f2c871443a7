// From files to a grouped problem: all experts of one MoE layer, and the rows that each gets.
#pragma once

#include <string>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"
#include "tools/checkpoint_jobs/layer_problem.hpp"

namespace dualgemm::checkpoint {

// How many rows each expert gets, from an npy of integers or a text of whole numbers (spaces,
// commas, line breaks between them): `experts` counts, or experts + 1 offsets, first 0,
// non-decreasing; the length tells which.
Expected<std::vector<int64_t>> read_expert_rows(const std::string& path, int64_t experts);

// `wanted`, or the only layer of the file that has experts.
Expected<std::string> choose_expert_layer(const TensorFile& file, const std::string& wanted);

struct ExpertProblem {
  Problem problem;            // kContiguous or kMasked, linear scales
  Buffers buffers;            // without D; points into what follows
  std::vector<int64_t> rows;  // of each expert
  std::string prefix;
  std::vector<std::string> notes;

  verify::AlignedBytes a, a_scales, gate, gate_scales, up, up_scales;
  std::vector<float> alpha_gate, alpha_up;
  std::vector<float> bias_gate, bias_up;  // [experts][n], or both empty
  std::vector<int32_t> offsets;           // kContiguous: experts + 1; kMasked: unused
  std::vector<int32_t> counts;
};

// `source.expert` is not looked at. Activations: float or NVFP4, [rows of all experts, K], or with
// `masked` [experts, rows, K]. When request.a is E2M1, each expert's float rows are quantised with
// that expert's input scale, else with the amax of all activations.
Expected<ExpertProblem> open_expert_problem(const LayerSource& source, const std::string& rows_path,
                                            bool masked, const Problem& request, int threads = 0);

}  // namespace dualgemm::checkpoint
