// Weights in MXFP4: under gpt-oss's names (MODULE_blocks, MODULE_scales), and where others keep
// NVFP4 but with one byte of scale for 32 values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"

namespace dualgemm::checkpoint {

// gpt-oss's names.
inline constexpr const char* kMxBlocks = "_blocks";
inline constexpr const char* kMxScales = "_scales";

// The tensors of MODULE where they are MXFP4; nothing: they are not.
std::optional<WeightNames> find_mxfp4(const TensorFile& file, const std::string& module);

// As load_weight_part() of that weight, but scales are its exponents still, E8M0 [n, k/32], until
// convert_mxfp4(): rows that are two matrices, Gate and Up, have a span of exponents each.
// kCorruptFile: a global scale stands beside them, which MXFP4 has not.
Expected<Weight> load_mxfp4(const TensorFile& file, const std::string& module,
                            const WeightNames& names, const WeightOptions& options,
                            const std::optional<int64_t>& expert);

// Makes NVFP4's scales of the exponents (mxfp4.hpp), exactly; weight.owner owns them. `tensor`: the
// one of the exponents, for messages. A weight that is not from MXFP4 stays as it is.
Status convert_mxfp4(Weight& weight, bool allow_nan, const std::string& tensor);

// The tensor of a weight's block scales, for messages.
std::string place_of_scales(const TensorFile& file, const Weight& weight,
                            const std::optional<int64_t>& expert);

// How many matrices the tensor of a weight's data holds; 0: it is one.
int64_t experts_in(const TensorView& data) noexcept;

}  // namespace dualgemm::checkpoint
