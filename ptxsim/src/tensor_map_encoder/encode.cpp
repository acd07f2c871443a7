#include "ptxsim/tensor_map.hpp"

#include "tensor_map_encoder/bits.hpp"
#include "tensor_map_encoder/checks.hpp"

namespace ptxsim {
namespace {

// Addresses and strides of these must be multiples of 32 rather than 16.
bool needs_32_bytes(const TensorMap& map) {
  return map.interleave == TensorMapInterleave::k32 || is_packed_with_gaps(map.type);
}

Problem check_enums(const TensorMap& map) {
  const auto range = [](const char* name, uint32_t value, uint32_t last) -> Problem {
    if (value <= last) return std::nullopt;
    return observed(name, value, "must be 0 .. " + std::to_string(last));
  };
  if (auto p = range("tensorDataType", static_cast<uint32_t>(map.type), 15)) return p;
  if (auto p = range("interleave", static_cast<uint32_t>(map.interleave), 2)) return p;
  if (auto p = range("swizzle", static_cast<uint32_t>(map.swizzle), 6)) return p;
  if (auto p = range("l2Promotion", static_cast<uint32_t>(map.l2_promotion), 3)) return p;
  return range("oobFill", static_cast<uint32_t>(map.fill), 1);
}

Problem check_rank(const TensorMap& map) {
  if (map.rank < 1 || map.rank > kTensorMapMaxRank)
    return observed("tensorRank", map.rank, "must be 1 .. 5");
  if (map.interleave != TensorMapInterleave::kNone && map.rank < 3)
    return observed("tensorRank", map.rank, "must be at least 3 with an interleaved layout");
  return std::nullopt;
}

Problem check_address(const TensorMap& map) {
  if (map.address % 16 != 0)
    return observed("globalAddress", map.address, "must be a multiple of 16");
  if (needs_32_bytes(map) && map.address % 32 != 0)
    return observed("globalAddress", map.address,
                    "must be a multiple of 32 with interleave 32B and with the ALIGN16B types");
  return std::nullopt;
}

Problem check_extents(const TensorMap& map) {
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.extents[i] < 1 || map.extents[i] > uint64_t{1} << 32)
      return observed(at("globalDim", i), map.extents[i], "must be 1 .. 2^32");
  }
  if (is_packed_with_gaps(map.type) && map.extents[0] % 128 != 0)
    return observed("globalDim[0]", map.extents[0],
                    "must be a multiple of 128 with the ALIGN16B types");
  if (map.type == TensorMapType::k16U4Align8 && map.extents[0] % 2 != 0)
    return observed("globalDim[0]", map.extents[0], "must be even with type 16U4_ALIGN8B");
  return std::nullopt;
}

// The manual also writes that each stride holds the one before it; the driver takes others (CUTLASS
// gives 0 for a dimension of extent 1), so that is no check.
Problem check_strides(const TensorMap& map) {
  for (uint32_t i = 0; i + 1 < map.rank; ++i) {
    const uint64_t stride = map.stride_bytes[i];
    if (stride % 16 != 0)
      return observed(at("globalStrides", i), stride, "must be a multiple of 16");
    if (needs_32_bytes(map) && stride % 32 != 0)
      return observed(at("globalStrides", i), stride,
                      "must be a multiple of 32 with interleave 32B and with the ALIGN16B types");
    if (stride >= uint64_t{1} << 40)
      return observed(at("globalStrides", i), stride, "must be below 2^40");
  }
  return std::nullopt;
}

Problem check_box(const TensorMap& map) {
  if (map.mode != TensorMapMode::kTiled) return check_im2col(map);
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.box[i] < 1 || map.box[i] > 256)
      return observed(at("boxDim", i), map.box[i], "must be 1 .. 256");
  }
  return check_innermost(map, "boxDim[0]");
}

Problem check_element_strides(const TensorMap& map) {
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.element_strides[i] < 1 || map.element_strides[i] > 8)
      return observed(at("elementStrides", i), map.element_strides[i], "must be 1 .. 8");
  }
  return std::nullopt;
}

Problem check_combinations(const TensorMap& map) {
  const uint32_t swizzle = static_cast<uint32_t>(map.swizzle);
  if (map.interleave == TensorMapInterleave::k32 && map.swizzle != TensorMapSwizzle::k32)
    return observed("swizzle", swizzle, "must be 1 (32B) with interleave 32B");
  if (map.type == TensorMapType::k16U6Align16) {
    if (map.interleave != TensorMapInterleave::kNone)
      return observed("interleave", static_cast<uint32_t>(map.interleave),
                      "must be 0 (none) with type 16U6_ALIGN16B");
    const bool legal = swizzle == 0 || swizzle == 3 || swizzle == 4 || swizzle == 6;
    if (!legal)
      return observed("swizzle", swizzle,
                      "must be 0 (none), 3 (128B), 4 (128B_ATOM_32B) or 6 (128B_ATOM_64B) with "
                      "type 16U6_ALIGN16B");
  }
  if (map.type == TensorMapType::k16U4Align16 && swizzle != 0 && swizzle != 3 && swizzle != 4)
    return observed("swizzle", swizzle,
                    "must be 0 (none), 3 (128B) or 4 (128B_ATOM_32B) with type 16U4_ALIGN16B");
  if (map.fill == TensorMapFill::kNan && !is_floating(map.type))
    return observed("oobFill", 1,
                    "NaN needs a floating-point type; tensorDataType is " +
                        std::to_string(static_cast<uint32_t>(map.type)));
  return std::nullopt;
}

using Check = Problem (*)(const TensorMap&);
constexpr Check kChecks[] = {check_enums,   check_rank, check_address,         check_extents,
                             check_strides, check_box,  check_element_strides, check_combinations};

}  // namespace

Problem check_innermost(const TensorMap& map, const std::string& name) {
  const uint32_t elements = map.box[0];
  if (is_packed_with_gaps(map.type) && elements != 128)
    return observed(name, elements, "must be 128 with the ALIGN16B types");
  if (map.interleave != TensorMapInterleave::kNone) return std::nullopt;
  const uint64_t bits = uint64_t{elements} * element_bits(map.type);
  if (!is_packed_with_gaps(map.type) && bits % 128 != 0)
    return observed(
        name, elements,
        "times " + std::to_string(element_bits(map.type)) + " bits must be a multiple of 16 bytes");
  const uint32_t span = swizzle_span_bytes(map.swizzle);
  const uint64_t bytes = shared_row_bytes(map.type, elements);
  if (span != 0 && bytes > span)
    return observed(name, elements,
                    "takes " + std::to_string(bytes) + " bytes; at most the swizzle's span of " +
                        std::to_string(span) + " bytes");
  return std::nullopt;
}

uint32_t element_bits(TensorMapType type) {
  static constexpr uint8_t kBits[16] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  const uint32_t index = static_cast<uint32_t>(type);
  return index < 16 ? kBits[index] : 0;
}

bool is_packed_with_gaps(TensorMapType type) {
  return type == TensorMapType::k16U4Align16 || type == TensorMapType::k16U6Align16;
}

uint64_t shared_row_bytes(TensorMapType type, uint64_t elements) {
  if (is_packed_with_gaps(type)) return elements / 16 * 16;  // 16 values take 16 bytes
  return elements * element_bits(type) / 8;
}

bool is_floating(TensorMapType type) {
  const uint32_t index = static_cast<uint32_t>(type);
  return index >= static_cast<uint32_t>(TensorMapType::kF16) &&
         index <= static_cast<uint32_t>(TensorMapType::kTf32Ftz);
}

uint32_t swizzle_span_bytes(TensorMapSwizzle swizzle) {
  static constexpr uint8_t kSpan[7] = {0, 32, 64, 128, 128, 128, 128};
  const uint32_t index = static_cast<uint32_t>(swizzle);
  return index < 7 ? kSpan[index] : 0;
}

Result<TensorMapRecord> encode_tensor_map(const TensorMap& map) {
  for (const Check check : kChecks) {
    if (Problem problem = check(map))
      return Error{ErrorKind::kInput, "tensor map: " + *problem, {}};
  }
  return pack_tensor_map(map);
}

}  // namespace ptxsim
