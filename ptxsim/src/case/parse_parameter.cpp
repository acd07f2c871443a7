// Parameters of a case, tensor maps among them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "case/case_parts.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kMostAlignment = 4096;

const CaseBuffer& find_buffer(const Case& c, const JsonNode& name) {
  for (const CaseBuffer& buffer : c.buffers)
    if (buffer.name == name.text()) return buffer;
  name.fail(fmt::format("there is no buffer '{}'", name.text()));
}

uint64_t read_address(const Case& c, const JsonNode& node) {
  return find_buffer(c, node.at("buffer")).address + node.integer_or("offset", UINT64_MAX, 0);
}

// The position of a member's name in a list of the driver's, 0 when it is missing.
uint32_t read_choice(const JsonNode& map, const char* key,
                     std::initializer_list<const char*> names) {
  if (!map.has(key)) return 0;
  const JsonNode node = map.at(key);
  uint32_t index = 0;
  for (const char* known : names) {
    if (node.text() == known) return index;
    ++index;
  }
  node.fail(
      fmt::format("{} '{}' is unknown; it may be: {}", key, node.text(), fmt::join(names, ", ")));
}

// Exactly `count` integers.
template <class T>
void read_extents(const JsonNode& map, const char* key, uint32_t count, T& extents) {
  const std::vector<JsonNode> list = map.at(key).list();
  if (list.size() != count)
    map.at(key).fail(fmt::format("{} entries; a tensor map of rank {} needs {}", list.size(),
                                 map.at("dims").list().size(), count));
  using Extent = typename T::value_type;
  for (uint32_t i = 0; i < count; ++i)
    extents[i] = static_cast<Extent>(list[i].integer(std::numeric_limits<Extent>::max()));
}

// {"lower": [w, h, d], "upper": [w, h, d], "channels": n, "pixels": n}; wide: corners of W alone,
// numbers.
void read_pixels(const JsonNode& node, bool wide, TensorMap& map) {
  node.only_keys("an im2col map's pixels", {"lower", "upper", "channels", "pixels"});
  map.mode = wide ? TensorMapMode::kIm2colWide : TensorMapMode::kIm2col;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  map.box[0] = static_cast<uint32_t>(node.at("channels").integer(kMost));
  map.pixels.count = static_cast<uint32_t>(node.integer_or("pixels", kMost, kWidePixels));
  if (map.rank < 3) return;  // which the encoder refuses
  for (const bool upper : {false, true}) {
    const JsonNode corner = node.at(upper ? "upper" : "lower");
    const std::vector<JsonNode> list = wide ? std::vector<JsonNode>{corner} : corner.list();
    if (list.size() != pixel_dimensions(map))
      corner.fail(fmt::format("{} entries; an im2col map of rank {} needs {}", list.size(),
                              map.rank, pixel_dimensions(map)));
    for (size_t i = 0; i < list.size(); ++i)
      (upper ? map.pixels.upper : map.pixels.lower)[i] =
          static_cast<int32_t>(list[i].signed_integer(std::numeric_limits<int32_t>::min(),
                                                      std::numeric_limits<int32_t>::max()));
  }
}

TensorMap read_tensor_map(const Case& c, const JsonNode& node) {
  node.only_keys("a tensor map",
                 {"buffer", "offset", "data_type", "dims", "strides_bytes", "box", "im2col",
                  "im2col_wide", "element_strides", "interleave", "swizzle", "oob_nan"});
  TensorMap map;
  map.type = static_cast<TensorMapType>(
      read_choice(node, "data_type",
                  {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz",
                   "tf32", "tf32_ftz", "u4_align8", "u4_align16", "u6_align16"}));
  map.swizzle = static_cast<TensorMapSwizzle>(
      read_choice(node, "swizzle",
                  {"none", "32", "64", "128", "128_atom32", "128_atom32_flip8", "128_atom64"}));
  map.interleave =
      static_cast<TensorMapInterleave>(read_choice(node, "interleave", {"none", "16", "32"}));
  map.fill = node.flag_or("oob_nan", false) ? TensorMapFill::kNan : TensorMapFill::kZero;
  map.address = read_address(c, node);
  const size_t rank = node.at("dims").list().size();
  if (rank < 1 || rank > kTensorMapMaxRank)
    node.at("dims").fail(fmt::format("tensor map of rank {}; 1 to 5", rank));
  map.rank = static_cast<uint32_t>(rank);
  read_extents(node, "dims", map.rank, map.extents);
  if (node.has("im2col") || node.has("im2col_wide")) {
    if (node.has("box") || (node.has("im2col") && node.has("im2col_wide")))
      node.fail("box, im2col and im2col_wide: one of them");
    read_pixels(node.at(node.has("im2col") ? "im2col" : "im2col_wide"), node.has("im2col_wide"),
                map);
  } else {
    read_extents(node, "box", map.rank, map.box);
  }
  if (map.rank > 1 || node.has("strides_bytes"))
    read_extents(node, "strides_bytes", map.rank - 1, map.stride_bytes);
  if (node.has("element_strides"))
    read_extents(node, "element_strides", map.rank, map.element_strides);
  return map;
}

std::vector<std::byte> encode(const TensorMap& map, const JsonNode& node,
                              const CaseTarget* target) {
  std::vector<std::byte> bytes(128);
  if (target != nullptr) {
    const auto record = target->encode(map);
    if (!record.ok()) node.fail(record.error().message);
    std::memcpy(bytes.data(), record.value().data(), bytes.size());
  } else {
    const auto record = encode_tensor_map(map);
    if (!record.ok()) node.fail(record.error().message);
    std::memcpy(bytes.data(), &record.value(), bytes.size());
  }
  return bytes;
}

std::vector<std::byte> read_values(const JsonNode& node, ElementType type) {
  std::vector<std::byte> bytes;
  if (!node.has("values")) {
    append(bytes, read_pattern(node.at("value"), type), bytes_of(type));
    return bytes;
  }
  for (const JsonNode& value : node.at("values").list())
    append(bytes, read_pattern(value, type), bytes_of(type));
  return bytes;
}

}  // namespace

void append_parameter(Case& c, const JsonNode& node, CaseSource& source) {
  node.only_keys("a parameter", {"buffer", "offset", "type", "value", "values", "tensor_map",
                                 "file", "align", "comment"});
  std::vector<std::byte> bytes;
  size_t alignment = node.integer_or("align", kMostAlignment, 1);
  if (alignment == 0) node.at("align").fail("0; must be at least 1");
  if (node.has("buffer")) {
    append(bytes, read_address(c, node), 8);
    alignment = std::max<size_t>(alignment, 8);
  } else if (node.has("tensor_map")) {
    const JsonNode map = node.at("tensor_map");
    bytes = encode(read_tensor_map(c, map), map, source.target);
    alignment = std::max<size_t>(alignment, 64);
  } else if (node.has("file")) {
    bytes = source.read_file(node.at("file"));
  } else {
    const ElementType type = read_element_type(node.at("type"));
    alignment = std::max<size_t>(alignment, bytes_of(type));
    bytes = read_values(node, type);
  }
  auto& blob = c.launch.params;
  blob.resize((blob.size() + alignment - 1) / alignment * alignment);
  for (std::byte b : bytes) blob.push_back(static_cast<uint8_t>(b));
}

}  // namespace ptxsim
