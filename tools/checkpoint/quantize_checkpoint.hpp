// Float checkpoint in, NVFP4 checkpoint out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dualgemm/formats.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/quantization_error.hpp"

namespace dualgemm::checkpoint {

struct QuantizeCheckpointOptions {
  checkpoint::Convention convention = checkpoint::Convention::kModelOpt;  // not kPlain
  std::vector<std::string>
      tensors;               // exact names, which must fit; empty: every 2-D float tensor that fits
  std::string prefix;        // only names that begin so
  QuantizeOptions quantize;  // of each tensor; scale_layout must be kLinear for kGgml
  // [..., K]: amax/(6*448) of these activations becomes the input scale of every weight with K
  // columns.
  std::optional<checkpoint::TensorView> calibration;
  bool measure_error = false;
};

struct QuantizedTensor {
  std::string name, module;
  int64_t n = 0, k = 0;
  int64_t bytes_before = 0, bytes_after = 0;
  float global_scale = 1.0f;
  bool has_input_scale = false;
  std::optional<QuantizationError> error;
};

struct QuantizeCheckpointReport {
  std::vector<QuantizedTensor> quantized;
  std::vector<std::string> copied;
};

// Tensors that are not quantised, and the metadata, pass through. A NaN or an infinity in a tensor
// is an error that names it.
Expected<checkpoint::TensorFile> quantize_checkpoint(const checkpoint::TensorFile& in,
                                                     const QuantizeCheckpointOptions& options,
                                                     QuantizeCheckpointReport* report = nullptr);

}  // namespace dualgemm::checkpoint
