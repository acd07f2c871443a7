// How a linear layer is quantised, in words that all formats of checkpoints share.
#pragma once

#include <cstdint>
#include <string>

namespace dualgemm::checkpoint {

enum class LinearFormat : int32_t {
  kFloat,  // left in 16 or 32 bits
  kNvfp4,  // E2M1, an E4M3 scale for 16 along K, a global scale
  kMxfp4,  // E2M1, an E8M0 scale for 32 along K
  kFp8,    // E4M3, FP32 or BF16 scales
  kMxfp8,  // E4M3, an E8M0 scale for 32 along K
  kOther,
};
enum class Granularity : int32_t { kNone, kTensor, kChannel, kBlock, kGroup };
// The input: left in 16 bits, a scale from calibration, one found while it runs; "local" is NVFP4's
// dynamic block scales below a calibrated global one.
enum class ActivationScheme : int32_t { kNone, kStatic, kDynamic, kLocal };

// "float", "nvfp4", ...; "tensor", "channel", ..., ""; "none", "static", ...
const char* name_of(LinearFormat format) noexcept;
const char* name_of(Granularity granularity) noexcept;
const char* name_of(ActivationScheme scheme) noexcept;

struct LinearScheme {
  LinearFormat format = LinearFormat::kFloat;
  Granularity granularity = Granularity::kNone;
  int64_t rows = 0, cols = 0;  // kBlock: of a block; kGroup: cols along K
  ActivationScheme activations = ActivationScheme::kNone;
  std::string description;  // kOther: what it is, "int 4 bits, group of 128"
  std::string source;       // where the config says it: "config_groups.group_0"
};

// "FP8 channel", "NVFP4": format and granularity for tables.
std::string text_of(const LinearScheme& scheme);

// Whether tensors of one scheme can be what a config calls the other: format and granularity.
bool agree(const LinearScheme& one, const LinearScheme& other) noexcept;

}  // namespace dualgemm::checkpoint
