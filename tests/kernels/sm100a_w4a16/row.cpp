// The sm_100a kernel for 16-bit A as a row of the suite.
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  W4a16Run run{
      .tile_m = setting.tile_m, .misalign = setting.misalign, .prepared = setting.prepared};
  if (setting.split != 0) run.split = setting.split;
  if (setting.max_ctas != 0) run.max_ctas = setting.max_ctas;
  return simulate(data, run);
}

std::vector<std::map<std::string, int64_t>> tiles() {
  std::vector<std::map<std::string, int64_t>> list;
  for (const auto& instance : cuda::sm100a_w4a16::instances()) {
    const DataType type = instance.config.bf16 ? DataType::kBF16 : DataType::kF16;
    list.push_back({{"tile_m", instance.config.tile_m},
                    {"a", static_cast<int64_t>(type)},
                    {"stages", instance.stages}});
  }
  return list;
}

}  // namespace

const KernelRow& kernel_row() {
  static const KernelRow row{.cases = DUALGEMM_CASES,
                             .accumulation = reference::Accumulation::kAnyOrder,
                             .simulate = simulate_setting,
                             .instances = tiles};
  return row;
}

}  // namespace dualgemm::test
