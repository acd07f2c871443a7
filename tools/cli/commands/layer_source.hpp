#pragma once

#include "tools/checkpoint_jobs/layer_problem.hpp"
#include "tools/cli/options.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {

inline checkpoint::LayerSource layer_source(const LayerFiles& files) {
  return {.weights = files.weights,
          .prefix = files.prefix,
          .activations = files.activations,
          .activations_tensor = files.activations_tensor,
          .u2_is_bf16 = files.u2_is_bf16,
          .stacked_order = files.stacked_order,
          .max_input_scale = files.max_input_scale,
          .allow_nan = files.allow_nan,
          .expert = files.expert};
}

// Says which tensors of the file no reader understands.
inline void talk_about_left_out(const checkpoint::TensorFile& file) {
  if (file.left_out().empty()) return;
  const size_t more = file.left_out().size() - 1;
  talk(file.origin() + ": not read, of another quantisation: " + file.left_out().front() +
       (more > 0 ? " and " + std::to_string(more) + " more" : std::string()));
}

}  // namespace dualgemm::cli
