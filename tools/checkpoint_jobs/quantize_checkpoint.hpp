// Float checkpoint in, NVFP4 checkpoint out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/formats.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/quantization_error.hpp"

namespace dualgemm::checkpoint {

// [..., K]: amax/(6*448) of these activations becomes the input scale of every weight with K
// columns.
struct Calibration {
  checkpoint::TensorView activations;
  std::string origin;  // its file, for messages
};

struct QuantizeCheckpointOptions {
  checkpoint::Convention convention = checkpoint::Convention::kModelOpt;  // not kPlain
  // Exact names, which must fit; empty: every 2-D float tensor that fits, begins with `prefix` and
  // is not among patterns_left_alone(), or with `include` every one that fits and that one of its
  // patterns matches. `exclude` wins over both.
  std::vector<std::string> tensors;
  std::string prefix;
  std::vector<std::string> include, exclude;  // see matches_glob()
  // Projections that loaders fuse (Gate and Up, w1 and w3, q, k and v; each expert's own ones) get
  // one global scale, amax of all of them / 2688, as ModelOpt gives them: vLLM and others keep one
  // of the scales and apply it to all. Set: each tensor its own.
  bool separate_scales = false;
  QuantizeOptions quantize;               // of each tensor; scale_layout must be kLinear for kGgml
  std::vector<Calibration> calibrations;  // of several with the same K the largest scale counts
  bool measure_error = false;
};

struct QuantizedTensor {
  std::string name, module;
  int64_t n = 0, k = 0;
  int64_t bytes_before = 0, bytes_after = 0;
  float global_scale = 1.0f;
  bool shares_scale = false;
  bool has_input_scale = false;
  std::optional<QuantizationError> error;
};

struct QuantizeCheckpointReport {
  std::vector<QuantizedTensor> quantized;
  std::vector<std::string> copied;
  std::vector<std::string> left_alone;  // of those copied: would fit, but a pattern names them
  std::vector<std::string> unfit;       // of those copied: float matrices that do not fit
};

struct QuantizationChoice;  // quantize_selection.hpp

// Tensors that are not quantised, and the metadata, pass through. A NaN or an infinity in a tensor
// is an error that names file, tensor and place.
Expected<checkpoint::TensorFile> quantize_checkpoint(const checkpoint::TensorFile& in,
                                                     const QuantizeCheckpointOptions& options,
                                                     QuantizeCheckpointReport* report = nullptr);

// The same for a part of a checkpoint, with a choice made for the whole of it: what `in` lacks of
// the choice is no error. The report is added to.
Expected<checkpoint::TensorFile> quantize_chosen(const checkpoint::TensorFile& in,
                                                 const QuantizationChoice& choice,
                                                 const QuantizeCheckpointOptions& options,
                                                 QuantizeCheckpointReport& report);

}  // namespace dualgemm::checkpoint
