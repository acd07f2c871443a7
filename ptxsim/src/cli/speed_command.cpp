#include "cli/speed_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/loaded.hpp"
#include "cli/speed_kernels.hpp"

namespace ptxsim::cli {
namespace {

struct Measured {
  double seconds = 0;  // of the processor, of which one core is used
  uint64_t warp_instructions = 0;
};

constexpr uint64_t kBuffer = 0x1000'0000;  // the first one's address

// With buffers of so many bytes, each at the next multiple of kBuffer.
Result<Measured> measure(const std::string& ptx, const Launch& launch, const Options& options,
                         const std::vector<size_t>& buffers = {4096}) {
  auto module = load(ptx, "speed.ptx");
  if (!module.ok()) return module.error();
  auto program = decode(*module, "");
  if (!program.ok()) return program.error();
  std::vector<Measured> runs;
  for (int i = 0; i < 5; ++i) {
    GlobalMemory memory;
    uint64_t address = 0;
    for (const size_t bytes : buffers) {
      address += kBuffer;
      memory.add(fmt::format("buffer {}", address / kBuffer), address,
                 std::vector<std::byte>(bytes), true, false);
    }
    const std::clock_t begin = std::clock();
    const RunResult result = run(*program, launch, memory, options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (result.error) return *result.error;
    runs.push_back({seconds, result.stats.warp_instructions});
  }
  std::sort(runs.begin(), runs.end(),
            [](const Measured& a, const Measured& b) { return a.seconds < b.seconds; });
  return runs[runs.size() / 2];
}

void append_u32(std::vector<uint8_t>& blob, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) blob.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

Result<Measured> measure_scalar(uint32_t lanes) {
  Launch launch;
  launch.block = {32, 1, 1};
  append_u32(launch.params, kBuffer, 8);
  append_u32(launch.params, 400'000, 4);
  append_u32(launch.params, lanes, 4);
  return measure(kScalarPtx, launch, Options{});
}

Result<Measured> measure_tiled(uint32_t side, bool sanitize) {
  Launch launch;
  launch.block = {side, side, 1};
  append_u32(launch.params, kBuffer, 8);
  append_u32(launch.params, 16 * 1024 / side, 4);
  Options options;
  options.sanitize = sanitize;
  return measure(kTiledPtx, launch, options);
}

// `ctas` in each direction, as many columns as they have threads.
Result<Measured> measure_sgemm(uint32_t side, uint32_t ctas, bool sanitize) {
  const uint32_t n = side * ctas;
  Launch launch;
  launch.grid = {ctas, ctas, 1};
  launch.block = {side, side, 1};
  for (const uint64_t buffer : {1u, 2u, 3u}) append_u32(launch.params, buffer * kBuffer, 8);
  append_u32(launch.params, n, 4);
  Options options;
  options.sanitize = sanitize;
  return measure(sgemm_ptx(side), launch, options, std::vector<size_t>(3, size_t{4} * n * n));
}

// Seconds of one tile: the difference between many repetitions and none.
Result<double> measure_tile(MmaMode mode) {
  constexpr uint32_t kRepeats = 16;
  double seconds[2];
  for (const uint32_t repeats : {0u, kRepeats}) {
    Launch launch;
    launch.block = {32, 1, 1};
    append_u32(launch.params, repeats, 4);
    Options options;
    options.mma = mode;
    Result<Measured> measured = measure(kTilePtx, launch, options);
    if (!measured.ok()) return measured.error();
    seconds[repeats != 0] = measured->seconds;
  }
  return (seconds[1] - seconds[0]) / kRepeats;
}

// A row of what measure(sanitize) measures.
template <class Measure>
std::optional<Error> print_rates(const std::string& what, Measure&& measure) {
  double rates[2];
  for (const bool sanitize : {false, true}) {
    Result<Measured> measured = measure(sanitize);
    if (!measured.ok()) return measured.error();
    rates[sanitize] = static_cast<double>(measured->warp_instructions) / measured->seconds / 1e6;
  }
  std::cout << fmt::format("{}: {:.1f} M warp instructions/s, {:.1f} without the sanitizer\n", what,
                           rates[1], rates[0]);
  return std::nullopt;
}

}  // namespace

int speed_command() {
  for (const uint32_t lanes : {32u, 1u}) {
    Result<Measured> measured = measure_scalar(lanes);
    if (!measured.ok()) return print_error(measured.error());
    std::cout << fmt::format(
        "scalar loop, {:>2} lanes: {:6.1f} M warp instructions/s\n", lanes,
        static_cast<double>(measured->warp_instructions) / measured->seconds / 1e6);
  }
  for (const uint32_t side : {16u, 32u})
    if (const auto error =
            print_rates(fmt::format("tiles, {} threads", side * side),
                        [&](bool sanitize) { return measure_tiled(side, sanitize); }))
      return print_error(*error);
  for (const auto& [side, ctas] : {std::pair{16u, 16u}, std::pair{32u, 4u}})
    if (const auto error =
            print_rates(fmt::format("tiled SGEMM, {} threads, {} CTAs", side * side, ctas * ctas),
                        [side = side, ctas = ctas](bool sanitize) {
                          return measure_sgemm(side, ctas, sanitize);
                        }))
      return print_error(*error);
  for (const MmaMode mode : {MmaMode::kExact, MmaMode::kRounded}) {
    Result<double> seconds = measure_tile(mode);
    if (!seconds.ok()) return print_error(seconds.error());
    std::cout << fmt::format("NVFP4 tile 128x128x512, {}: {:.2f} ms with the sanitizer\n",
                             mode == MmaMode::kExact ? "exact" : "rounded", *seconds * 1e3);
  }
  return 0;
}

}  // namespace ptxsim::cli
