#include "unit/cuda/tested_kernel.hpp"

#include <fmt/format.h>

#include <array>

#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm120a/choice.hpp"
#include "cuda/kernels/sm120a/launch.hpp"
#include "cuda/kernels/sm120a/packed_weights.hpp"
#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "cuda/strategies/passes_kernel.hpp"

namespace dualgemm::test {
namespace {

namespace hopper = cuda::hopper;
namespace sm120a = cuda::sm120a;
namespace sm80 = cuda::sm80;
namespace sm90a = cuda::sm90a;
namespace skinny = cuda::sm90a_skinny;

void take_packed_weights(TestedKernel& kernel) {
  kernel.packed_bytes = [](const KernelCall& call) {
    return cuda::packed_bytes(call.problem.problem);
  };
  kernel.pack = [](const KernelCall& call, const Buffers& buffers, uint8_t* out) {
    return cuda::pack_weights_launch(call.problem, buffers, out);
  };
}

TestedKernel tested(const sm90a::Instance& instance) {
  const auto schedule = [&instance](const KernelCall& call) {
    return sm90a::make_schedule(call.problem.problem, instance.config, call.max_ctas);
  };
  const auto pieces = [&instance, schedule](const KernelCall& call) {
    return sm90a::plan_workspace(call.problem, instance.config, schedule(call), call.unaligned);
  };
  TestedKernel kernel;
  kernel.name = instance.entry;
  kernel.isa = Isa::kSm90a;
  kernel.a_types = {DataType::kBF16};
  if (!instance.config.bf16) kernel.a_types = {DataType::kE2M1, DataType::kF16};
  kernel.tile_m = instance.config.tile_m;
  kernel.tile_n = instance.config.n_warpgroups * sm90a::kWarpgroupCols;
  kernel.runs_on = [](int capability) { return capability == 90; };
  kernel.suits = [&instance](const Problem& p) { return sm90a::is_for(instance.config, p); };
  kernel.workspace_bytes = [pieces](const KernelCall& call) { return pieces(call).bytes; };
  if (instance.config.prepared) take_packed_weights(kernel);
  kernel.launches = [&instance, schedule, pieces](
                        const KernelCall& call, const Buffers& buffers, const uint8_t* packed,
                        void* workspace) -> Expected<std::vector<cuda::KernelLaunch>> {
    const auto encode = cuda::driver_encode_tiled();
    if (!encode) return encode.status();
    return sm90a::build_launches(call.problem, buffers, pieces(call), workspace, instance,
                                 schedule(call), *encode, packed);
  };
  return kernel;
}

// fused_epilogue or fused_sequential by this instance.
TestedKernel tested(const sm90a::Instance& instance, cuda::GateProduct gate) {
  const auto plan = [&instance](const KernelCall& call) {
    Plan made;
    made.problem = call.problem.problem;
    made.unaligned = call.unaligned;
    made.shape = {.tile_m = instance.config.tile_m,
                  .tile_n = instance.config.n_warpgroups * sm90a::kWarpgroupCols,
                  .k_warpgroups = instance.config.k_warpgroups,
                  .ctas = static_cast<int>(call.max_ctas)};
    return made;
  };
  TestedKernel kernel = tested(instance);
  const bool kept = gate == cuda::GateProduct::kKept;
  if (!kept) kernel.name += "_r1";
  kernel.tile_n *= 2;  // halves of a weight side by side
  kernel.suits = [](const Problem& p) { return p.combine == Combine::kGlu; };
  kernel.workspace_bytes = [plan, gate](const KernelCall& call) {
    return cuda::passes_kernel_sm90a().workspace_bytes(plan(call), gate);
  };
  kernel.launches = [plan, gate](const KernelCall& call, const Buffers& buffers, const uint8_t*,
                                 void* workspace) -> Expected<std::vector<cuda::KernelLaunch>> {
    return cuda::passes_kernel_sm90a().launches(plan(call), gate, buffers, workspace,
                                                cuda::driver_encode_tiled);
  };
  return kernel;
}

TestedKernel tested(const skinny::Instance& instance) {
  constexpr DataType kTypes[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16};
  TestedKernel kernel;
  kernel.name = instance.entry;
  kernel.isa = Isa::kSm90a;
  kernel.a_types = {kTypes[static_cast<int>(instance.config.a_type)]};
  kernel.tile_m = kernel.most_m = instance.config.tile_m;
  kernel.tile_n = skinny::tile_n_of(instance.config);
  kernel.step_k = skinny::kStepK;
  kernel.any_alignment = false;
  kernel.runs_on = [](int capability) { return capability == 90; };
  kernel.suits = [&instance](const Problem& p) {
    return p.d.type != DataType::kE2M1 || skinny::writes_nvfp4(instance.config);
  };
  kernel.workspace_bytes = [](const KernelCall&) { return 0; };
  if (instance.config.prepared) take_packed_weights(kernel);
  kernel.launches = [&instance](const KernelCall& call, const Buffers& buffers,
                                const uint8_t* packed,
                                void* workspace) -> Expected<std::vector<cuda::KernelLaunch>> {
    DUALGEMM_TRY(skinny::supports(call.problem.problem, instance.config.prepared));
    // Kernels for many tiles get them.
    const int64_t most = instance.config.many ? std::min<int64_t>(call.max_ctas, 2) : call.max_ctas;
    return skinny::build_launches(call.problem, buffers, workspace, instance,
                                  skinny::ctas_for(call.problem.problem, instance.config, most),
                                  packed);
  };
  return kernel;
}

// With one type of A, whose loops are its own.
TestedKernel tested(const sm80::Instance& instance, DataType type,
                    const sm80::Division& division = {}) {
  TestedKernel kernel;
  kernel.name = fmt::format("{}_{}", instance.entry, name_of(type));
  if (instance.config.pass == sm80::Pass::kUp) kernel.name += "_gate_up";
  if (division.splits > 1) kernel.name += fmt::format("_split{}", division.splits);
  const bool shares = division.splits == sm80::Division::kShares;
  if (division.ctas > 0)
    kernel.name += fmt::format("_{}{}", shares ? "shares" : "turns", division.ctas);
  const bool is_divided = division != sm80::Division{};
  kernel.isa = Isa::kSm80;
  kernel.a_types = {type};
  kernel.tile_m = sm80::tile_m_of(instance.config);
  kernel.tile_n = sm80::tile_n_of(instance.config);
  kernel.runs_on = [](int capability) { return capability >= 80; };
  kernel.suits = [&instance, shares, is_divided](const Problem& p) {
    if (is_divided && p.grouping != Grouping::kNone) return false;
    if (shares && !sm80::can_share(instance.config, p)) return false;
    const bool both = p.combine == Combine::kGlu || instance.config.pass == sm80::Pass::kFused;
    return both &&
           sm80::is_for(instance.config, {p, instance.config.pass, instance.config.prepared});
  };
  const bool from_r1 = instance.config.pass == sm80::Pass::kUp;
  const auto division_of = [&instance, division, shares](const Problem& p) {
    if (division.ctas == 0) return division;
    return shares ? sm80::shares_of(instance.config, p, division.ctas)
                  : sm80::turns_of(instance.config, p, division.ctas);
  };
  kernel.workspace_bytes = [&instance, from_r1, division_of](const KernelCall& call) {
    const Problem& p = call.problem.problem;
    return from_r1 ? sm80::r1_bytes(p) : sm80::workspace_bytes(p, instance, division_of(p));
  };
  if (instance.config.prepared) take_packed_weights(kernel);
  kernel.launches = [&instance, from_r1, is_divided, division_of](
                        const KernelCall& call, const Buffers& buffers, const uint8_t* packed,
                        void* workspace) -> Expected<std::vector<cuda::KernelLaunch>> {
    const sm80::Config& config = instance.config;
    if (is_divided) {
      return sm80::build_fused(
          {call.problem, buffers, instance, workspace, packed, division_of(call.problem.problem)});
    }
    const auto launch = [&](const sm80::Instance& one) {
      return sm80::build_launch({call.problem, buffers, one, workspace, packed});
    };
    std::vector<cuda::KernelLaunch> launches;
    if (from_r1) {
      launches.push_back(launch(*sm80::find_instance(
          {call.problem.problem, sm80::Pass::kGate},
          {sm80::tile_m_of(config), sm80::tile_n_of(config), config.warps_k})));
    }
    launches.push_back(launch(instance));
    return launches;
  };
  return kernel;
}

TestedKernel tested(const sm120a::Instance& instance, bool prepared) {
  TestedKernel kernel;
  kernel.name = std::string(instance.entry) + (prepared ? "_prepared" : "");
  kernel.isa = Isa::kSm120a;
  kernel.a_types = {DataType::kE2M1};
  kernel.tile_m = sm120a::tile_m_of(instance.config);
  kernel.tile_n = sm120a::kTileN;
  kernel.runs_on = [](int capability) { return capability == 120 || capability == 121; };
  kernel.suits = [](const Problem&) { return true; };
  kernel.workspace_bytes = [](const KernelCall&) { return 0; };
  if (prepared) {
    kernel.packed_bytes = [](const KernelCall& call) {
      return sm120a::packed_bytes(call.problem.problem);
    };
    kernel.pack = [](const KernelCall& call, const Buffers& buffers, uint8_t* out) {
      return sm120a::pack_weights_launch(call.problem, buffers, out);
    };
  }
  kernel.launches = [&instance](const KernelCall& call, const Buffers& buffers,
                                const uint8_t* packed,
                                void* workspace) -> Expected<std::vector<cuda::KernelLaunch>> {
    const sm120a::Config& config = instance.config;
    return sm120a::build_launches(
        {call.problem, buffers, instance, sm120a::most_stages(config, sm120a::min_ctas_of(config)),
         sm120a::ctas_for(call.problem.problem, config, call.max_ctas), workspace, packed});
  };
  return kernel;
}

}  // namespace

const std::vector<TestedKernel>& tested_kernels() {
  static const std::vector<TestedKernel> all = [] {
    std::vector<TestedKernel> kernels;
    for (const auto& instance : sm90a::instances()) kernels.push_back(tested(instance));
    for (const auto& instance : sm90a::sequential_instances())
      kernels.push_back(tested(instance, cuda::GateProduct::kKept));
    for (const auto& [tile_m, tile_n, k_warpgroups] :
         {std::array{16, 32, 4}, {64, 128, 1}, {256, 64, 1}}) {
      kernels.push_back(
          tested(*sm90a::find_instance(tile_m, tile_n, k_warpgroups, tile_m == 256, false),
                 cuda::GateProduct::kInMemory));
    }
    for (const auto& instance : skinny::instances()) kernels.push_back(tested(instance));
    for (const auto& instance : skinny::many_instances()) kernels.push_back(tested(instance));
    for (const bool prepared : {false, true}) {
      for (const auto& instance : sm80::instances(prepared)) {
        // kGate writes no D: kUp runs it. Groups have tests of their own.
        if (instance.config.pass == sm80::Pass::kGate) continue;
        for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
          kernels.push_back(tested(instance, type));
          if (!sm80::divides_k_by(instance.config, {}, 3)) continue;
          kernels.push_back(tested(instance, type, {3}));
          kernels.push_back(tested(instance, type, {sm80::Division::kShares, 7}));
          kernels.push_back(tested(instance, type, {1, 5}));
        }
      }
    }
    for (const bool prepared : {false, true}) {
      for (const auto& instance : sm120a::instances())
        kernels.push_back(tested(instance, prepared));
    }
    return kernels;
  }();
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernelOnGpu, ::testing::ValuesIn(tested_kernels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace dualgemm::test
