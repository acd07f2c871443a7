// The GPU's speed table: the fused kernel beside cuBLASLt on decoded weights and the plain read of
// the packed ones, all in the same rounds with weights that are cold in L2; docs/performance.md.
// Markdown on stdout, progress on stderr. Exit codes: 0 measured; 1 an error or a wrong result;
// 2 wrong arguments, or no GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "bench/cuda/arguments.hpp"
#include "bench/cuda/pointer_checks.hpp"
#include "bench/cuda/report.hpp"
#include "cuda/runtime/device.hpp"

namespace dualgemm::bench {
namespace {

// Also after every shape, so that an interrupted run leaves what it has.
Status write_json(const std::string& path, const Environment& environment,
                  const std::vector<ShapeResult>& shapes) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_json(environment, shapes).dump(1) << "\n";
  file.close();
  if (!file.fail()) return {};
  return Status::error(StatusCode::kIoError, "--json", path, "must be writable");
}

Expected<bool> measure_shape(const Arguments& arguments, ShapeBench& bench, ShapeResult& shape) {
  fmt::print("{}", table_head(shape.n, shape.k));
  bool right = true;
  for (const int64_t m : arguments.m) {
    auto point = bench.measure(m, arguments.strategies, arguments.limits);
    if (!point) return point.status();
    shape.points.push_back(*std::move(point));
    fmt::print("{}", table_row(shape, shape.points.back()));
    std::fflush(stdout);
    for (const std::string& fault : faults_of(shape.points.back())) {
      fmt::print(stderr, "bench_cuda: n {}, k {}, {}\n", shape.n, shape.k, fault);
      right = false;
    }
  }
  return right;
}

Expected<bool> measure_all(const Arguments& arguments, const Environment& found, const Nvml& nvml) {
  Environment environment = found;
  auto context = LtContext::make();
  if (!context) return context.status();
  environment.cublaslt = context->version();
  auto stopwatch = Stopwatch::make();
  if (!stopwatch) return stopwatch.status();
  DUALGEMM_TRY(write_json(arguments.json, environment, {}));
  fmt::print("{}, driver {}, CUDA {}, cuBLASLt {}\n", environment.caps.name, environment.driver,
             environment.cuda_runtime / 1000, environment.cublaslt);
  const auto pointer_checks = microseconds_of_pointer_checks();
  if (!pointer_checks) return pointer_checks.status();
  fmt::print("check of 8 pointers and a stream: {:.2f} us\n", *pointer_checks);
  const int64_t max_m = *std::max_element(arguments.m.begin(), arguments.m.end());
  std::vector<ShapeResult> shapes;
  bool right = true;
  for (const auto& [n, k] : arguments.shapes) {
    auto bench = ShapeBench::make(*context, *stopwatch, nvml, n, k, max_m);
    if (!bench) return bench.status();
    shapes.push_back({n, k, {}});
    const auto measured = measure_shape(arguments, **bench, shapes.back());
    DUALGEMM_TRY(write_json(arguments.json, environment, shapes));
    if (!measured) return measured.status();
    right = right && *measured;
  }
  return right;
}

int fail(const Status& status, int code) {
  fmt::print(stderr, "bench_cuda: {}\n", status.message());
  return code;
}

int run(const Arguments& arguments) {
  const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  if (!caps) return fail(caps.status(), 2);
  const Nvml nvml;
  Environment environment;
  environment.caps = *caps;
  environment.driver = nvml.driver();
  environment.max_sm_clock_mhz = nvml.max_sm_clock_mhz();
  environment.power_limit_watts = nvml.power_limit_watts();
  if (cudaRuntimeGetVersion(&environment.cuda_runtime) != cudaSuccess ||
      cudaDriverGetVersion(&environment.cuda_driver) != cudaSuccess)
    return fail(Status::error(StatusCode::kInternal, "CUDA", "no version", "must have one"), 1);
  const auto right = measure_all(arguments, environment, nvml);
  if (!right) return fail(right.status(), 1);
  return *right ? 0 : 1;
}

}  // namespace
}  // namespace dualgemm::bench

int main(int argc, char** argv) {
  const auto arguments = dualgemm::bench::parse_arguments(argc, argv);
  if (!arguments) return dualgemm::bench::fail(arguments.status(), 2);
  if (arguments->help) {
    fmt::print("{}", dualgemm::bench::help_text());
    return 0;
  }
  return dualgemm::bench::run(*arguments);
}
