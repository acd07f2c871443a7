#pragma once

#include "tools/checkpoint/layer_problem.hpp"
#include "tools/cli/options.hpp"

namespace dualgemm::cli {

inline checkpoint::LayerSource layer_source(const LayerFiles& files) {
  return {files.weights,    files.prefix,        files.activations,    files.activations_tensor,
          files.u2_is_bf16, files.stacked_order, files.max_input_scale};
}

}  // namespace dualgemm::cli
