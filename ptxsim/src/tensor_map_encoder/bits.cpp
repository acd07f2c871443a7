#include "tensor_map_encoder/bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace ptxsim {
namespace {

using namespace tensor_map_field;

// By TensorMapType; TF32 is F32 with a bit of its own.
constexpr uint8_t kTypeCodes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8, 11, 12, 13};

bool is_tf32(TensorMapType type) {
  return type == TensorMapType::kTf32 || type == TensorMapType::kTf32Ftz;
}

// Nothing: no type has these bits.
std::optional<TensorMapType> type_of(uint32_t code, bool tf32) {
  for (uint32_t index = 0; index < std::size(kTypeCodes); ++index) {
    const auto type = static_cast<TensorMapType>(index);
    if (kTypeCodes[index] == code && is_tf32(type) == tf32) return type;
  }
  return std::nullopt;
}

// Bytes from the tensor's first element to its last, both included.
uint64_t tensor_bytes(const TensorMap& map) {
  uint64_t bytes = map.extents[0] * element_bits(map.type) / 8;
  for (uint32_t i = 1; i < map.rank; ++i) bytes += (map.extents[i] - 1) * map.stride_bytes[i - 1];
  return bytes;
}

// As the driver writes it: the box with what element strides leave of it, rounded down; 0 for
// packed types.
uint64_t box_bytes(const TensorMap& map) {
  if (element_bits(map.type) < 8) return 0;
  const bool interleaved = map.interleave != TensorMapInterleave::kNone;
  uint64_t bytes = !interleaved                                 ? element_bits(map.type) / 8
                   : map.interleave == TensorMapInterleave::k16 ? 16
                                                                : 32;
  if (map.mode != TensorMapMode::kTiled) return bytes * map.box[0] * map.pixels.count;
  for (uint32_t i = 0; i < map.rank; ++i)
    bytes *= interleaved ? map.box[i] : map.box[i] / map.element_strides[i];
  return bytes;
}

Error no_map(std::string why) {
  return {ErrorKind::kInput, "is no tensor map: " + std::move(why), {}};
}

std::optional<Error> check_zero(const TensorMapRecord& record,
                                std::initializer_list<TensorMapField> fields) {
  for (const TensorMapField field : fields)
    if (get(record, field) != 0)
      return no_map(fmt::format("bits {} .. {} of word {} are 0x{:x}; must be 0", field.shift,
                                field.shift + field.bits - 1, field.word, get(record, field)));
  return std::nullopt;
}

// What is wrong with the bits that a map does not use; nothing: all is well.
std::optional<Error> check_unused(const TensorMapRecord& record) {
  if (get(record, kSwizzle96) != 0) return no_map("96B swizzling is not modelled");
  if (auto error = check_zero(record, {{2, 2, 2}, kFreeFlags, kFreeStrides, kFreeBox, kFreePixels}))
    return error;
  return get(record, kIm2col) != 0 ? std::nullopt : check_zero(record, {kPixels});
}

int32_t signed_value(uint32_t bits, uint32_t count) {
  return static_cast<int32_t>(bits << (32 - count)) >> (32 - count);
}

// The rank and the mode are known.
void pack_pixels(TensorMapRecord& record, const TensorMap& map) {
  const uint32_t bits = corner_bits(map);
  set(record, kIm2col, 1);
  set(record, kPixels, map.pixels.count - 1);
  if (map.mode == TensorMapMode::kIm2colWide) set(record, kWideMark, kWide);
  for (uint32_t i = 0; i < pixel_dimensions(map); ++i) {
    set(record, lower_corner(i, bits), static_cast<uint32_t>(map.pixels.lower[i]));
    set(record, upper_corner(i, bits), static_cast<uint32_t>(map.pixels.upper[i]));
  }
}

std::optional<Error> unpack_pixels(const TensorMapRecord& record, TensorMap& map) {
  if (map.rank < 3) return no_map(fmt::format("rank {} with im2col; must be 3 .. 5", map.rank));
  const bool wide = get(record, kWideMark) == kWide;
  map.mode = wide ? TensorMapMode::kIm2colWide : TensorMapMode::kIm2col;
  map.pixels.count = get(record, kPixels) + 1;
  const uint32_t bits = corner_bits(map), count = pixel_dimensions(map);
  if (bits * count < 16)
    if (auto error = check_zero(record, {{14, 15, 1}, {14, 31, 1}})) return error;
  for (uint32_t i = 0; i < count; ++i) {
    map.pixels.lower[i] = signed_value(get(record, lower_corner(i, bits)), bits);
    map.pixels.upper[i] = signed_value(get(record, upper_corner(i, bits)), bits);
  }
  return std::nullopt;
}

}  // namespace

void set_address(TensorMapRecord& record, uint64_t address) {
  set(record, kAddressLow, address);
  set(record, kAddressHigh, address >> 32);
}

void set_stride(TensorMapRecord& record, uint32_t i, uint64_t bytes) {
  set(record, stride_low(i), bytes >> 4);
  set(record, stride_high(i), bytes >> 36);
}

TensorMapRecord pack_tensor_map(const TensorMap& map) {
  TensorMapRecord record{};
  const auto swizzle = static_cast<uint32_t>(map.swizzle);
  set_address(record, map.address);
  set(record, kLastDimension, map.rank - 1);
  set(record, kType, kTypeCodes[static_cast<uint32_t>(map.type)]);
  set(record, kTf32, is_tf32(map.type));
  set(record, kInterleave, static_cast<uint32_t>(map.interleave));
  set(record, kSwizzle, std::min(swizzle, 3u));
  set(record, kSwizzleAtomicity, std::max(swizzle, 3u) - 3);
  set(record, kFill, static_cast<uint32_t>(map.fill));
  set(record, kL2Promotion, static_cast<uint32_t>(map.l2_promotion));
  set(record, kLarge, tensor_bytes(map) >= 128 * 1024);
  for (uint32_t i = 0; i < std::min(map.rank, kTensorMapMaxRank); ++i) {
    set(record, last_index(i), map.extents[i] - 1);
    if (i == 0 || map.mode == TensorMapMode::kTiled) set(record, last_of_box(i), map.box[i] - 1);
    set(record, element_stride(i), map.element_strides[i] - 1);
    if (i > 0) set_stride(record, i - 1, map.stride_bytes[i - 1]);
  }
  if (map.mode != TensorMapMode::kTiled) pack_pixels(record, map);
  set(record, kBoxBytes, box_bytes(map));
  set(record, kSwizzleHint, swizzle == 0 ? 0x10 : 0x80u << std::min(swizzle, 3u));
  return record;
}

Result<TensorMap> decode_record(const TensorMapRecord& record) {
  if (auto error = check_unused(record)) return *error;
  const auto type = type_of(get(record, kType), get(record, kTf32) != 0);
  if (!type)
    return no_map(fmt::format("type {}{}; must be 0 .. 13, with TF32 7 or 8", get(record, kType),
                              get(record, kTf32) != 0 ? " with TF32" : ""));
  TensorMap map;
  map.type = *type;
  map.rank = get(record, kLastDimension) + 1;
  if (map.rank > kTensorMapMaxRank) return no_map(fmt::format("rank {}; must be 1 .. 5", map.rank));
  map.address = uint64_t{get(record, kAddressHigh)} << 32 | get(record, kAddressLow);
  if (get(record, kIm2col) != 0)
    if (auto error = unpack_pixels(record, map)) return *error;
  for (uint32_t i = 0; i < map.rank; ++i) {
    map.extents[i] = uint64_t{get(record, last_index(i))} + 1;
    if (i == 0 || map.mode == TensorMapMode::kTiled) map.box[i] = get(record, last_of_box(i)) + 1;
    map.element_strides[i] = get(record, element_stride(i)) + 1;
    if (i > 0)
      map.stride_bytes[i - 1] = uint64_t{get(record, stride_high(i - 1))} << 36 |
                                uint64_t{get(record, stride_low(i - 1))} << 4;
  }
  map.interleave = static_cast<TensorMapInterleave>(get(record, kInterleave));
  const uint32_t swizzle = get(record, kSwizzle);
  map.swizzle =
      static_cast<TensorMapSwizzle>(swizzle == 3 ? 3 + get(record, kSwizzleAtomicity) : swizzle);
  map.l2_promotion = static_cast<TensorMapL2Promotion>(get(record, kL2Promotion));
  map.fill = static_cast<TensorMapFill>(get(record, kFill));
  return map;
}

}  // namespace ptxsim
