#include "case/suppression_list.hpp"

#include <fmt/format.h>

#include <charconv>

#include "case/case_parts.hpp"

namespace ptxsim {
namespace {

Suppression read_suppression(const JsonNode& node) {
  node.only_keys("suppress", {"rule", "kernel", "source", "reason"});
  Suppression suppression;
  suppression.rule = read_rule(node.at("rule"));
  suppression.kernel = node.text_or("kernel", "");
  suppression.reason = node.at("reason").text();
  if (suppression.reason.empty()) node.at("reason").fail("is empty; must say why");
  if (node.has("source")) {
    const std::string& source = node.at("source").text();
    const size_t colon = source.rfind(':');
    const char* const end = source.data() + source.size();
    const bool is_place =
        colon != std::string::npos && colon > 0 &&
        std::from_chars(source.data() + colon + 1, end, suppression.line).ptr == end &&
        suppression.line > 0;
    if (!is_place) node.at("source").fail(fmt::format("'{}'; must be <file>:<line>", source));
    suppression.file = source.substr(0, colon);
  }
  if (suppression.kernel.empty() && suppression.file.empty())
    node.fail("names neither a kernel nor a source line");
  return suppression;
}

}  // namespace

std::vector<Suppression> read_suppressions(const JsonNode& list) {
  std::vector<Suppression> all;
  for (const JsonNode& node : list.list()) all.push_back(read_suppression(node));
  return all;
}

Result<std::vector<Suppression>> parse_suppressions(std::string_view json,
                                                    const std::string& name) {
  try {
    const JsonDocument document(json, name);
    return read_suppressions(JsonNode(document));
  } catch (const Fault& fault) {
    return fault.error();
  }
}

}  // namespace ptxsim
