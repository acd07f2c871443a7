// Writes a case of one of CUTLASS's kernels for `ptxsim time`: its launch on prepared weights, with
// unwritten buffers. Usage: write_cutlass_case M N K 128|256 FOLDER, the fourth the
// rows of a tile.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "cuda/cutlass/launch.hpp"
#include "ptxsim/tensor_map.hpp"

namespace {

using namespace dualgemm;
using Json = nlohmann::json;
namespace gated = cuda::gated;

// Far apart, as in every case.
uint64_t address(size_t number) { return (uint64_t{1} << 40) + number * (uint64_t{1} << 32); }
uint8_t* at(size_t number) { return reinterpret_cast<uint8_t*>(address(number)); }

const gated::Instance* instance_of(int tile_m) {
  for (const gated::Instance* instance : gated::instances()) {
    if (instance->any_epilogue && instance->tile_m == tile_m) return instance;
  }
  return nullptr;
}

Expected<cuda::GridLaunch> launch_of(const Problem& problem, const gated::Instance& instance) {
  DUALGEMM_TRY(validate(problem));
  DUALGEMM_TRY(gated::supports(problem));
  Buffers buffers;
  buffers.a = at(0), buffers.a_scales = at(1), buffers.d = at(3);
  const gated::Weights weights{at(2), gated::weight_layout(problem.n, problem.k).bytes()};
  const auto launches = gated::build_launches(
      core::resolve(problem), buffers, weights, gated::Workspace(), nullptr, instance,
      reinterpret_cast<cuda::EncodeTiled>(&ptxsim::encode_tiled_abi));
  if (!launches) return launches.status();
  return launches->gemm;
}

void write(const std::filesystem::path& folder, const Problem& p, const cuda::GridLaunch& launch) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "params.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(launch.params.data()), launch.param_bytes);
  const core::ResolvedProblem resolved = core::resolve(p);
  Json buffers = Json::array();
  const auto add = [&](const char* name, int64_t bytes, bool read_only) {
    buffers.push_back({{"name", name},
                       {"address", address(buffers.size())},
                       {"bytes", bytes},
                       {"read_only", read_only}});
  };
  add("a", resolved.a.data_span_bytes(1), true);
  add("a_scales", resolved.a.scale_span_bytes(1), true);
  add("weights", gated::weight_layout(p.n, p.k).bytes(), true);
  add("d", p.m * p.n * 2, false);
  std::ofstream(folder / "case.json") << Json{{"entry", launch.kernel.entry},
                                              {"grid", launch.grid},
                                              {"cluster", {launch.cluster_ctas, 1, 1}},
                                              {"block", {launch.threads, 1, 1}},
                                              {"dynamic_shared_bytes", launch.dynamic_smem_bytes},
                                              {"check_uninitialized", false},
                                              {"params", "params.bin"},
                                              {"buffers", buffers}}
                                             .dump(1)
                                      << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: write_cutlass_case M N K 128|256 FOLDER\n";
    return 2;
  }
  Problem problem{.m = std::atoll(argv[1]), .n = std::atoll(argv[2]), .k = std::atoll(argv[3])};
  problem.a.scale_layout = ScaleLayout::kSwizzled128x4;
  const gated::Instance* const instance = instance_of(std::atoi(argv[4]));
  if (instance == nullptr || problem.k % 64 != 0) {
    std::cerr << "write_cutlass_case: tiles have 128 or 256 rows, K must be a multiple of 64\n";
    return 2;
  }
  const auto launch = launch_of(problem, *instance);
  if (!launch) {
    std::cerr << "write_cutlass_case: " << launch.status().message() << "\n";
    return 2;
  }
  write(argv[5], problem, *launch);
  return 0;
}
