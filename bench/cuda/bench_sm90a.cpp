// Times every instance of the sm_90a kernels over shapes, with weights that are cold in L2: what
// the choice of an instance is made from. Each result is compared with the oracle at sampled tiles.
//
//   bench_sm90a --n 4096 --k 7168 --m 1,16,128 --a e2m1 --ctas 132 --all --prepared
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/cuda/cold_sets.hpp"
#include "bench/cuda/judge.hpp"
#include "bench/cuda/operands.hpp"
#include "bench/cuda/stopwatch.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/graph_timer.hpp"

namespace dualgemm::bench {
namespace {

using cuda::DeviceMemory;
namespace hopper = cuda::hopper;
namespace sm90a = cuda::sm90a;
namespace skinny = cuda::sm90a_skinny;

struct Arguments {
  std::vector<int64_t> m{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  int64_t n = 4096, k = 7168;
  std::string a = "e2m1", scales = "linear";
  std::vector<int64_t> ctas;  // empty: all SMs
  bool all = false;           // instances, not only the chosen one
  bool prepared = false;      // instances for prepared weights
  bool parts = false;         // also each kernel alone
  double seconds = 0.02;      // to measure a point for
  std::string json;           // where the points go, for scripts/tune_sm90a; empty: nowhere
};

// What a call reads and writes; prepared weights, or null.
struct Operands {
  Buffers buffers;
  const uint8_t* prepared = nullptr;
};

// Device memory of one shape, and its addresses for every set of weights.
struct Device {
  ColdWeights weights;
  ColdSets packed;
  DeviceMemory a, a_scales, d, workspace;
  std::vector<Operands> sets;
};

// The sets become those of the weights packed on the GPU.
Status pack(const core::ResolvedProblem& problem, Device& device) {
  auto sets = ColdSets::allocate(cuda::packed_bytes(problem.problem));
  if (!sets) return sets.status();
  device.packed = *std::move(sets);
  Buffers buffers = device.sets.front().buffers;
  const auto launch = cuda::pack_weights_launch(problem, buffers, device.packed.of_call(0));
  DUALGEMM_TRY(cuda::enqueue(launch, nullptr));
  DUALGEMM_TRY(cuda::synchronize(nullptr));
  DUALGEMM_TRY(device.packed.replicate());
  buffers.gate = buffers.up = nullptr;
  buffers.gate_scales = buffers.up_scales = nullptr;
  device.sets.clear();
  for (int i = 0; i < device.packed.count(); ++i)
    device.sets.push_back({buffers, device.packed.of_call(i)});
  return {};
}

Status upload(HostOperands& host, Device& device) {
  Buffers buffers = host.buffers();
  for (const auto& [memory, bytes] :
       {std::pair{&device.a, &host.a}, {&device.a_scales, &host.a_scales}, {&device.d, &host.d}}) {
    auto made = DeviceMemory::allocate(static_cast<int64_t>(bytes->size()), "operand");
    if (!made) return made.status();
    DUALGEMM_TRY(made->upload(bytes->data()));
    *memory = *std::move(made);
  }
  buffers.a = device.a.data(), buffers.a_scales = device.a_scales.data();
  buffers.d = device.d.data();
  auto weights = ColdWeights::upload(host);
  if (!weights) return weights.status();
  device.weights = *std::move(weights);
  for (int i = 0; i < device.weights.sets().count(); ++i) {
    device.weights.place(i, buffers);
    device.sets.push_back({buffers});
  }
  return {};
}

using Launches = std::vector<std::vector<cuda::KernelLaunch>>;  // of each set

// Seconds per call of launches first .. last-1 of each set.
Expected<double> time_launches(const Launches& sets, size_t first, size_t last, double seconds) {
  const auto enqueue = [&](void* stream, int call) -> Status {
    const auto& launches = sets[static_cast<size_t>(call) % sets.size()];
    for (size_t i = first; i < std::min(last, launches.size()); ++i)
      DUALGEMM_TRY(cuda::enqueue(launches[i], static_cast<cudaStream_t>(stream)));
    return {};
  };
  const int calls = static_cast<int>(sets.size());
  const auto once = cuda::time_graph(calls, 3, enqueue);
  if (!once) return once.status();
  const double one = timing_of(*once).median * calls;
  const auto all =
      cuda::time_graph(calls, std::clamp(static_cast<int>(seconds / one), 5, 100), enqueue);
  if (!all) return all.status();
  return timing_of(*all).median;
}

// One instance of one of the kernels on so many CTAs.
struct Point {
  const char* entry;
  const char* kernel;  // of scripts/tune_sm90a
  int tile_m, tile_n, k_warpgroups;
  int64_t max_ctas, ctas;
  const char* sharing;  // of tiles between CTAs
  int64_t workspace_bytes;
  std::function<Expected<std::vector<cuda::KernelLaunch>>(const Operands&, void*)> launches;
};

Point point_of(const sm90a::Instance& instance, const core::ResolvedProblem& problem,
               int64_t max_ctas, cuda::EncodeTiled encode) {
  const sm90a::Config& config = instance.config;
  const sm90a::Schedule schedule = sm90a::make_schedule(problem.problem, config, max_ctas);
  const sm90a::Workspace pieces = sm90a::plan_workspace(problem, config, schedule, false);
  return {.entry = instance.entry,
          .kernel = "wgmma",
          .tile_m = config.tile_m,
          .tile_n = config.n_warpgroups * sm90a::kWarpgroupCols,
          .k_warpgroups = config.k_warpgroups,
          .max_ctas = max_ctas,
          .ctas = schedule.ctas,
          .sharing = schedule.paired                ? "pairs"
                     : schedule.shared_k_tiles == 0 ? "whole"
                     : schedule.whole_tiles == 0    ? "shared"
                                                    : "both",
          .workspace_bytes = pieces.bytes,
          .launches = [&instance, problem, schedule, pieces, encode](const Operands& operands,
                                                                     void* workspace) {
            return sm90a::build_launches(problem, operands.buffers, pieces, workspace, instance,
                                         schedule, encode, operands.prepared);
          }};
}

Point point_of(const skinny::Instance& instance, const core::ResolvedProblem& problem,
               int64_t max_ctas) {
  const int64_t ctas = skinny::ctas_for(problem.problem, instance.config, max_ctas);
  return {
      .entry = instance.entry,
      .kernel = "skinny",
      .tile_m = instance.config.tile_m,
      .tile_n = skinny::tile_n_of(instance.config),
      .k_warpgroups = 0,
      .max_ctas = max_ctas,
      .ctas = ctas,
      .sharing = "whole",
      .workspace_bytes = 0,
      .launches = [&instance, problem, ctas](const Operands& operands,
                                             void*) -> Expected<std::vector<cuda::KernelLaunch>> {
        return skinny::build_launches(problem, operands.buffers, nullptr, instance, ctas,
                                      operands.prepared);
      }};
}

// One line of the file that scripts/tune_sm90a reads.
struct PointsFile {
  std::ofstream file;
  const char* separator = "[\n";
  std::string device;
  int sms = 0;

  void write(const Problem& problem, const Arguments& arguments, const Point& point, double seconds,
             double share) {
    if (!file.is_open()) return;
    const nlohmann::ordered_json line = {{"device", device},
                                         {"sms", sms},
                                         {"n", problem.n},
                                         {"k", problem.k},
                                         {"m", problem.m},
                                         {"a", arguments.a},
                                         {"scales", arguments.scales},
                                         {"prepared", arguments.prepared},
                                         {"kernel", point.kernel},
                                         {"tile_m", point.tile_m},
                                         {"tile_n", point.tile_n},
                                         {"k_warpgroups", point.k_warpgroups},
                                         {"max_ctas", point.max_ctas},
                                         {"microseconds", seconds * 1e6},
                                         {"share_of_bound", share}};
    file << separator << line.dump();
    separator = ",\n";
  }
};

Status measure(const Problem& problem, const Point& point, Device& device, HostOperands& host,
               const Arguments& arguments, bool chosen, PointsFile& points) {
  if (device.workspace.size() < point.workspace_bytes) {
    auto made = DeviceMemory::allocate(point.workspace_bytes, "workspace");
    if (!made) return made.status();
    device.workspace = *std::move(made);
  }
  Launches sets;
  for (const Operands& set : device.sets) {
    auto launches = point.launches(set, device.workspace.data());
    if (!launches) return launches.status();
    sets.push_back(*std::move(launches));
  }
  const auto whole = time_launches(sets, 0, 9, arguments.seconds);
  if (!whole) return whole.status();
  DUALGEMM_TRY(device.d.download(host.d.data()));
  const double share = worst_share_of_bound(problem, host.buffers(), Isa::kSm90a);
  double prepare = 0.0, main = 0.0;
  if (arguments.parts && sets[0].size() > 1) {
    const size_t last = sets[0].size() - 1;
    const auto first_alone = time_launches(sets, last - 1, last, arguments.seconds / 4);
    const auto last_alone = time_launches(sets, last, last + 1, arguments.seconds / 4);
    if (!first_alone || !last_alone)
      return first_alone ? last_alone.status() : first_alone.status();
    prepare = *first_alone, main = *last_alone;
  }
  points.write(problem, arguments, point, *whole, share);
  const double bytes = 4.0 * static_cast<double>(host.gate.size() + host.gate_scales.size()) / 2;
  fmt::print("{}{:5} {:<32} ctas {:3} {:6} {:8.2f} us {:7.1f} TFLOP/s {:7.0f} GB/s",
             chosen ? "*" : " ", problem.m, point.entry + std::strlen("dual_gemm_sm90a_"),
             point.ctas, point.sharing, *whole * 1e6, core::flops(problem) / *whole * 1e-12,
             bytes / *whole * 1e-9);
  if (main > 0.0) fmt::print(", prepare {:.2f}, main {:.2f}", prepare * 1e6, main * 1e6);
  fmt::print(", share of bound {:.3f}{}\n", share, share <= 1.0 ? "" : " WRONG");
  std::fflush(stdout);
  return {};
}

Status sweep_rows(int64_t m, const Arguments& arguments, int num_sms, PointsFile& points) {
  Problem problem{.m = m, .n = arguments.n, .k = arguments.k};
  const auto type = parse_data_type(arguments.a);
  if (!type) return type.status();
  const auto layout = parse_scale_layout(arguments.scales);
  if (!layout) return layout.status();
  problem.a.type = *type;
  problem.gate.scale_layout = problem.up.scale_layout = *layout;
  auto made = random_operands(problem);
  if (!made) return made.status();
  HostOperands host = *std::move(made);
  Device device;
  DUALGEMM_TRY(upload(host, device));
  const auto encode = cuda::driver_encode_tiled();
  if (!encode) return encode.status();
  std::vector<int64_t> ctas = arguments.ctas;
  if (ctas.empty()) ctas.push_back(num_sms);
  const core::ResolvedProblem resolved = core::resolve(problem);
  const bool prepared = arguments.prepared;
  if (prepared) DUALGEMM_TRY(pack(resolved, device));
  const auto run = [&](const auto& instance, bool chosen) -> Status {
    for (const int64_t count : ctas) {
      Point point;
      if constexpr (std::is_same_v<decltype(instance), const sm90a::Instance&>) {
        point = point_of(instance, resolved, count, *encode);
      } else {
        point = point_of(instance, resolved, count);
      }
      DUALGEMM_TRY(measure(problem, point, device, host, arguments, chosen, points));
    }
    return {};
  };
  const bool few_rows = skinny::supports(problem, prepared).ok();
  for (const skinny::Instance& instance : skinny::instances()) {
    const int tile_n = skinny::tile_n_of(instance.config);
    if (!few_rows || skinny::find_instance(problem, tile_n, prepared) != &instance) continue;
    const bool is_chosen = &instance == &skinny::choose_instance(problem, num_sms, prepared);
    if (is_chosen || arguments.all) DUALGEMM_TRY(run(instance, is_chosen));
  }
  const sm90a::Instance& chosen = sm90a::choose_instance(problem, num_sms, prepared);
  for (const sm90a::Instance& instance : sm90a::instances()) {
    const bool is_chosen = &instance == &chosen && !few_rows;
    const int tile_m = instance.config.tile_m;
    const bool sensible = tile_m < 2 * m + 16 && tile_m * 4 >= m && m <= 16 * tile_m;
    if (instance.config.bf16 != chosen.config.bf16 || instance.config.prepared != prepared)
      continue;
    if (!is_chosen && (!arguments.all || (!sensible && tile_m < 128))) continue;
    if (!is_chosen && tile_m >= 4 * m && tile_m > 16) continue;
    DUALGEMM_TRY(run(instance, is_chosen));
  }
  return {};
}

Status sweep(const Arguments& arguments) {
  const auto caps = cuda::detect_device_caps();
  if (!caps) return caps.status();
  fmt::print("{}, {} SMs; n {}, k {}, a {}, {} scales{}\n", caps->name, caps->num_sms, arguments.n,
             arguments.k, arguments.a, arguments.scales,
             arguments.prepared ? ", prepared weights" : "");
  PointsFile points;
  points.device = caps->name;
  points.sms = caps->num_sms;
  if (!arguments.json.empty()) points.file.open(arguments.json);
  for (const int64_t m : arguments.m) DUALGEMM_TRY(sweep_rows(m, arguments, caps->num_sms, points));
  if (arguments.json.empty()) return {};
  points.file << "\n]\n";
  points.file.close();
  if (points.file) return {};
  return Status::error(StatusCode::kIoError, "--json", arguments.json, "could not be written");
}

}  // namespace
}  // namespace dualgemm::bench

int main(int argc, char** argv) {
  dualgemm::bench::Arguments arguments;
  CLI::App app{"Times the instances of the sm_90a kernels on this GPU, weights cold in L2."};
  app.add_option("--m", arguments.m, "rows of A")->delimiter(',');
  app.add_option("--n", arguments.n, "columns of D");
  app.add_option("--k", arguments.k, "a multiple of 16");
  app.add_option("--a", arguments.a, "e2m1, f16 or bf16");
  app.add_option("--scales", arguments.scales, "of the weights: linear or swizzled_128x4");
  app.add_option("--ctas", arguments.ctas, "at most so many CTAs, several to compare")
      ->delimiter(',');
  app.add_option("--seconds", arguments.seconds, "to measure a point for");
  app.add_flag("--all", arguments.all, "all instances that could suit, not only the chosen one");
  app.add_flag("--prepared", arguments.prepared, "instances for prepared weights");
  app.add_flag("--parts", arguments.parts, "also each kernel alone");
  app.add_option("--json", arguments.json, "the points, for scripts/tune_sm90a");
  CLI11_PARSE(app, argc, argv);
  const dualgemm::Status status = dualgemm::bench::sweep(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "bench_sm90a: {}\n", status.message());
  return 1;
}
