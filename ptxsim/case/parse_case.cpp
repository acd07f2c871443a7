#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "ptxsim/case/case.hpp"

namespace ptxsim {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kFirstAddress = 0x10'0000'0000;
constexpr uint64_t kAddressStep = 0x1000'0000;
constexpr uint64_t kMostBytes = uint64_t{1} << 33;

[[noreturn]] void refuse(const std::string& message) {
  throw Fault("case: " + message, ErrorKind::kInput);
}

void only_keys(const Json& object, const char* what,
               std::initializer_list<std::string_view> known) {
  if (!object.is_object()) refuse(fmt::format("{} must be an object", what));
  for (const auto& item : object.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      std::string names;
      for (std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
      refuse(fmt::format("{} has the unknown key '{}'; it may have: {}", what, item.key(), names));
    }
}

ElementType element_type(const std::string& name) {
  static const std::map<std::string, ElementType> kNames = {
      {"u8", ElementType::kU8},     {"s8", ElementType::kS8},   {"u16", ElementType::kU16},
      {"s16", ElementType::kS16},   {"u32", ElementType::kU32}, {"s32", ElementType::kS32},
      {"u64", ElementType::kU64},   {"s64", ElementType::kS64}, {"f16", ElementType::kF16},
      {"bf16", ElementType::kBf16}, {"f32", ElementType::kF32}, {"f64", ElementType::kF64},
      {"b8", ElementType::kU8},     {"b16", ElementType::kU16}, {"b32", ElementType::kU32},
      {"b64", ElementType::kU64}};
  const auto found = kNames.find(name);
  if (found == kNames.end())
    refuse(fmt::format("type '{}' is unknown; u8 .. s64, b8 .. b64, f16, bf16, f32 or f64", name));
  return found->second;
}

// The pattern of one value: "0x..." is the pattern itself, a number is converted to the type.
uint64_t pattern_of(const Json& value, ElementType type) {
  const unsigned bits = 8 * bytes_of(type);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    size_t used = 0;
    uint64_t pattern = 0;
    try {
      pattern = std::stoull(text, &used, 0);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != text.size() || text.empty() || (pattern & ~mask) != 0)
      refuse(fmt::format("'{}' is no pattern of {} bits", text, bits));
    return pattern;
  }
  if (!value.is_number()) refuse("a value must be a number or a pattern such as \"0x3f800000\"");
  if (type == ElementType::kF32)
    return std::bit_cast<uint32_t>(static_cast<float>(value.get<double>()));
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(value.get<double>());
  if (!value.is_number_integer()) refuse(fmt::format("{} is not an integer", value.dump()));
  const uint64_t pattern = value.is_number_unsigned() ? value.get<uint64_t>()
                                                      : static_cast<uint64_t>(value.get<int64_t>());
  const bool fits =
      (pattern & ~mask) == 0 ||
      (value.is_number_integer() && value.get<int64_t>() < 0 && (pattern | mask) == ~uint64_t{0});
  if (!fits) refuse(fmt::format("{} does not fit into {} bits", value.dump(), bits));
  return pattern & mask;
}

void append(std::vector<std::byte>& data, uint64_t pattern, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) data.push_back(static_cast<std::byte>(pattern >> (8 * i)));
}

std::vector<std::byte> read_file(const std::string& folder, const Json& name) {
  const std::string path = folder + "/" + name.get<std::string>();
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(fmt::format("cannot read '{}'", path));
  std::vector<std::byte> data;
  std::transform(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(),
                 std::back_inserter(data), [](char c) { return static_cast<std::byte>(c); });
  return data;
}

std::vector<double> read_doubles(const std::string& folder, const Json& name, uint64_t count) {
  const std::vector<std::byte> data = read_file(folder, name);
  if (data.size() != count * 8)
    refuse(fmt::format("'{}' has {} bytes; {} values of f64 are needed", name.get<std::string>(),
                       data.size(), count));
  std::vector<double> values(count);
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

Dim3 dimensions(const Json& root, const char* key) {
  Dim3 d{1, 1, 1};
  if (!root.contains(key)) return d;
  const Json& list = root[key];
  if (!list.is_array() || list.empty() || list.size() > 3)
    refuse(fmt::format("{} must be a list of 1 to 3 extents", key));
  for (size_t i = 0; i < list.size(); ++i) d[i] = list[i].get<uint32_t>();
  return d;
}

void fill_buffer(CaseBuffer& buffer, const Json& b, const std::string& folder) {
  const unsigned bytes = bytes_of(buffer.type);
  uint64_t count = 0;
  if (b.contains("file")) {
    buffer.data = read_file(folder, b["file"]);
    if (b.contains("bytes") && b["bytes"].get<uint64_t>() != buffer.data.size())
      refuse(fmt::format("buffer '{}': file of {} bytes; the case says {}", buffer.name,
                         buffer.data.size(), b["bytes"].get<uint64_t>()));
    return;
  }
  if (b.contains("values")) {
    for (const Json& value : b["values"])
      append(buffer.data, pattern_of(value, buffer.type), bytes);
    if (!b.contains("count")) return;
  }
  if (b.contains("bytes"))
    count = (b["bytes"].get<uint64_t>() + bytes - 1) / bytes;
  else if (b.contains("count"))
    count = b["count"].get<uint64_t>();
  else
    refuse(fmt::format("buffer '{}' needs values, count, bytes or file", buffer.name));
  if (count > kMostBytes / bytes)
    refuse(fmt::format("buffer '{}' of {} elements is too large", buffer.name, count));
  if (buffer.data.size() > count * bytes)
    refuse(fmt::format("buffer '{}' has more values than its count {}", buffer.name, count));
  std::mt19937_64 random(b.value("random", uint64_t{0}));
  const bool iota = b.value("iota", false);
  const uint64_t fill = b.contains("fill") ? pattern_of(b["fill"], buffer.type) : 0;
  buffer.initialized = b.contains("values") || b.contains("random") || b.contains("fill") || iota;
  for (uint64_t i = buffer.data.size() / bytes; i < count; ++i)
    append(buffer.data, b.contains("random") ? random() : iota ? i : fill, bytes);
}

CaseBuffer parse_buffer(const Json& b, size_t index, const std::string& folder) {
  only_keys(b, "a buffer",
            {"name", "type", "values", "count", "bytes", "fill", "random", "iota", "file",
             "address", "read_only", "expect", "expect_file", "tolerance"});
  CaseBuffer buffer;
  buffer.name = b.at("name").get<std::string>();
  buffer.type = element_type(b.value("type", "u8"));
  buffer.address = b.value("address", kFirstAddress + index * kAddressStep);
  buffer.read_only = b.value("read_only", false);
  fill_buffer(buffer, b, folder);
  const unsigned bytes = bytes_of(buffer.type);
  if (b.contains("expect")) {
    for (const Json& value : b["expect"])
      buffer.expect.push_back(value.is_null() ? std::nullopt
                                              : std::optional(pattern_of(value, buffer.type)));
  }
  if (b.contains("expect_file")) {
    const std::vector<std::byte> data = read_file(folder, b["expect_file"]);
    for (size_t i = 0; i + bytes <= data.size(); i += bytes) {
      uint64_t pattern = 0;
      std::memcpy(&pattern, data.data() + i, bytes);
      buffer.expect.emplace_back(pattern);
    }
  }
  if (buffer.expect.size() * bytes > buffer.data.size())
    refuse(fmt::format("buffer '{}': {} values expected of {} bytes", buffer.name,
                       buffer.expect.size(), buffer.data.size()));
  if (b.contains("tolerance")) {
    only_keys(b["tolerance"], "a tolerance", {"abs", "rel"});
    buffer.absolute = b["tolerance"].value("abs", 0.0);
    buffer.relative = b["tolerance"].value("rel", 0.0);
  }
  return buffer;
}

const CaseBuffer& buffer_named(const Case& c, const std::string& name) {
  for (const CaseBuffer& buffer : c.buffers)
    if (buffer.name == name) return buffer;
  refuse(fmt::format("there is no buffer '{}'", name));
}

uint32_t index_of(const std::string& name, std::initializer_list<const char*> names,
                  const char* what) {
  uint32_t index = 0;
  for (const char* known : names) {
    if (name == known) return index;
    ++index;
  }
  refuse(fmt::format("{} '{}' is unknown", what, name));
}

TiledTensorMap parse_tensor_map(const Case& c, const Json& m) {
  only_keys(m, "a tensor map",
            {"buffer", "offset", "data_type", "dims", "strides_bytes", "box", "element_strides",
             "interleave", "swizzle", "oob_nan"});
  TiledTensorMap map;
  map.type = static_cast<TensorMapType>(
      index_of(m.value("data_type", "u8"),
               {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz",
                "tf32", "tf32_ftz", "u4_align8", "u4_align16", "u6_align16"},
               "data_type"));
  map.swizzle = static_cast<TensorMapSwizzle>(index_of(
      m.value("swizzle", "none"),
      {"none", "32", "64", "128", "128_atom32", "128_atom32_flip8", "128_atom64"}, "swizzle"));
  map.interleave = static_cast<TensorMapInterleave>(
      index_of(m.value("interleave", "none"), {"none", "16", "32"}, "interleave"));
  map.fill = m.value("oob_nan", false) ? TensorMapFill::kNan : TensorMapFill::kZero;
  map.address =
      buffer_named(c, m.at("buffer").get<std::string>()).address + m.value("offset", uint64_t{0});
  const Json& dims = m.at("dims");
  map.rank = static_cast<uint32_t>(dims.size());
  if (map.rank < 1 || map.rank > kTensorMapMaxRank)
    refuse(fmt::format("tensor map of rank {}; 1 to 5", map.rank));
  const Json none = Json::array();
  const Json& strides = m.contains("strides_bytes") ? m["strides_bytes"] : none;
  const Json& box = m.at("box");
  if (strides.size() != map.rank - 1 || box.size() != map.rank)
    refuse("a tensor map needs rank - 1 strides_bytes and rank box extents");
  for (uint32_t i = 0; i < map.rank; ++i) {
    map.extents[i] = dims[i].get<uint64_t>();
    map.box[i] = box[i].get<uint32_t>();
    if (i + 1 < map.rank) map.stride_bytes[i] = strides[i].get<uint64_t>();
    if (m.contains("element_strides"))
      map.element_strides[i] = m["element_strides"].at(i).get<uint32_t>();
  }
  return map;
}

std::vector<std::byte> encode(const TiledTensorMap& map, const CaseTarget* target) {
  std::vector<std::byte> bytes(128);
  if (target != nullptr) {
    const auto record = target->encode(map);
    if (!record.ok()) throw Fault(record.error());
    std::memcpy(bytes.data(), record.value().data(), bytes.size());
  } else {
    const auto record = encode_tiled(map);
    if (!record.ok()) throw Fault(record.error());
    std::memcpy(bytes.data(), &record.value(), bytes.size());
  }
  return bytes;
}

void append_param(Case& c, const Json& p, const std::string& folder, const CaseTarget* target) {
  only_keys(p, "a parameter",
            {"buffer", "offset", "type", "value", "values", "tensor_map", "file", "align"});
  std::vector<std::byte> bytes;
  size_t alignment = p.value("align", size_t{1});
  if (p.contains("buffer")) {
    append(bytes,
           buffer_named(c, p["buffer"].get<std::string>()).address + p.value("offset", uint64_t{0}),
           8);
    alignment = std::max<size_t>(alignment, 8);
  } else if (p.contains("tensor_map")) {
    bytes = encode(parse_tensor_map(c, p["tensor_map"]), target);
    alignment = std::max<size_t>(alignment, 64);
  } else if (p.contains("file")) {
    bytes = read_file(folder, p["file"]);
  } else {
    const ElementType type = element_type(p.at("type").get<std::string>());
    alignment = std::max<size_t>(alignment, bytes_of(type));
    if (p.contains("values")) {
      for (const Json& value : p["values"]) append(bytes, pattern_of(value, type), bytes_of(type));
    } else {
      append(bytes, pattern_of(p.at("value"), type), bytes_of(type));
    }
  }
  auto& blob = c.launch.params;
  blob.resize((blob.size() + alignment - 1) / alignment * alignment);
  for (std::byte b : bytes) blob.push_back(static_cast<uint8_t>(b));
}

CaseMatrix parse_matrix(const Json& m, const std::string& folder) {
  only_keys(m, "expected",
            {"buffer", "type", "batches", "rows", "cols", "row_stride", "batch_stride", "value",
             "bound"});
  CaseMatrix matrix;
  matrix.buffer = m.at("buffer").get<std::string>();
  matrix.type = element_type(m.at("type").get<std::string>());
  matrix.batches = m.value("batches", uint64_t{1});
  matrix.rows = m.at("rows").get<uint64_t>();
  matrix.cols = m.at("cols").get<uint64_t>();
  matrix.row_stride = m.value("row_stride", matrix.cols);
  matrix.batch_stride = m.value("batch_stride", matrix.rows * matrix.row_stride);
  const uint64_t count = matrix.batches * matrix.rows * matrix.cols;
  matrix.value = read_doubles(folder, m.at("value"), count);
  matrix.bound = read_doubles(folder, m.at("bound"), count);
  return matrix;
}

Case parse_root(const Json& root, const std::string& folder, const CaseTarget* target) {
  only_keys(
      root, "the case",
      {"entry", "grid", "block", "cluster", "dynamic_shared_bytes", "buffers", "params", "expected",
       "expect_error", "expect_reports", "strict", "check_uninitialized", "comment"});
  Case c;
  c.entry = root.value("entry", "");
  c.launch.grid = dimensions(root, "grid");
  c.launch.block = dimensions(root, "block");
  c.launch.cluster = dimensions(root, "cluster");
  c.launch.dynamic_shared_bytes = root.value("dynamic_shared_bytes", 0u);
  if (root.contains("buffers"))
    for (const Json& b : root["buffers"]) {
      c.buffers.push_back(parse_buffer(b, c.buffers.size(), folder));
      CaseBuffer& buffer = c.buffers.back();
      if (target != nullptr) buffer.address = target->place(buffer.name, buffer.data.size());
    }
  if (root.contains("params")) {
    const Json& params = root["params"];
    if (params.is_string())
      append_param(c, Json{{"file", params}}, folder, target);
    else
      for (const Json& p : params) append_param(c, p, folder, target);
  }
  if (root.contains("expected")) {
    const Json& expected = root["expected"];
    if (expected.is_array())
      for (const Json& m : expected) c.matrices.push_back(parse_matrix(m, folder));
    else
      c.matrices.push_back(parse_matrix(expected, folder));
  }
  c.strict = root.value("strict", false);
  c.check_uninitialized = root.value("check_uninitialized", true);
  if (root.contains("expect_error")) c.expect_error = root["expect_error"].get<std::string>();
  if (root.contains("expect_reports")) {
    c.expect_reports.emplace();
    for (const Json& rule : root["expect_reports"]) {
      const auto text = rule.get<std::string>();
      if (text.size() < 2 || text[0] != 'R')
        refuse(fmt::format("'{}' is no rule such as R1", text));
      c.expect_reports->push_back(std::atoi(text.c_str() + 1));
    }
    std::sort(c.expect_reports->begin(), c.expect_reports->end());
  }
  return c;
}

}  // namespace

unsigned bytes_of(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kS8:
      return 1;
    case ElementType::kU16:
    case ElementType::kS16:
    case ElementType::kF16:
    case ElementType::kBf16:
      return 2;
    case ElementType::kU32:
    case ElementType::kS32:
    case ElementType::kF32:
      return 4;
    default:
      return 8;
  }
}

Result<Case> parse_case(std::string_view json, const std::string& folder,
                        const CaseTarget* target) {
  try {
    return parse_root(Json::parse(json), folder, target);
  } catch (const Fault& fault) {
    return fault.error();
  } catch (const std::exception& error) {  // the JSON library's own messages, and memory
    return Error{ErrorKind::kInput, std::string("case: ") + error.what(), {}};
  }
}

std::string case_text(std::string_view ptx) {
  std::string text;
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    const std::string_view line = ptx.substr(begin, end - begin);
    if (line.starts_with("//!")) text.append(line.substr(3)).push_back('\n');
    begin = end + 1;
  }
  return text;
}

}  // namespace ptxsim
