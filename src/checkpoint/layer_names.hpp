// Where the projections of a layer lie in a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// Modules (see load_weight); empty: there is none. `gate` and `up`, or `stacked`; a file that is
// wrong may have both.
struct LayerModules {
  std::string gate, up, stacked;
  std::string down;     // where it must be; not looked up
  int64_t experts = 0;  // > 0: their tensors have three extents
};

std::string join_names(const std::string& prefix, const std::string& name);

// The modules right below `prefix`; nothing when there is neither a gate nor a stacked one.
std::optional<LayerModules> find_modules(const TensorFile& file, const std::string& prefix);

// The modules of expert `expert` of the layer `prefix`: `experts` stays > 0 where they are slices.
Expected<LayerModules> find_expert(const TensorFile& file, const std::string& prefix,
                                   int64_t expert);

// Why there is no layer `prefix`: near names if wanted, or the experts below it.
Status no_such_layer(const TensorFile& file, const std::string& prefix, bool near_names);

}  // namespace dualgemm::checkpoint
