// What readers of a weight of any quantisation share: its tensors by name, and the numbers for a
// whole matrix that stand beside its block scales.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/conventions.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

Status wrong_tensor(const TensorFile& file, const std::string& tensor, std::string observed,
                    std::string rule, StatusCode code = StatusCode::kCorruptFile);

// Dtype and shape, for messages.
std::string describe(const TensorView& tensor);

// kNotFound, with near names where options.near_names.
Expected<TensorView> required_tensor(const TensorFile& file, const std::string& name,
                                     const WeightOptions& options);

// kCorruptFile where the names' convention has its own name for the data and MODULE.weight is
// there, too.
Status check_alone(const TensorFile& file, const std::string& module, const WeightNames& names);

struct GlobalScales {
  std::vector<float> multipliers, divisors;  // divisors: empty unless they are known
};

// Positive FP32 values. `experts` = 0: one or two. `expert`: only those of this one.
Expected<GlobalScales> read_global_scales(const TensorFile& file, const std::string& name,
                                          bool are_divisors, int64_t experts,
                                          const std::optional<int64_t>& expert,
                                          const WeightOptions& options);

// The input scales of `weight`, whose names, convention and experts are known; `expert` as above.
Status read_input_scales(const TensorFile& file, const std::optional<int64_t>& expert,
                         const WeightOptions& options, Weight& weight);

// Stores `divisors`, or where they are not known the multipliers' reciprocals, or the multipliers.
// What division would not give back is kept in the metadata.
Status add_global_scales(TensorFile& out, const std::string& name,
                         const std::vector<float>& multipliers, const std::vector<float>& divisors,
                         const ConventionRow& row);

}  // namespace dualgemm::checkpoint
