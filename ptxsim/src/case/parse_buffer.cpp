// Buffers of a case.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "case/case_parts.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kFirstAddress = 0x10'0000'0000;
constexpr uint64_t kAddressStep = 0x1000'0000;

// 0x.., 0b.., 0.. or decimal, as C reads it; nothing else before or after.
bool parse_unsigned(std::string_view text, uint64_t& value) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X"))
    base = 16;
  else if (text.size() > 1 && text[0] == '0')
    base = 8;
  if (base == 16) text.remove_prefix(2);
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && last == end;
}

uint64_t integer_pattern(const JsonNode& value, unsigned bits, uint64_t mask) {
  const nlohmann::json& json = value.json();
  if (!json.is_number_integer()) value.fail(fmt::format("{} is not an integer", json.dump()));
  const bool negative = !json.is_number_unsigned() && json.get<int64_t>() < 0;
  const uint64_t pattern =
      negative ? static_cast<uint64_t>(json.get<int64_t>()) : json.get<uint64_t>();
  const bool fits = negative ? (pattern | mask >> 1) == ~uint64_t{0} : (pattern & ~mask) == 0;
  if (!fits) value.fail(fmt::format("{} does not fit into {} bits", json.dump(), bits));
  return pattern & mask;
}

void store(std::byte* to, uint64_t pattern, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(pattern >> (8 * i));
}

// What `count`, `fill`, `random` and `iota` say, behind the values that are listed.
void fill_rest(CaseBuffer& buffer, const JsonNode& node, uint64_t count, CaseSource& source) {
  const unsigned bytes = bytes_of(buffer.type);
  if (buffer.data.size() > count * bytes)
    node.fail(fmt::format("more values than the count {}", count));
  source.claim(node, count * bytes - buffer.data.size());
  const bool is_random = node.has("random"), iota = node.flag_or("iota", false);
  std::mt19937_64 random(node.integer_or("random", UINT64_MAX, 0));
  const uint64_t fill = node.has("fill") ? read_pattern(node.at("fill"), buffer.type) : 0;
  buffer.initialized = node.has("values") || is_random || node.has("fill") || iota;
  const uint64_t listed = buffer.data.size() / bytes;
  buffer.data.resize(count * bytes);
  if (!is_random && !iota && fill == 0) return;
  for (uint64_t i = listed; i < count; ++i)
    store(&buffer.data[i * bytes], is_random ? random() : iota ? i : fill, bytes);
}

// Values that a case lists, packs into a text, or names with their file.
Patterns read_listed(const JsonNode& node, ElementType type, CaseSource& source) {
  Patterns patterns;
  if (!node.is_text()) {
    for (const JsonNode& value : node.list())
      patterns.push_back(value.is_null() ? std::nullopt : std::optional(read_pattern(value, type)));
    return patterns;
  }
  if (node.text().find('#') == std::string::npos) {
    const PackedFormat format{.type = type};
    if (const auto error = read_packed(node.text(), format, patterns)) node.fail(error->reason);
    return patterns;
  }
  const NamedValues& values = source.read_values(node);
  if (values.type != type)
    node.fail(
        fmt::format("'{}' has the type {}; the buffer has another", node.text(), values.type_name));
  return values.patterns;
}

void read_initial(CaseBuffer& buffer, const JsonNode& node, CaseSource& source) {
  const Patterns patterns = read_listed(node, buffer.type, source);
  const unsigned bytes = bytes_of(buffer.type);
  source.claim(node, patterns.size() * bytes);
  buffer.data.reserve(patterns.size() * bytes);
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!patterns[i]) node.fail(fmt::format("value {} is open; that is for \"expect\" alone", i));
    append(buffer.data, *patterns[i], bytes);
  }
}

void read_contents(CaseBuffer& buffer, const JsonNode& node, CaseSource& source) {
  const unsigned bytes = bytes_of(buffer.type);
  if (node.has("file")) {
    buffer.data = source.read_file(node.at("file"));
    if (node.has("bytes") && node.at("bytes").integer(kMostCaseBytes) != buffer.data.size())
      node.at("bytes").fail(fmt::format("the file has {} bytes", buffer.data.size()));
    return;
  }
  if (node.has("values")) {
    read_initial(buffer, node.at("values"), source);
    if (!node.has("count")) return;
  }
  if (node.has("bytes"))
    fill_rest(buffer, node, (node.at("bytes").integer(kMostCaseBytes) + bytes - 1) / bytes, source);
  else if (node.has("count"))
    fill_rest(buffer, node, node.at("count").integer(kMostCaseBytes / bytes), source);
  else
    node.fail(fmt::format("buffer '{}' needs values, count, bytes or file", buffer.name));
}

void read_expected(CaseBuffer& buffer, const JsonNode& node, CaseSource& source) {
  const unsigned bytes = bytes_of(buffer.type);
  if (node.has("expect")) buffer.expect = read_listed(node.at("expect"), buffer.type, source);
  if (node.has("expect_file")) {
    const std::vector<std::byte> data = source.read_file(node.at("expect_file"));
    for (size_t i = 0; i + bytes <= data.size(); i += bytes) {
      uint64_t pattern = 0;
      std::memcpy(&pattern, data.data() + i, bytes);
      buffer.expect.emplace_back(pattern);
    }
  }
  if (buffer.expect.size() * bytes > buffer.data.size())
    node.fail(
        fmt::format("{} values expected of {} bytes", buffer.expect.size(), buffer.data.size()));
  if (!node.has("tolerance")) return;
  const JsonNode tolerance = node.at("tolerance");
  tolerance.only_keys("a tolerance", {"abs", "rel"});
  if (tolerance.has("abs")) buffer.absolute = tolerance.at("abs").number();
  if (tolerance.has("rel")) buffer.relative = tolerance.at("rel").number();
}

}  // namespace

void CaseSource::claim(const JsonNode& node, uint64_t bytes) {
  if (bytes > bytes_left)
    node.fail(fmt::format("{} bytes; a case may have {} of them in all, of which {} are left",
                          bytes, kMostCaseBytes, bytes_left));
  bytes_left -= bytes;
}

std::vector<std::byte> CaseSource::read_file(const JsonNode& name) {
  return read_file(name, name.text());
}

std::vector<std::byte> CaseSource::read_file(const JsonNode& node, const std::string& name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::error_code none;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, none))
    node.fail(fmt::format("cannot read '{}'", path));
  const uint64_t bytes = std::filesystem::file_size(path, none);
  claim(node, bytes);
  std::vector<std::byte> data(bytes);
  file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes));
  if (!file) node.fail(fmt::format("cannot read '{}'", path));
  return data;
}

const NamedValues& CaseSource::read_values(const JsonNode& reference) {
  const size_t mark = reference.text().rfind('#');
  const std::string file = reference.text().substr(0, mark);
  const std::string name = reference.text().substr(mark + 1);
  auto found = value_files.find(file);
  if (found == value_files.end()) {
    const std::vector<std::byte> bytes = read_file(reference, file);
    if (bytes.size() > kMostValueFileBytes)
      reference.fail(fmt::format("'{}' has {} bytes; a file of values has at most {}", file,
                                 bytes.size(), kMostValueFileBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string path = (std::filesystem::path(folder) / file).string();
    found = value_files.emplace(file, read_value_file(text, path)).first;
  }
  const auto values = found->second.find(name);
  if (values != found->second.end()) return values->second;
  std::string names;
  for (const auto& [known, unused] : found->second) names += (names.empty() ? "" : ", ") + known;
  reference.fail(fmt::format("'{}' has no values '{}'; it has: {}", file, name, names));
}

std::optional<ElementType> element_type_named(std::string_view name) {
  static const std::map<std::string_view, ElementType> kNames = {
      {"u8", ElementType::kU8},     {"s8", ElementType::kS8},   {"u16", ElementType::kU16},
      {"s16", ElementType::kS16},   {"u32", ElementType::kU32}, {"s32", ElementType::kS32},
      {"u64", ElementType::kU64},   {"s64", ElementType::kS64}, {"f16", ElementType::kF16},
      {"bf16", ElementType::kBf16}, {"f32", ElementType::kF32}, {"f64", ElementType::kF64},
      {"b8", ElementType::kU8},     {"b16", ElementType::kU16}, {"b32", ElementType::kU32},
      {"b64", ElementType::kU64}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

ElementType read_element_type(const JsonNode& node) {
  const auto type = element_type_named(node.text());
  if (!type) node.fail(fmt::format("type '{}' is unknown; {}", node.text(), kElementTypes));
  return *type;
}

uint64_t read_pattern(const JsonNode& value, ElementType type) {
  const unsigned bits = 8 * bytes_of(type);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (value.is_text()) {
    uint64_t pattern = 0;
    if (!parse_unsigned(value.text(), pattern) || (pattern & ~mask) != 0)
      value.fail(fmt::format("'{}' is no pattern of {} bits", value.text(), bits));
    return pattern;
  }
  if (!value.json().is_number())
    value.fail("a value must be a number or a pattern such as \"0x3f800000\"");
  if (type == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value.number()));
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(value.number());
  return integer_pattern(value, bits, mask);
}

void append(std::vector<std::byte>& data, uint64_t pattern, unsigned bytes) {
  data.resize(data.size() + bytes);
  store(data.data() + data.size() - bytes, pattern, bytes);
}

CaseBuffer read_buffer(const JsonNode& node, size_t index, CaseSource& source) {
  node.only_keys("a buffer",
                 {"name", "type", "values", "count", "bytes", "fill", "random", "iota", "file",
                  "address", "read_only", "expect", "expect_file", "tolerance", "comment"});
  CaseBuffer buffer;
  buffer.place = node.place();
  buffer.name = node.at("name").text();
  if (node.has("type")) buffer.type = read_element_type(node.at("type"));
  buffer.address = node.integer_or("address", UINT64_MAX, kFirstAddress + index * kAddressStep);
  buffer.read_only = node.flag_or("read_only", false);
  read_contents(buffer, node, source);
  read_expected(buffer, node, source);
  return buffer;
}

}  // namespace ptxsim
