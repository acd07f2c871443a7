#include "timing/description.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "case/json_node.hpp"

namespace ptxsim::timing {
namespace {

constexpr uint32_t kMostPieces = 1'000'000;  // of one launch: bounds what a file can ask for

uint32_t count_or(const JsonNode& node, const char* key, uint32_t otherwise, uint32_t least = 1) {
  if (!node.has(key)) return otherwise;
  const uint64_t value = node.at(key).integer(1'000'000);
  if (value < least) node.at(key).fail(fmt::format("{}; must be at least {}", value, least));
  return static_cast<uint32_t>(value);
}

double number_or(const JsonNode& node, const char* key, double otherwise) {
  if (!node.has(key)) return otherwise;
  const double value = node.at(key).number();
  if (!(value >= 0) || !std::isfinite(value))
    node.at(key).fail(fmt::format("{}; must be at least 0", value));
  return value;
}

void read_pipeline(const JsonNode& node, Description& d) {
  node.only_keys("a pipeline", {"stages", "stages_per_tile", "loads_per_stage", "stage_bytes",
                                "l2_bytes", "unique_bytes"});
  d.stages = count_or(node, "stages", 1);
  d.stages_per_tile = count_or(node, "stages_per_tile", 1);
  d.loads_per_stage = count_or(node, "loads_per_stage", 1);
  d.stage_bytes = number_or(node, "stage_bytes", 0);
  d.l2_bytes = number_or(node, "l2_bytes", d.stage_bytes);
  d.unique_bytes = number_or(node, "unique_bytes", 0);
}

void read_mma(const JsonNode& node, Description& d) {
  node.only_keys("mma",
                 {"per_stage", "m", "n", "k", "bits", "shares_a", "copies_per_stage", "sync"});
  d.mmas_per_stage = count_or(node, "per_stage", 1);
  d.mma_m = count_or(node, "m", 128 * d.ctas_per_cluster);
  d.mma_n = count_or(node, "n", 128);
  d.mma_k = count_or(node, "k", 64);
  d.bits = count_or(node, "bits", 4);
  if (d.bits != 4 && d.bits != 8 && d.bits != 16)
    node.at("bits").fail(fmt::format("{}; must be 4, 8 or 16", d.bits));
  d.shares_a = node.flag_or("shares_a", false);
  d.copies_per_stage = count_or(node, "copies_per_stage", 0, 0);
  d.mma_sync = node.flag_or("sync", false);
}

void read_consumers(const JsonNode& node, Description& d) {
  node.only_keys("consumers", {"count", "slots_per_stage", "fragment_bytes"});
  d.consumers = count_or(node, "count", 1);
  d.consumer_slots = number_or(node, "slots_per_stage", 0);
  d.fragment_bytes = number_or(node, "fragment_bytes", 0);
  if (node.has("fragment_bytes") && !d.mma_sync)
    node.at("fragment_bytes").fail("only of mma.sync: what else multiplies reads its operands");
}

void read_epilogue(const JsonNode& node, Description& d) {
  node.only_keys("an epilogue", {"warps", "steps", "elements", "accumulators", "mufu_per_element",
                                 "slots_per_element", "scale"});
  if (d.mma_sync && node.has("warps"))
    node.at("warps").fail("with mma.sync the consumers are they");
  d.epilogue_warps = d.mma_sync ? d.consumers : count_or(node, "warps", 4);
  d.epilogue_steps = count_or(node, "steps", 8);
  d.elements = number_or(node, "elements", 0);
  d.accumulators = count_or(node, "accumulators", 1);
  d.mufu_per_element = number_or(node, "mufu_per_element", 0);
  d.slots_per_element = number_or(node, "slots_per_element", 0);
  d.epilogue_scale = number_or(node, "scale", 1);
}

Description read_description(const JsonNode& node) {
  node.only_keys("a launch", {"name", "comment", "clusters", "ctas_per_cluster", "ctas_per_sm",
                              "tiles", "dependent_launch", "setup_extra_us", "other_us",
                              "consumers", "pipeline", "mma", "epilogue"});
  Description d;
  d.name = node.at("name").text();
  d.clusters = count_or(node, "clusters", 1);
  d.ctas_per_cluster = count_or(node, "ctas_per_cluster", 1);
  if (d.ctas_per_cluster > 2) node.at("ctas_per_cluster").fail("must be 1 or 2 (a pair)");
  d.ctas_per_sm = count_or(node, "ctas_per_sm", 1);
  d.tiles = count_or(node, "tiles", 1);
  d.dependent_launch = node.flag_or("dependent_launch", false);
  d.other_us = number_or(node, "other_us", 0);
  d.setup_extra_us = number_or(node, "setup_extra_us", 0);
  read_pipeline(node.at("pipeline"), d);
  read_mma(node.at("mma"), d);
  if (node.has("consumers")) read_consumers(node.at("consumers"), d);
  if (d.mma_sync && d.consumers == 0)
    node.fail("mma.sync needs consumers, the warps that issue it");
  if (d.mma_sync && d.ctas_per_cluster > 1)
    node.at("ctas_per_cluster").fail("mma.sync has no pairs");
  read_epilogue(node.at("epilogue"), d);
  const double pieces =
      static_cast<double>(d.ctas_per_cluster) * d.tiles *
      (static_cast<double>(d.stages_per_tile) *
           (d.loads_per_stage + 1 + d.mmas_per_stage + d.copies_per_stage + d.consumers) +
       static_cast<double>(d.epilogue_warps) * d.epilogue_steps);
  if (pieces > kMostPieces)
    node.fail(fmt::format("{:.0f} pieces of work; at most {}", pieces, kMostPieces));
  return d;
}

}  // namespace

Result<std::vector<Description>> parse_descriptions(std::string_view json,
                                                    const std::string& file) try {
  const JsonDocument document(json, file);
  const JsonNode root(document);
  if (!root.is_list() && !root.has("launches"))
    return std::vector<Description>{read_description(root)};
  if (!root.is_list()) root.only_keys("a file of launches", {"comment", "launches"});
  std::vector<Description> descriptions;
  for (const JsonNode& node : (root.is_list() ? root : root.at("launches")).list())
    descriptions.push_back(read_description(node));
  return descriptions;
} catch (const Fault& fault) {
  return fault.error();
}

}  // namespace ptxsim::timing
