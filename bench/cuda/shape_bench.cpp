#include "bench/cuda/shape_bench.hpp"

#include <algorithm>

#include "bench/cuda/judge.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/device.hpp"

namespace dualgemm::bench {
namespace {

Status allocate(int64_t bytes, const char* name, cuda::DeviceMemory& to) {
  auto memory = cuda::DeviceMemory::allocate(bytes, name);
  if (!memory) return memory.status();
  to = *std::move(memory);
  return {};
}

}  // namespace

struct ShapeBench::OurRun {
  OurResult result;
  Plan plan;
  cuda::DeviceMemory workspace;
  cuda::RecordedCalls recorded;
};

struct ShapeBench::BaselineRun {
  DecodedOperands* operands = nullptr;
  BaselineResult result;
  Baseline baseline;
};

Expected<std::unique_ptr<ShapeBench>> ShapeBench::make(LtContext& context, Stopwatch& stopwatch,
                                                       const Nvml& nvml, int64_t n, int64_t k,
                                                       int64_t max_m) {
  std::unique_ptr<ShapeBench> bench(new ShapeBench(context, stopwatch, nvml));
  DUALGEMM_TRY(bench->fill(n, k, max_m));
  return bench;
}

Status ShapeBench::fill(int64_t n, int64_t k, int64_t max_m) {
  largest_ = Problem{.m = max_m, .n = n, .k = k};
  auto host = random_operands(largest_);
  if (!host) return host.status();
  host_ = *std::move(host);
  auto packed = ColdWeights::upload(host_);
  if (!packed) return packed.status();
  packed_ = *std::move(packed);
  DUALGEMM_TRY(upload_activations());
  DUALGEMM_TRY(allocate(2 * max_m * n, "d", d_));
  DUALGEMM_TRY(allocate(4 * max_m * n, "products", products_));
  for (auto [number, operands] :
       {std::pair{LtNumber::kF16, &f16_}, std::pair{LtNumber::kE4M3, &e4m3_}}) {
    auto decoded =
        decode_operands(number, largest_, buffers_of(0, DataType::kE2M1), stopwatch_.stream());
    if (!decoded) return decoded.status();
    *operands = *std::move(decoded);
  }
  const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  if (!caps) return caps.status();
  auto floor = make_read_floor(packed_.sets(), products_.data(), caps->num_sms, stopwatch_);
  if (!floor) return floor.status();
  floor_ = *std::move(floor);
  return {};
}

Status ShapeBench::upload_activations() {
  DUALGEMM_TRY(allocate(static_cast<int64_t>(host_.a.size()), "a", a_));
  DUALGEMM_TRY(a_.upload(host_.a.data()));
  DUALGEMM_TRY(allocate(static_cast<int64_t>(host_.a_scales.size()), "a_scales", a_scales_));
  return a_scales_.upload(host_.a_scales.data());
}

Problem ShapeBench::problem_of(int64_t m, DataType a) const {
  Problem problem = largest_;
  problem.m = m;
  problem.a.type = a;
  return problem;
}

// fp16 has the same values as NVFP4: D must be the same within the bound.
Buffers ShapeBench::buffers_of(int call, DataType a) {
  Buffers buffers = host_.buffers();  // for the alphas
  packed_.place(call, buffers);
  buffers.a = a == DataType::kE2M1 ? a_.data() : f16_.a.data();
  buffers.a_scales = a == DataType::kE2M1 ? a_scales_.data() : nullptr;
  buffers.d = d_.data();
  return buffers;
}

// Both types of a need weights in the same number format, fp16.
Status ShapeBench::prepare_weights(const Plan& plan, DataType a) {
  std::vector<PreparedWeights>& weights = prepared_[plan.strategy];
  const int64_t sets = (kColdBytes + plan.prepared_bytes - 1) / plan.prepared_bytes;
  while (static_cast<int64_t>(weights.size()) < sets) {
    auto prepared = prepare(plan, buffers_of(0, a));
    if (!prepared) return prepared.status();
    weights.push_back(*std::move(prepared));
  }
  return cuda::synchronize(nullptr);
}

Status ShapeBench::record(int64_t m, OurRun& run) {
  OurResult& result = run.result;
  PlanOptions options{.strategy = result.strategy, .device = DeviceKind::kCuda};
  options.prepared = result.prepared;
  const Expected<Plan> plan = make_plan(problem_of(m, result.a), options);
  if (!plan) return plan.status();
  run.plan = *plan;
  result.config = plan->config();
  result.prepared = plan->prepared;  // cached and graph insist on it
  DUALGEMM_TRY(allocate(plan->workspace_bytes, "workspace", run.workspace));
  if (plan->prepared) DUALGEMM_TRY(prepare_weights(*plan, result.a));
  const auto call_once = [&](void* stream, int call) {
    Buffers buffers = buffers_of(call, result.a);
    buffers.stream = stream;
    if (run.plan.prepared) {
      const std::vector<PreparedWeights>& weights = prepared_.at(result.strategy);
      buffers.prepared = &weights[static_cast<size_t>(call) % weights.size()];
    }
    return dualgemm::run(run.plan, buffers, run.workspace.data(), run.workspace.size());
  };
  DUALGEMM_TRY(call_once(stopwatch_.stream(), 0));  // loads what is loaded at the first use
  DUALGEMM_TRY(cuda::synchronize(stopwatch_.stream()));
  auto recorded =
      cuda::RecordedCalls::record(packed_.sets().calls(), stopwatch_.stream(), call_once);
  if (!recorded) return recorded.status();
  run.recorded = *std::move(recorded);
  return {};
}

Status ShapeBench::record(int64_t m, BaselineRun& run) {
  auto made =
      Baseline::make(context_, *run.operands, m, host_.buffers().alpha_gate, d_.data(), products_);
  if (!made) return made.status();
  run.baseline = *std::move(made);
  DUALGEMM_TRY(run.baseline.record(stopwatch_));
  run.result.paths = run.baseline.paths();
  return {};
}

// D as one replay leaves it, from 0xFF bytes: what was not written is NaN.
Expected<std::vector<uint16_t>> ShapeBench::output_of(const cuda::RecordedCalls& recorded,
                                                      int64_t m) {
  const auto count = static_cast<size_t>(m * largest_.n);
  DUALGEMM_CUDA_TRY(cudaMemsetAsync(d_.data(), 0xFF, 2 * count, stopwatch_.stream()));
  DUALGEMM_TRY(recorded.replay(stopwatch_.stream()));
  DUALGEMM_TRY(cuda::synchronize(stopwatch_.stream()));
  std::vector<uint16_t> out(count);
  DUALGEMM_CUDA_TRY(cudaMemcpy(out.data(), d_.data(), 2 * count, cudaMemcpyDeviceToHost));
  return out;
}

Status ShapeBench::judge(int64_t m, const std::vector<uint16_t>& expected, OurRun& run) {
  auto output = output_of(run.recorded, m);
  if (!output) return output.status();
  Buffers host = host_.buffers();
  host.d = output->data();
  run.result.share = worst_share_of_bound(problem_of(m, DataType::kE2M1), host, run.plan.isa);
  if (!expected.empty())
    run.result.differs = worst_tile_difference(output->data(), expected.data(), m, largest_.n);
  return {};
}

Status ShapeBench::time_all(const RoundLimits& limits, std::vector<OurRun>& ours,
                            const std::vector<BaselineRun*>& baselines, Point& point) {
  std::vector<const cuda::RecordedCalls*> recorded{&floor_.recorded};
  for (const OurRun& run : ours) {
    if (run.result.status.ok()) recorded.push_back(&run.recorded);
  }
  for (BaselineRun* run : baselines) {
    if (!run->result.status.ok()) continue;
    for (const auto& entry : run->baseline.entries()) recorded.push_back(&entry.recorded);
  }
  bool first = true;
  const auto timings = time_in_turn(stopwatch_, recorded, limits, [&] {
    (first ? point.before : point.after) = nvml_.read();
    first = false;
  });
  if (!timings) return timings.status();
  const Timing* timing = timings->data();
  point.floor = *timing++;
  for (OurRun& run : ours) {
    if (run.result.status.ok()) run.result.timing = *timing++;
  }
  for (BaselineRun* run : baselines) {
    BaselineResult& result = run->result;
    if (!result.status.ok()) continue;
    for (const auto& entry : run->baseline.entries()) {
      const Timing& one = *timing++;
      Timing& of_path = result.path_timings[entry.path];
      if (of_path.rounds == 0 || one.median < of_path.median) of_path = one;
      if (result.timing.rounds != 0 && one.median >= result.timing.median) continue;
      result.timing = one;
      result.best_path = entry.path;
      result.best_algorithm = entry.algorithm;
    }
  }
  return {};
}

std::vector<OurResult> ShapeBench::contestants(const std::vector<StrategyId>& more) const {
  std::vector<OurResult> results;
  for (const bool prepared : {false, true}) {
    const auto plan = make_plan(
        largest_,
        {.strategy = StrategyId::kFused, .device = DeviceKind::kCuda, .prepared = prepared});
    if (prepared && !plan) continue;
    for (const DataType a : {DataType::kE2M1, DataType::kF16}) {
      results.emplace_back().a = a;
      results.back().prepared = prepared;
    }
  }
  for (const StrategyId strategy : more) results.emplace_back().strategy = strategy;
  return results;
}

Expected<Point> ShapeBench::measure(int64_t m, const std::vector<StrategyId>& more,
                                    const RoundLimits& limits) {
  Point point;
  point.m = m;
  point.floor_bytes = floor_.bytes, point.floor_shape = floor_.shape;
  BaselineRun f16{.operands = &f16_, .result = {}, .baseline = {}};
  BaselineRun e4m3{.operands = &e4m3_, .result = {}, .baseline = {}};
  std::vector<uint16_t> expected;
  f16.result.status = record(m, f16);
  if (f16.result.status.ok()) {
    auto output = output_of(f16.baseline.entries().front().recorded, m);
    if (!output) return output.status();
    expected = *std::move(output);
  }
  e4m3.result.status = record(m, e4m3);
  if (e4m3.result.status.ok() && !expected.empty()) {
    const auto output = output_of(e4m3.baseline.entries().front().recorded, m);
    if (!output) return output.status();
    e4m3.result.differs = worst_tile_difference(output->data(), expected.data(), m, largest_.n);
  }
  std::vector<OurRun> ours;
  for (OurResult& result : contestants(more)) ours.emplace_back().result = std::move(result);
  for (OurRun& run : ours) {
    run.result.status = record(m, run);
    if (run.result.status.ok()) DUALGEMM_TRY(judge(m, expected, run));
  }
  DUALGEMM_TRY(time_all(limits, ours, {&f16, &e4m3}, point));
  for (OurRun& run : ours) point.ours.push_back(std::move(run.result));
  point.f16 = std::move(f16.result);
  point.e4m3 = std::move(e4m3.result);
  return point;
}

}  // namespace dualgemm::bench
