// The conventions in which checkpoints keep the weights of a linear layer: one row each, which
// every reader, writer and option asks. One more is an enumerator here and a row in
// conventions.cpp.
//
// What a row's tensors hold:
//
//   values         F32, F16 or BF16 [N, K]
//   codes          U8 [N, K/2] (or F4 [N, K])
//   ggml blocks    U8 [N, K/64*36]: codes and scales of 64 values
//   block scales   F8_E4M3 or U8, [N, K/16], or swizzled: [round_up(N, 128), round_up(K/16, 4)],
//                  the same bytes flat, or as torchao shapes them. Where N and K leave no padding,
//                  a matrix of scales is linear and a flat one swizzled, unless metadata or
//                  options say otherwise.
//   global scale   F32, shape [] or [1], in a stacked tensor also [2]
//   input scale    the same, the global scale of A; may be missing
//
// Experts may be one tensor each of three extents [E, ...], the last two as above or, as ModelOpt
// writes Llama-4 and gpt-oss, transposed: codes [E, K/2, N], scales [E, K/16, N]. Global scales
// then are one, [E] (any shape), or [E, 2] when stacked. Such a tensor's name may be the module's
// own: ConventionRow::parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

enum class Convention : int32_t {
  kPlain = 0,
  kModelOpt = 1,
  kCompressedTensors = 2,
  kGgml = 3,
  kTorchao = 4,
};

enum class Stored { kValues, kCodes, kGgmlBlocks };  // what the tensor of the data holds
enum class ScalarRule { kMultiplier, kDivisor };     // how global and input scales are stored
enum class ModelConfig { kNone, kModelOpt, kCompressedTensors };  // quantization_config of a model

// What stands behind a module's name in the names of its tensors; null: the convention has none.
struct Suffixes {
  const char* data = nullptr;
  const char* scales = nullptr;
  const char* global_scale = nullptr;
  const char* input_scale = nullptr;
  bool underscore = false;  // another before the module's last name: PARENT._NAME_qdata
};

struct ConventionRow {
  Convention id;
  const char* name;    // in options, JSON and metadata; options take '-' for '_', too
  Suffixes module;     // MODULE.weight
  Suffixes parameter;  // where the weight is a parameter with MODULE's own name; no data: nowhere
  const char* gguf_global_scale = nullptr;  // what stands there for module.global_scale
  Stored stored = Stored::kCodes;
  ScalarRule scalars = ScalarRule::kMultiplier;
  bool scalar_is_vector = false;  // one global scale is written as [1], else as []
  bool needs_global_scale = true;
  bool can_write = true;
  // A MODULE.weight beside its data is an error: another tool's leftovers, or two weights.
  bool stands_alone = false;
  // The metadata may describe a weight under the name of its parameter, as torchao's do.
  bool described_in_metadata = false;
  ModelConfig config = ModelConfig::kNone;
};

// In the order of the enumerators.
std::span<const ConventionRow> conventions() noexcept;
const ConventionRow& row_of(Convention convention) noexcept;

const char* name_of(Convention convention) noexcept;
Expected<Convention> parse_convention(const std::string& name);

// Whether `convert` and `quantize` make it.
bool is_target(const ConventionRow& row) noexcept;
// An error of this code unless they do.
Status check_target(Convention convention, StatusCode code);
// "a, b or c": the names of the rows that satisfy `which`.
std::string names_of(bool (*which)(const ConventionRow&));

inline bool holds_blocks(Convention convention) noexcept {
  return row_of(convention).stored == Stored::kGgmlBlocks;
}
inline bool is_nvfp4(const ConventionRow& row) noexcept { return row.stored != Stored::kValues; }
inline bool has_model_config(const ConventionRow& row) noexcept {
  return row.config != ModelConfig::kNone;
}

// No other row has data of this suffix: the name alone says the convention.
bool has_own_data(const ConventionRow& row) noexcept;

}  // namespace dualgemm::checkpoint
