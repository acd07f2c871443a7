// One expert of a weight that holds several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"

namespace dualgemm::checkpoint {

// kInvalidArgument unless `expert` is one of the weight's.
Status check_expert_of(const Weight& weight, int64_t expert);

// As slice_expert(), but the scalars stay as they are.
Expected<Weight> slice_matrix(const Weight& weight, int64_t expert);

// As load_weight(); with `expert` and tensors of several experts that one, of whose scalars alone
// is read: experts that are asked for one after the other take as long as all of them together. A
// plain weight of several experts is not cut, and MXFP4 is not yet converted (convert_mxfp4()).
// Throws where memory lacks.
Expected<Weight> load_weight_part(const TensorFile& file, const std::string& module,
                                  const WeightOptions& options,
                                  const std::optional<int64_t>& expert);

}  // namespace dualgemm::checkpoint
