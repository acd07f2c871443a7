#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "case/case_parts.hpp"
#include "case/suppression_list.hpp"

namespace ptxsim {
namespace {

Dim3 read_dimensions(const JsonNode& root, const char* key) {
  Dim3 d{1, 1, 1};
  if (!root.has(key)) return d;
  const std::vector<JsonNode> list = root.at(key).list();
  if (list.empty() || list.size() > 3) root.at(key).fail("must be a list of 1 to 3 extents");
  for (size_t i = 0; i < list.size(); ++i)
    d[i] = static_cast<uint32_t>(list[i].integer(UINT32_MAX));
  return d;
}

std::vector<double> read_doubles(const JsonNode& name, uint64_t count, CaseSource& source) {
  const std::vector<std::byte> data = source.read_file(name);
  if (data.size() != count * sizeof(double))
    name.fail(fmt::format("'{}' has {} bytes; {} values of f64 are needed", name.text(),
                          data.size(), count));
  std::vector<double> values(count);
  if (count > 0) std::memcpy(values.data(), data.data(), data.size());
  return values;
}

CaseMatrix read_matrix(const JsonNode& node, CaseSource& source) {
  constexpr uint64_t kMostExtent = uint64_t{1} << 31;  // a product of two fits into 64 bits
  node.only_keys("expected", {"buffer", "type", "batches", "rows", "cols", "row_stride",
                              "batch_stride", "value", "bound"});
  CaseMatrix matrix;
  matrix.buffer = node.at("buffer").text();
  matrix.type = read_element_type(node.at("type"));
  matrix.rows = node.at("rows").integer(kMostExtent);
  matrix.cols = node.at("cols").integer(kMostExtent);
  matrix.batches = node.integer_or("batches", kMostExtent, 1);
  matrix.row_stride = node.integer_or("row_stride", kMostExtent, matrix.cols);
  matrix.batch_stride =
      node.integer_or("batch_stride", kMostCaseBytes, matrix.rows * matrix.row_stride);
  const uint64_t most = kMostCaseBytes / sizeof(double);
  const uint64_t elements = matrix.rows * matrix.cols;
  if (elements > most || matrix.batches * elements > most)
    node.fail(fmt::format("{} x {} x {} elements; at most {}", matrix.batches, matrix.rows,
                          matrix.cols, most));
  matrix.value = read_doubles(node.at("value"), matrix.batches * elements, source);
  matrix.bound = read_doubles(node.at("bound"), matrix.batches * elements, source);
  return matrix;
}

void read_expectations(Case& c, const JsonNode& root, CaseSource& source) {
  if (root.has("expected")) {
    const JsonNode expected = root.at("expected");
    if (expected.is_list())
      for (const JsonNode& m : expected.list()) c.matrices.push_back(read_matrix(m, source));
    else
      c.matrices.push_back(read_matrix(expected, source));
  }
  if (root.has("expect_error")) c.expect_error = root.at("expect_error").text();
  if (root.has("expect_printed")) c.expect_printed = root.at("expect_printed").text();
  if (!root.has("expect_reports")) return;
  c.expect_reports.emplace();
  for (const JsonNode& rule : root.at("expect_reports").list())
    c.expect_reports->push_back(read_rule(rule));
  std::sort(c.expect_reports->begin(), c.expect_reports->end());
}

void read_buffers(Case& c, const JsonNode& list, CaseSource& source) {
  for (const JsonNode& node : list.list()) {
    CaseBuffer buffer = read_buffer(node, c.buffers.size(), source);
    for (const CaseBuffer& other : c.buffers)
      if (other.name == buffer.name)
        node.at("name").fail(fmt::format("there is a buffer '{}' already", buffer.name));
    if (source.target != nullptr)
      buffer.address = source.target->place(buffer.name, buffer.data.size());
    c.buffers.push_back(std::move(buffer));
  }
}

// Names of buffers of the case.
std::vector<std::string> read_names(const Case& c, const JsonNode& node, const char* key) {
  std::vector<std::string> names;
  if (!node.has(key)) return names;
  for (const JsonNode& name : node.at(key).list()) {
    const bool is_known = std::ranges::any_of(
        c.buffers, [&](const CaseBuffer& buffer) { return buffer.name == name.text(); });
    if (!is_known) name.fail(fmt::format("there is no buffer '{}'", name.text()));
    names.push_back(name.text());
  }
  return names;
}

void read_previous_grid(Case& c, const JsonNode& node) {
  node.only_keys("a previous grid", {"writes", "reads"});
  c.launch.previous_grid.writes = read_names(c, node, "writes");
  c.launch.previous_grid.reads = read_names(c, node, "reads");
}

void read_parameters(Case& c, const JsonNode& list, CaseSource& source) {
  if (!list.is_text()) {
    for (const JsonNode& node : list.list()) append_parameter(c, node, source);
    return;
  }
  for (std::byte b : source.read_file(list)) c.launch.params.push_back(static_cast<uint8_t>(b));
}

void read_launch(Case& c, const JsonNode& node, CaseSource& source) {
  c.launch = {};
  c.entry = node.text_or("entry", "");
  c.launch.grid = read_dimensions(node, "grid");
  c.launch.block = read_dimensions(node, "block");
  c.launch.cluster = read_dimensions(node, "cluster");
  c.launch.dynamic_shared_bytes =
      static_cast<uint32_t>(node.integer_or("dynamic_shared_bytes", UINT32_MAX, 0));
  if (node.has("previous_grid")) read_previous_grid(c, node.at("previous_grid"));
  if (node.has("params")) read_parameters(c, node.at("params"), source);
}

void read_launches(Case& c, const JsonNode& root, CaseSource& source) {
  for (const char* key :
       {"entry", "grid", "block", "cluster", "dynamic_shared_bytes", "params", "previous_grid"})
    if (root.has(key)) root.at(key).fail("belongs to one of the launches where a case lists them");
  const CaseLaunch* last = nullptr;
  const std::vector<JsonNode> list = root.at("launches").list();
  c.launches.reserve(list.size());
  for (const JsonNode& node : list) {
    node.only_keys("a launch",
                   {"kernel", "entry", "grid", "block", "cluster", "dynamic_shared_bytes", "params",
                    "previous_grid", "overlaps", "comment"});
    read_launch(c, node, source);
    CaseLaunch launch;
    launch.place = node.place();
    launch.entry = c.entry;
    launch.launch = c.launch;
    launch.overlaps = node.flag_or("overlaps", false);
    if (launch.overlaps && c.launches.empty())
      node.at("overlaps").fail("there is no launch before the first");
    if (node.has("kernel")) {
      launch.kernel = node.at("kernel").text();
      for (const std::byte b : source.read_file(node.at("kernel")))
        launch.text.push_back(static_cast<char>(b));
    }
    c.launches.push_back(std::move(launch));
    if (c.launches.back().kernel.empty()) last = &c.launches.back();
  }
  if (last == nullptr)
    root.at("launches")
        .fail("none is of the kernel that the case is for; leave out its \"kernel\"");
  c.entry = last->entry;
  c.launch = last->launch;
}

Case read_root(const JsonNode& root, CaseSource& source) {
  root.only_keys("the case",
                 {"entry", "grid", "block", "cluster", "dynamic_shared_bytes", "buffers", "params",
                  "expected", "expect_error", "expect_printed", "expect_reports", "strict",
                  "check_uninitialized", "previous_grid", "launches", "suppress", "comment"});
  Case c;
  if (root.has("buffers")) read_buffers(c, root.at("buffers"), source);
  if (root.has("launches"))
    read_launches(c, root, source);
  else
    read_launch(c, root, source);
  c.strict = root.flag_or("strict", false);
  c.check_uninitialized = root.flag_or("check_uninitialized", true);
  if (root.has("suppress")) c.suppressions = read_suppressions(root.at("suppress"));
  read_expectations(c, root, source);
  return c;
}

}  // namespace

int read_rule(const JsonNode& node) {
  const std::string& text = node.text();
  int rule = 0;
  const char* end = text.data() + text.size();
  const bool is_rule = text.starts_with('R') && text.size() > 1 &&
                       std::from_chars(text.data() + 1, end, rule).ptr == end && rule > 0;
  if (!is_rule) node.fail(fmt::format("'{}' is no rule such as R1", text));
  return rule;
}

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

Result<Case> parse_case(std::string_view json, const std::string& folder, const CaseTarget* target,
                        const std::string& name) {
  try {
    const JsonDocument document(json, name);
    CaseSource source{folder, target};
    return read_root(JsonNode(document), source);
  } catch (const Fault& fault) {
    return fault.error();
  } catch (const std::exception& error) {  // out of memory
    return Error{ErrorKind::kInput, std::string("case: ") + error.what(), Place{name, 0, 0, "", 0}};
  }
}

// Blanks take the place of all that is no part of the case, so that lines and columns stay.
std::string case_text(std::string_view ptx) {
  std::string text;
  bool any = false;
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    const std::string_view line = ptx.substr(begin, end - begin);
    if (line.starts_with("//!")) {
      any = true;
      text.append("   ").append(line.substr(3));
    }
    text.push_back('\n');
    begin = end + 1;
  }
  return any ? text : std::string();
}

}  // namespace ptxsim
