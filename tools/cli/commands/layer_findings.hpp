// What `validate` finds out about the gated MLP layers of a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::cli {

// Something that is wrong, and a text that is the same for all layers of which the same is wrong.
struct Defect {
  std::string message;  // empty: nothing
  std::string kind;

  bool found() const { return !message.empty(); }
};

struct DownFindings {
  DataType type = DataType::kF32;
  int64_t n = 0, k = 0;
};

struct LayerFindings {
  std::string prefix;
  Defect error;      // the file contradicts itself, or has scales that are NaN or infinite
  Defect refusal;    // why `run` cannot use it
  std::string kind;  // convention, "stacked", number of experts; empty: it could not be read
  DataType type = DataType::kF32;
  int64_t n = 0, k = 0;
  bool has_down = false;
  std::optional<DownFindings> down;   // nothing: there is none, or it is of another quantisation
  ScaleReport gate, up, down_scales;  // of all its experts

  bool is_read() const { return !kind.empty(); }
  bool has_scales() const { return is_read() && type == DataType::kE2M1; }
  bool has_down_scales() const { return down && down->type == DataType::kE2M1; }
  bool is_runnable() const { return !error.found() && !refusal.found(); }
  bool is_strict() const;  // no block scale is negative or NaN
};

// Reads all that a run of these layers would use: Gate, Up and Down with their scales and biases,
// of every expert. In time linear in the file, whatever lacks in it. whole: `entries` are all
// layers of the file, so that experts which are modules of their own can be compared with each
// other.
std::vector<LayerFindings> find_in_layers(const checkpoint::TensorFile& file,
                                          const std::vector<checkpoint::LayerEntry>& entries,
                                          bool whole, bool allow_nan);

}  // namespace dualgemm::cli
