// One call of the strategy fused on arrays of zeros, for `ptxsim exec --time`: what the clock says
// of the kernel that a plan takes on a GPU that is not here. scripts/predict_rtx50 calls it.
//
//   bench_launch --m 16 --n 17408 --k 5120 --layout swizzled_128x4 --prepared
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cuda/runtime/device_memory.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {
namespace {

using cuda::DeviceMemory;

struct Call {
  Problem problem;
  PlanOptions options{.strategy = StrategyId::kFused, .device = DeviceKind::kCuda};
};

// What is allocated, as long as the call runs.
struct Arrays {
  std::vector<DeviceMemory> all;
  Status status;

  template <class T>
  T* add(int64_t bytes) {
    if (bytes == 0) return nullptr;
    Expected<DeviceMemory> memory = DeviceMemory::allocate(bytes, "array");
    if (!memory) {
      status = memory.status();
      return nullptr;
    }
    all.push_back(*std::move(memory));
    const std::vector<uint8_t> zeros(static_cast<size_t>(bytes));
    status = all.back().upload(zeros.data());
    return reinterpret_cast<T*>(all.back().data());
  }
};

Status run_once(const Call& call) {
  const auto plan = make_plan(call.problem, call.options);
  if (!plan) return plan.status();
  const auto sizes = operand_sizes(call.problem);
  if (!sizes) return sizes.status();
  Arrays arrays;
  Buffers buffers;
  buffers.a = arrays.add<void>(sizes->a);
  buffers.a_scales = arrays.add<uint8_t>(sizes->a_scales);
  buffers.gate = arrays.add<void>(sizes->gate);
  buffers.gate_scales = arrays.add<uint8_t>(sizes->gate_scales);
  buffers.up = arrays.add<void>(sizes->up);
  buffers.up_scales = arrays.add<uint8_t>(sizes->up_scales);
  buffers.d = arrays.add<void>(sizes->d);
  buffers.d_scales = arrays.add<uint8_t>(sizes->d_scales);
  DUALGEMM_TRY(arrays.status);
  PreparedWeights prepared;
  if (call.options.prepared) {
    Expected<PreparedWeights> made = prepare(*plan, buffers);
    if (!made) return made.status();
    prepared = *std::move(made);
    buffers.prepared = &prepared;
  }
  const auto workspace = Workspace::allocate(*plan);
  if (!workspace) return workspace.status();
  DUALGEMM_TRY(run(*plan, buffers, *workspace));
  std::puts(plan->config().c_str());
  return cuda::synchronize(nullptr);
}

int main_of(int argc, char** argv) {
  Call call;
  call.problem = {.m = 1, .n = 4096, .k = 7168};
  std::string layout = "linear", d_type = "f16";
  CLI::App app{"One call of the strategy fused on arrays of zeros"};
  app.add_option("--m", call.problem.m, "rows of A");
  app.add_option("--n", call.problem.n, "rows of Gate and of Up");
  app.add_option("--k", call.problem.k, "columns of all");
  app.add_option("--layout", layout, "of all scales")
      ->check(CLI::IsMember({"linear", "swizzled_128x4"}));
  app.add_option("--d-type", d_type, "D")->check(CLI::IsMember({"f16", "e2m1"}));
  app.add_option("--config", call.options.config, "the kernel, as dualgemm bench takes it");
  app.add_flag("--prepared", call.options.prepared, "weights");
  CLI11_PARSE(app, argc, argv);
  Problem& p = call.problem;
  if (layout != "linear") {
    for (Matrix* matrix : {&p.a, &p.gate, &p.up})
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
  }
  if (d_type != "f16") p.d.type = DataType::kE2M1;
  const Status status = run_once(call);
  if (!status.ok()) fmt::print(stderr, "bench_launch: {}\n", status.message());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace dualgemm::bench

int main(int argc, char** argv) { return dualgemm::bench::main_of(argc, argv); }
