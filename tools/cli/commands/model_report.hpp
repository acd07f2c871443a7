// What `validate` says of a whole model: its linear layers by format, where config and tensors
// disagree, what lacks, and whether it fits this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/linear_layers.hpp"
#include "tools/cli/commands/token_rate.hpp"
#include "tools/cli/print/json.hpp"

namespace dualgemm::cli {

// Layers of one kind, format and scheme of activations.
struct FormatCount {
  checkpoint::LayerKind kind;
  checkpoint::LinearScheme scheme;
  int64_t layers = 0, matrices = 0, bytes = 0;
  std::string refusal;  // why load() has no place for it; empty: it has
};

struct ModelReport {
  std::string quantization;        // "compressed-tensors, mixed-precision"; empty: none
  std::vector<std::string> notes;  // for people; the model is sound all the same
  std::vector<std::string> errors;
  std::vector<FormatCount> formats;
  int64_t bytes = 0;           // of all tensors
  WeightsOfAToken of_a_token;  // experts, as config.json has them
  std::string machine;         // one sentence
};

// Nothing where no config.json lies beside the file: it is no model. Reads names, shapes and the
// configs, no weights.
std::optional<ModelReport> report_model(const checkpoint::TensorFile& file);

// To stdout; notes and errors to stderr.
void print_model(const ModelReport& report);
Json model_json(const ModelReport& report);

}  // namespace dualgemm::cli
