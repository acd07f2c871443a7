// MLPs without a gate in a checkpoint: Up and Down by the names that models give them.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"

namespace dualgemm::checkpoint {

struct UngatedModules {
  std::string up, down;
};

// Modules below `prefix`: up_proj and down_proj, fc1 and fc2, fc_in and fc_out, c_fc and c_proj,
// dense_h_to_4h and dense_4h_to_h, wi and wo. Nothing: it has a gate, or no such pair.
std::optional<UngatedModules> find_ungated(const TensorFile& file, const std::string& prefix);

// The same of one expert, PREFIX.experts.E or PREFIX.E.
std::optional<UngatedModules> find_ungated_expert(const TensorFile& file, const std::string& prefix,
                                                  int64_t expert);

// How many experts without a gate there are from 0 on; 0: none.
int64_t count_ungated_experts(const TensorFile& file, const std::string& prefix);

// Up as a layer whose `gate` is empty.
Expected<MlpLayer> load_ungated_up(const TensorFile& file, const std::string& module,
                                   LayerOptions options);

}  // namespace dualgemm::checkpoint
