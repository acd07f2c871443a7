// The names and shapes of the tensors that make up one weight; shared by the loader, the writer and
// the converter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/tensor.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::checkpoint {

inline constexpr int64_t kGgmlBlockValues = 64;
inline constexpr int64_t kGgmlBlockBytes = 36;

// What helps where a scale is NaN or infinite, as the end of a rule.
inline constexpr const char* kAllowNanTakesIt = "--allow-nan (allow_nan) takes it as it is";

// The names that a convention gives to the tensors of `module`.
WeightNames weight_names(Convention convention, const std::string& module);

// The tensors of `module` that are in the file: named as in a convention, as a parameter with the
// module's own name, or as in GGUF. Nothing when no tensor holds its data.
std::optional<WeightNames> find_names(const TensorFile& file, const std::string& module);

// The module whose tensor `name` is, if it ends in this suffix of a convention; null: no suffix.
std::optional<std::string> module_before(const std::string& name, const char* suffix,
                                         bool underscore);

// The module whose data the tensor could hold, by its name alone; nothing for other tensors.
std::optional<std::string> module_of_data(const TensorFile& file, const std::string& name);

// Shape of the block scale tensor. Precondition: k % 16 == 0; n and k come from a checked shape.
std::vector<int64_t> scale_shape(ScaleLayout layout, int64_t n, int64_t k);

// What the options, else the metadata say; nothing: the shape of the scales decides.
Expected<std::optional<ScaleLayout>> scale_layout_of(const TensorFile& file,
                                                     const std::string& module,
                                                     const WeightOptions& options);
// The layout that a block scale tensor of this shape has: `wanted`, else found from the shape.
// Nothing when the shape fits none. `shape` is that of one matrix; n * k / 2 bytes exist.
std::optional<ScaleLayout> layout_of_shape(std::span<const int64_t> shape, int64_t n, int64_t k,
                                           std::optional<ScaleLayout> wanted);
Expected<NibbleOrder> nibble_order_of(const TensorFile& file, const WeightOptions& options);

// Which U8 tensors without block scales are ggml blocks. kMarked: those with a global scale, as
// this library writes them; other U8 tensors in the file may be anything. kAll: the caller said so.
enum class GgmlBlocks { kNone, kMarked, kAll };
Expected<GgmlBlocks> ggml_blocks_of(const TensorFile& file, const WeightOptions& options);

// True when MODULE.* are an NVFP4 weight by names and dtypes; its shapes may still be wrong.
bool is_nvfp4_weight(const TensorFile& file, const std::string& module, GgmlBlocks ggml);

// True when the scales of MODULE have one byte for 32 values: MXFP4, which is not NVFP4.
bool has_mx_scales(const TensorView& data, const TensorView& scales);

// Records in the metadata how `weight` is laid out; refuses a file that already holds another kind.
Status record_layout(TensorFile& out, const Weight& weight);

}  // namespace dualgemm::checkpoint
