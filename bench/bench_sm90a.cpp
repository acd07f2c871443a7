// Times every instance of the sm_90a kernel over shapes, with weights that are cold in L2: what the
// choice of an instance is made from. Each result is compared with the oracle at sampled tiles.
//
//   bench_sm90a --n 4096 --k 7168 --m 1,16,128 --a e2m1 --ctas 132 --all
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/half.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "reference/bound.hpp"

namespace dualgemm::bench {
namespace {

using cuda::DeviceMemory;
namespace sm90a = cuda::sm90a;

constexpr int64_t kColdBytes = 430'000'000;  // of weight sets: several times an H200's 60 MB of L2
constexpr int kSampledTiles = 6, kSampledRows = 3, kSampledCols = 20;

struct Arguments {
  std::vector<int64_t> m{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  int64_t n = 4096, k = 7168;
  std::string a = "e2m1", scales = "linear";
  std::vector<int64_t> ctas;  // empty: all SMs
  bool all = false;           // instances, not only the chosen one
  bool parts = false;         // also each kernel alone
  double seconds = 0.02;      // to measure a point for
  std::string json;           // where the points go, for scripts/tune_sm90a; empty: nowhere
};

// A small generator whose numbers are the same everywhere.
struct Random {
  uint64_t state = 0x9E3779B97F4A7C15u;
  uint64_t operator()() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }
};

// Operands of one shape on the host: codes at random, scales 1/8 .. 4.
struct Operands {
  std::vector<uint8_t> a, a_scales, gate, gate_scales, up, up_scales, d;
};

void fill_codes(std::vector<uint8_t>& bytes, Random& random) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
}
void fill_scales(std::vector<uint8_t>& bytes, Random& random) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(0x20 + random() % 41);
}

void fill_activations(std::vector<uint8_t>& bytes, DataType type, Random& random) {
  if (type == DataType::kE2M1) return fill_codes(bytes, random);
  auto* const values = reinterpret_cast<uint16_t*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    float sum = -2.0f;  // of four uniform numbers: about normal
    for (int j = 0; j < 4; ++j) sum += static_cast<float>(random() % 65536) / 65536.0f;
    values[i] =
        type == DataType::kF16 ? core::encode_f16(1.7f * sum) : core::encode_bf16(1.7f * sum);
  }
}

// Device memory of one shape: as many copies of the weights as keep them cold.
struct Device {
  std::vector<DeviceMemory> memory;
  std::vector<Buffers> sets;
  DeviceMemory workspace;
};

Status put(Device& device, const std::vector<uint8_t>& bytes, uint8_t** to) {
  auto made = DeviceMemory::allocate(static_cast<int64_t>(bytes.size()), "operand");
  if (!made) return made.status();
  DUALGEMM_TRY(made->upload(bytes.data()));
  *to = made->data();
  device.memory.push_back(*std::move(made));
  return {};
}

Status upload(const Operands& host, Device& device) {
  Buffers shared;
  uint8_t* to = nullptr;
  DUALGEMM_TRY(put(device, host.a, &to));
  shared.a = to;
  if (!host.a_scales.empty()) {
    DUALGEMM_TRY(put(device, host.a_scales, &to));
    shared.a_scales = to;
  }
  DUALGEMM_TRY(put(device, host.d, &to));
  shared.d = to;
  shared.alpha_gate = shared.alpha_up = 0.02f;
  const auto bytes = static_cast<int64_t>(2 * (host.gate.size() + host.gate_scales.size()));
  for (int64_t made = 0; made < kColdBytes || device.sets.empty(); made += bytes) {
    Buffers set = shared;
    DUALGEMM_TRY(put(device, host.gate, &to));
    set.gate = to;
    DUALGEMM_TRY(put(device, host.gate_scales, &to));
    set.gate_scales = to;
    DUALGEMM_TRY(put(device, host.up, &to));
    set.up = to;
    DUALGEMM_TRY(put(device, host.up_scales, &to));
    set.up_scales = to;
    device.sets.push_back(set);
  }
  return {};
}

// The largest share of the oracle's bound that any sampled element uses; above 1: wrong.
double worst_share(const Problem& problem, const Buffers& host) {
  double worst = 0.0;
  Random random;
  for (int tile = 0; tile < kSampledTiles; ++tile) {
    const int64_t rows = std::min<int64_t>(kSampledRows, problem.m);
    const int64_t cols = std::min<int64_t>(kSampledCols, problem.n);
    // The first tile ends at the last row and column.
    const int64_t row =
        tile == 0 ? problem.m - rows : static_cast<int64_t>(random() % (problem.m - rows + 1));
    const int64_t col =
        tile == 0 ? problem.n - cols : static_cast<int64_t>(random() % (problem.n - cols + 1));
    const core::RowGroup group{0, 0, problem.m, 0, 0, 0};
    const auto check =
        reference::check_tile(core::resolve(problem), host, group, row, rows, col, cols,
                              reference::accumulation_of(problem, Isa::kSm90a));
    worst = std::max(worst, check.failed > 0 ? HUGE_VAL : check.worst_share);
  }
  return worst;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
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
  const double one = median(*once) * calls;
  const auto all =
      cuda::time_graph(calls, std::clamp(static_cast<int>(seconds / one), 5, 100), enqueue);
  if (!all) return all.status();
  return median(*all);
}

struct Point {
  const sm90a::Instance* instance;
  int64_t ctas;
};

// One line of the file that scripts/tune_sm90a reads.
struct PointsFile {
  std::ofstream file;
  const char* separator = "[\n";
  std::string device;
  int sms = 0;

  void write(const Problem& problem, const Arguments& arguments, const Point& point, double seconds,
             double share) {
    if (!file.is_open()) return;
    const sm90a::Config& config = point.instance->config;
    const nlohmann::ordered_json line = {{"device", device},
                                         {"sms", sms},
                                         {"n", problem.n},
                                         {"k", problem.k},
                                         {"m", problem.m},
                                         {"a", arguments.a},
                                         {"scales", arguments.scales},
                                         {"family", "wgmma"},
                                         {"tokens", config.tokens},
                                         {"cols", config.groups * sm90a::kGroupCols},
                                         {"phases", config.phases},
                                         {"max_ctas", point.ctas},
                                         {"microseconds", seconds * 1e6},
                                         {"share_of_bound", share}};
    file << separator << line.dump();
    separator = ",\n";
  }
};

Status measure(const Problem& problem, const Point& point, Device& device, Operands& host,
               const Arguments& arguments, bool chosen, PointsFile& points) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  const sm90a::Config& config = point.instance->config;
  const sm90a::Schedule schedule = sm90a::make_schedule(problem, config, point.ctas);
  const sm90a::Workspace pieces = sm90a::plan_workspace(resolved, config, schedule, false);
  if (device.workspace.size() < pieces.bytes) {
    auto made = DeviceMemory::allocate(pieces.bytes, "workspace");
    if (!made) return made.status();
    device.workspace = *std::move(made);
  }
  const auto encode = cuda::driver_encode_tiled();
  if (!encode) return encode.status();
  Launches sets;
  for (const Buffers& set : device.sets) {
    auto launches = sm90a::build_launches(resolved, set, pieces, device.workspace.data(),
                                          *point.instance, schedule, *encode);
    if (!launches) return launches.status();
    sets.push_back(*std::move(launches));
  }
  const auto whole = time_launches(sets, 0, 9, arguments.seconds);
  if (!whole) return whole.status();
  if (cudaMemcpy(host.d.data(), device.sets[0].d, host.d.size(), cudaMemcpyDeviceToHost) !=
      cudaSuccess) {
    return Status::error(StatusCode::kInternal, "d", "not copied", "must arrive");
  }
  Buffers on_host = device.sets[0];
  on_host.a = host.a.data(),
  on_host.a_scales = host.a_scales.empty() ? nullptr : host.a_scales.data();
  on_host.gate = host.gate.data(), on_host.gate_scales = host.gate_scales.data();
  on_host.up = host.up.data(), on_host.up_scales = host.up_scales.data();
  on_host.d = host.d.data();
  const double share = worst_share(problem, on_host);
  double prepare = 0.0, main = 0.0;
  if (arguments.parts) {
    const size_t last = sets[0].size() - 1;
    const auto first_alone = time_launches(sets, last - 1, last, arguments.seconds / 4);
    const auto last_alone = time_launches(sets, last, last + 1, arguments.seconds / 4);
    if (!first_alone || !last_alone)
      return first_alone ? last_alone.status() : first_alone.status();
    prepare = *first_alone, main = *last_alone;
  }
  points.write(problem, arguments, point, *whole, share);
  const double bytes = 4.0 * static_cast<double>(host.gate.size() + host.gate_scales.size()) / 2;
  fmt::print("{}{:5} {:<32} ctas {:3} {} {:8.2f} us {:7.1f} TFLOP/s {:7.0f} GB/s",
             chosen ? "*" : " ", problem.m, point.instance->entry + 16, schedule.ctas,
             schedule.shared_blocks == 0 ? "whole "
             : schedule.whole_tiles == 0 ? "shared"
                                         : "both  ",
             *whole * 1e6, core::flops(problem) / *whole * 1e-12, bytes / *whole * 1e-9);
  if (arguments.parts) fmt::print(", prepare {:.2f}, main {:.2f}", prepare * 1e6, main * 1e6);
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
  const auto sizes = operand_sizes(problem);
  if (!sizes) return sizes.status();
  Operands host;
  const auto resize = [](std::vector<uint8_t>& bytes, int64_t size) {
    bytes.resize(static_cast<size_t>(size));
  };
  resize(host.a, sizes->a), resize(host.a_scales, sizes->a_scales), resize(host.d, sizes->d);
  resize(host.gate, sizes->gate), resize(host.gate_scales, sizes->gate_scales);
  resize(host.up, sizes->up), resize(host.up_scales, sizes->up_scales);
  Random random;
  fill_activations(host.a, *type, random);
  fill_scales(host.a_scales, random);
  fill_codes(host.gate, random), fill_scales(host.gate_scales, random);
  fill_codes(host.up, random), fill_scales(host.up_scales, random);
  Device device;
  DUALGEMM_TRY(upload(host, device));
  const sm90a::Instance& chosen = sm90a::choose_instance(problem, num_sms);
  std::vector<int64_t> ctas = arguments.ctas;
  if (ctas.empty()) ctas.push_back(num_sms);
  for (const sm90a::Instance& instance : sm90a::instances()) {
    const bool is_chosen = &instance == &chosen;
    const int tokens = instance.config.tokens;
    const bool sensible = tokens < 2 * m + 16 && tokens * 4 >= m && m <= 16 * tokens;
    if (instance.config.bf16 != chosen.config.bf16) continue;
    if (!is_chosen && (!arguments.all || (!sensible && tokens < 128))) continue;
    if (!is_chosen && tokens >= 4 * m && tokens > 16) continue;
    for (const int64_t count : ctas)
      DUALGEMM_TRY(
          measure(problem, {&instance, count}, device, host, arguments, is_chosen, points));
  }
  return {};
}

Status sweep(const Arguments& arguments) {
  const auto caps = cuda::detect_device_caps();
  if (!caps) return caps.status();
  fmt::print("{}, {} SMs; n {}, k {}, a {}, {} scales\n", caps->name, caps->num_sms, arguments.n,
             arguments.k, arguments.a, arguments.scales);
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
  CLI::App app{"Times the instances of the sm_90a kernel on this GPU, weights cold in L2."};
  app.add_option("--m", arguments.m, "rows of a")->delimiter(',');
  app.add_option("--n", arguments.n, "columns of d");
  app.add_option("--k", arguments.k, "a multiple of 16");
  app.add_option("--a", arguments.a, "e2m1, f16 or bf16");
  app.add_option("--scales", arguments.scales, "of the weights: linear or swizzled_128x4");
  app.add_option("--ctas", arguments.ctas, "at most so many CTAs, several to compare")
      ->delimiter(',');
  app.add_option("--seconds", arguments.seconds, "to measure a point for");
  app.add_flag("--all", arguments.all, "all instances that could suit, not only the chosen one");
  app.add_flag("--parts", arguments.parts, "also each kernel alone");
  app.add_option("--json", arguments.json, "the points, for scripts/tune_sm90a");
  CLI11_PARSE(app, argc, argv);
  const dualgemm::Status status = dualgemm::bench::sweep(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "bench_sm90a: {}\n", status.message());
  return 1;
}
