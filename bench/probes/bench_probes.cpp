// What a kernel's design must know of a GPU, asked of the current one: a table on stdout, JSON in a
// file. Exit codes: 0 all that this GPU can answer was answered; 1 an error; 2 no GPU, or
// arguments.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/probes/probe.hpp"
#include "cuda/runtime/device.hpp"

namespace dualgemm::bench {
namespace {

constexpr Probe kProbes[] = {
    {"launch_period", "What does a launch cost beside what its kernel does?", probe_launch_period},
    {"overlap", "Which grids run beside those before them?", probe_overlap},
    {"clocks", "How fast are the clocks, and how fine the timers?", probe_clocks},
    {"first_bytes", "How soon is the first stage there?", probe_first_bytes},
    {"copy_rates", "What do memory and L2 deliver by TMA?", probe_copy_rates},
    {"mma_issue", "What does a scheduler issue beside an mma.sync?", probe_mma_issue},
    {"mma_nvf4", "What does a block-scaled mma.sync of 4-bit operands take?", probe_mma_nvf4},
    {"tensor_pipe", "What does a stage of block-scaled MMAs take, and what its scales?",
     probe_tensor_pipe},
};

int run(bool brief, const std::string& json_file) {
  const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  if (!caps) {
    fmt::print(stderr, "bench_probes: {}\n", caps.status().message());
    return 2;
  }
  fmt::print("{}, {} SMs\n", caps->name, caps->num_sms);
  nlohmann::ordered_json json{{"device", caps->name},
                              {"compute_capability", caps->compute_capability},
                              {"num_sms", caps->num_sms},
                              {"brief", brief}};
  bool failed = false;
  for (const Probe& probe : kProbes) {
    fmt::print("\n{}: {}\n", probe.name, probe.question);
    const auto readings = probe.run({*caps, brief});
    if (!readings) {
      const bool refused = readings.status().code() == StatusCode::kUnsupported;
      failed |= !refused;
      fmt::print("  {}: {}\n", refused ? "not on this GPU" : "FAILED", readings.status().message());
      json["probes"][probe.name] = {{refused ? "refused" : "failed", readings.status().message()}};
      continue;
    }
    for (const Reading& reading : *readings) {
      fmt::print("  {:<52} {:>10.3f} {}\n", reading.name, reading.value, reading.unit);
      json["probes"][probe.name][reading.name] = {{"value", reading.value}, {"unit", reading.unit}};
    }
  }
  if (!json_file.empty() && !(std::ofstream(json_file) << json.dump(2) << '\n')) {
    fmt::print(stderr, "bench_probes: {}: cannot be written\n", json_file);
    return 1;
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace dualgemm::bench

int main(int argc, char** argv) {
  CLI::App app("Asks the current GPU what the design of a kernel must know.", "bench_probes");
  bool brief = false;
  std::string json;
  app.add_flag("--brief", brief,
               "Little work, to see that everything runs; the numbers say nothing");
  app.add_option("--json", json, "Write every reading to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return dualgemm::bench::run(brief, json);
}
