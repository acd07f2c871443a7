// From files to a problem that can run: one gated MLP layer of a checkpoint and its activations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::checkpoint {

struct LayerSource {
  std::string weights;             // file or folder, see checkpoint::TensorFile::open
  std::string prefix;              // empty: the only layer of the file
  std::string activations;         // [..., K]; all but the last extent make up M
  std::string activations_tensor;  // empty: the only tensor, or NVFP4 module, of the file
  bool u2_is_bf16 = false;         // an npy of uint16 holds bf16
  checkpoint::StackedOrder stacked_order = checkpoint::StackedOrder::kGateFirst;
  bool max_input_scale = false;        // see checkpoint::LayerOptions
  bool allow_nan = false;              // see checkpoint::WeightOptions
  std::optional<int64_t> expert = {};  // see checkpoint::LayerOptions
};

struct LayerProblem {
  Problem problem;
  Buffers buffers;  // without D; points into what follows
  checkpoint::MlpLayer layer;
  checkpoint::TensorFile activation_file;
  verify::AlignedBytes a, a_scales;
  std::string prefix;              // the layer that was taken
  std::vector<std::string> notes;  // what was decided on the way, one sentence each
};

// source.prefix, or the only layer of the file (with source.expert: the only one with experts).
Expected<std::string> choose_prefix(const TensorFile& file, const LayerSource& source);

// An error when the request has a bias: biases come from the files.
Status check_no_bias_wanted(const Problem& request);

// `request` says the types of A and D, scale layouts, activation and options; m, n, k, l, the
// layouts of Gate and Up and their biases come from the files. When request.a is E2M1, float
// activations are quantised: with the checkpoint's input scale, else with their own amax.
Expected<LayerProblem> open_layer_problem(const LayerSource& source, const Problem& request,
                                          int threads = 0);

// A TensorFile of one tensor, or one NVFP4 weight in ModelOpt's names, that holds D of a finished
// run (l = 1).
Expected<checkpoint::TensorFile> output_tensors(const Problem& problem,
                                                const verify::Output& output,
                                                const std::string& name);

}  // namespace dualgemm::checkpoint
