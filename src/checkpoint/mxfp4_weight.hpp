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

// Data and scales of MODULE where they are MXFP4; nothing: they are not.
std::optional<WeightNames> find_mxfp4(const TensorFile& file, const std::string& module);

// As load_weight_part() of that weight, as NVFP4 with scales of its own (mxfp4.hpp). Without
// `expert` a weight of several experts is its shape alone, without scales.
Expected<Weight> load_mxfp4(const TensorFile& file, const WeightNames& names,
                            const WeightOptions& options, const std::optional<int64_t>& expert);

// How many matrices the tensor of a weight's data holds; 0: it is one.
int64_t experts_in(const TensorView& data) noexcept;

}  // namespace dualgemm::checkpoint
