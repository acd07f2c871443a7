// The names and shapes of the tensors that make up one weight; shared by the loader, the writer and
// the converter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dualgemm/types.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/tensor.hpp"

namespace dualgemm::checkpoint {

inline constexpr int64_t kGgmlBlockValues = 64;
inline constexpr int64_t kGgmlBlockBytes = 36;

struct WeightNames {
  std::string data, scales, global_scale,
      input_scale;  // scales is empty where the convention has none
  bool scalars_are_divisors = false;
};
WeightNames weight_names(Convention convention, const std::string& module);

// Shape of the block scale tensor. Precondition: k % 16 == 0; n and k come from a checked shape.
std::vector<int64_t> scale_shape(ScaleLayout layout, int64_t n, int64_t k);

// What the options, else the metadata, else the default say.
Expected<ScaleLayout> scale_layout_of(const TensorFile& file, const WeightOptions& options);
Expected<NibbleOrder> nibble_order_of(const TensorFile& file, const WeightOptions& options);

// Which U8 tensors without block scales are ggml blocks. kMarked: those with a global scale, as
// this library writes them; other U8 tensors in the file may be anything. kAll: the caller said so.
enum class GgmlBlocks { kNone, kMarked, kAll };
Expected<GgmlBlocks> ggml_blocks_of(const TensorFile& file, const WeightOptions& options);

// True when MODULE.* are an NVFP4 weight by names and dtypes; its shapes may still be wrong.
bool is_nvfp4_weight(const TensorFile& file, const std::string& module, GgmlBlocks ggml);

// Records in the metadata how `weight` is laid out; refuses a file that already holds another kind.
Status record_layout(TensorFile& out, const Weight& weight);

}  // namespace dualgemm::checkpoint
