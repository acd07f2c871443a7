#include "timing/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/json_node.hpp"

namespace ptxsim::timing {
namespace {

constexpr const char* kNames[kNumParameters] = {
    "sm_clock_ghz",
    "num_sms",
    "tensor_macs_per_clk",
    "shared_bytes_per_clk",
    "mma_latency_us",
    "tma_issue_us",
    "load_latency_us",
    "first_load_extra_us",
    "hbm_tb_per_s",
    "l2_tb_per_s",
    "ingest_gb_per_s",
    "barrier_hop_us",
    "named_barrier_us",
    "cluster_barrier_us",
    "tmem_load_bytes_per_clk",
    "tmem_latency_us",
    "tmem_alloc_us",
    "mufu_lanes_per_clk",
    "issue_slots_per_clk",
    "epilogue_factor",
    "epilogue_tail_us",
    "setup_us",
    "launch_gap_us",
    "pdl_gap_us",
    "exit_us",
    "tile_switch_us",
    "global_latency_us",
    "graph_gap_us",
    "start_us",
    "store_tail_us",
    "cta_start_us",
    "l2_latency_us",
    "atomic_latency_us",
    "l2_access_tb_per_s",
    "l2_mib",
    "atomic_sectors_per_ns",
    "atomic_address_ns",
    "barrier_warp_clk",
    "fp64_lanes_per_clk",
    "mma_sync_part",
    "alu_clk",
    "fma_clk",
    "fp64_clk",
    "function_clk",
    "shared_load_clk",
    "conflict_clk",
    "l1_clk",
    "shuffle_clk",
    "vote_clk",
    "mma_sync_clk",
    "branch_clk",
    "shared_kib_per_sm",
    "l1_kib",
    "threads_per_sm",
    "ctas_per_sm",
    "sustained_tmac_per_s",
    "sustained_4bit_tmac_per_s",
    "role_factor",
    "model_factor",
    "power_4bit_tmac_per_s",
    "power_memory_tb_per_s",
};
constexpr const char* kKinds[] = {"measured", "published", "derived", "fitted", "assumed"};

Known read_known(const JsonNode& node) {
  node.only_keys("a parameter", {"value", "low", "high", "kind", "source"});
  Known known;
  known.value = node.at("value").number();
  known.low = node.at("low").number();
  known.high = node.at("high").number();
  known.kind = node.at("kind").text();
  known.source = node.at("source").text();
  if (!(known.low > 0)) node.at("low").fail(fmt::format("{}; must be above 0", known.low));
  if (!(known.low <= known.value && known.value <= known.high))
    node.at("value").fail(
        fmt::format("{}; must lie from low, {}, to high, {}", known.value, known.low, known.high));
  if (std::none_of(std::begin(kKinds), std::end(kKinds),
                   [&](const char* kind) { return known.kind == kind; }))
    node.at("kind").fail(
        fmt::format("'{}'; must be one of {}", known.kind, fmt::join(kKinds, ", ")));
  if (known.source.empty()) node.at("source").fail("''; must say where the value is from");
  return known;
}

void refuse_unknown_names(const JsonNode& list) {
  for (const auto& [name, value] : list.json().items())
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
      list.at(name).fail(fmt::format("there is no parameter '{}'", name));
}

}  // namespace

const char* name_of(Parameter parameter) { return kNames[static_cast<size_t>(parameter)]; }

Values GpuParameters::values() const {
  Values values{};
  for (size_t i = 0; i < kNumParameters; ++i) values[i] = known[i].value;
  return values;
}

Result<GpuParameters> parse_parameters(std::string_view json, const std::string& file) try {
  const JsonDocument document(json, file);
  const JsonNode root(document);
  root.only_keys("a file of parameters", {"gpu", "comment", "parameters"});
  GpuParameters parameters;
  parameters.name = root.at("gpu").text();
  const JsonNode list = root.at("parameters");
  for (size_t i = 0; i < kNumParameters; ++i) parameters.known[i] = read_known(list.at(kNames[i]));
  refuse_unknown_names(list);
  return parameters;
} catch (const Fault& fault) {
  return fault.error();
}

}  // namespace ptxsim::timing
