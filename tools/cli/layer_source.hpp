#pragma once

#include "tools/checkpoint/layer_problem.hpp"
#include "tools/cli/options.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {

inline checkpoint::LayerSource layer_source(const LayerFiles& files) {
  return {files.weights,    files.prefix,        files.activations,     files.activations_tensor,
          files.u2_is_bf16, files.stacked_order, files.max_input_scale, files.expert};
}

// Says which tensors of the file no reader understands.
inline void talk_about_left_out(const checkpoint::TensorFile& file) {
  if (file.left_out().empty()) return;
  const size_t more = file.left_out().size() - 1;
  talk(file.origin() + ": not read, of another quantisation: " + file.left_out().front() +
       (more > 0 ? " and " + std::to_string(more) + " more" : std::string()));
}

}  // namespace dualgemm::cli
