// Whole gated MLPs on a GPU against their definition in double precision: dense and of experts,
// with X and H in 16 and in 4 bits, run at once and recorded in a graph.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/mlp_case.hpp"
#include "tools/verify/check_mlp.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

// The operands of a case in device memory.
class MlpOnGpu {
 public:
  explicit MlpOnGpu(MlpCase& data) : data_(data), buffers_(data.buffers()) {
    MlpBuffers& b = buffers_;
    b.x = put(data.x.data);
    if (b.gate != nullptr) b.gate = put(data.gate.data), b.gate_scales = put(data.gate.scales);
    b.up = put(data.up.data), b.up_scales = put(data.up.scales);
    b.down = put(data.down.data), b.down_scales = put(data.down.scales);
    b.x_global_scale = put(data.x_global_scale);
    b.alpha_down_per_batch = put(data.alpha_down_per_batch);
    b.expert_offsets = put(data.expert_offsets);
    b.expert_rows = put(data.expert_rows);
    b.row_experts = put(data.row_experts);
    b.topk_ids = put(data.router.ids);
    b.expert_map = put(data.router.expert_map);
    b.topk_weights = put(data.router.weights);
    b.x_column_factors = put(data.x_factors);
    b.h_column_factors = put(data.h_factors);
    if (b.bias_gate != nullptr) b.bias_gate = put(data.bias_gate);
    if (b.bias_up != nullptr) {
      b.bias_up = put(data.bias_up);
      b.bias_down = put(data.bias_down);
    }
    if (b.residual != nullptr) b.residual = put(data.residual);
    y_ = GuardedDevice(data.y.data.size(), 0);
    b.y = y_.data();
  }

  const MlpBuffers& buffers() const { return buffers_; }
  void poison_y() { fill(y_); }
  void download_y() const {
    const std::vector<uint8_t> bytes = y_.download();
    std::memcpy(data_.y.data.data(), bytes.data(), bytes.size());
  }
  // Other numbers in place of those that lie there, as many.
  void upload_experts() {
    const auto copy = [](const void* to, const auto& from) {
      if (to == nullptr) return;
      ASSERT_EQ(cudaMemcpy(const_cast<void*>(to), from.data(), from.size() * sizeof(from[0]),
                           cudaMemcpyHostToDevice),
                cudaSuccess);
    };
    copy(buffers_.topk_ids, data_.router.ids);
    copy(buffers_.topk_weights, data_.router.weights);
    copy(buffers_.expert_offsets, data_.expert_offsets);
    copy(buffers_.expert_rows, data_.expert_rows);
    copy(buffers_.row_experts, data_.row_experts);
  }
  static void fill(GuardedDevice& array) {
    ASSERT_EQ(cudaMemset(array.data(), kPoison, static_cast<size_t>(array.size())), cudaSuccess);
  }

 private:
  uint8_t* put(const Guarded<uint8_t>& from) {
    arrays_.emplace_back(from.size(), 0, from.data());
    return arrays_.back().data();
  }
  template <class T>
  const T* put(const std::vector<T>& from) {
    if (from.empty()) return nullptr;
    arrays_.emplace_back(static_cast<int64_t>(from.size() * sizeof(T)), 0, from.data());
    return reinterpret_cast<const T*>(arrays_.back().data());
  }

  MlpCase& data_;
  std::vector<GuardedDevice> arrays_;
  GuardedDevice y_;
  MlpBuffers buffers_;
};

// An MLP with its workspace, and its weights prepared if that is wanted.
struct MlpRun {
  GatedMlp mlp;
  PreparedWeights gate_up, down;
  PreparedView views[2];
  GuardedDevice workspace;

  static Expected<GatedMlp> plan(const MlpProblem& problem, bool prepared) {
    return GatedMlp::plan(problem, {.device = DeviceKind::kCuda, .prepared = prepared});
  }
  MlpRun(GatedMlp plan, const MlpBuffers& buffers) : mlp(std::move(plan)) {
    workspace = GuardedDevice(mlp.workspace_bytes(), 64);  // no better aligned than it must be
    if (!mlp.gate_up().prepared) return;
    auto first = prepare(mlp.gate_up(), mlp.gate_up_weights(buffers));
    auto second = prepare(mlp.down(), mlp.down_weights(buffers));
    EXPECT_TRUE(first.ok()) << first.status().message();
    EXPECT_TRUE(second.ok()) << second.status().message();
    if (!first || !second) return;
    gate_up = *std::move(first);
    down = *std::move(second);
    views[0] = gate_up.view();
    views[1] = down.view();
  }

  Status enqueue(MlpBuffers buffers, cudaStream_t stream) {
    if (mlp.gate_up().prepared) {
      buffers.gate = buffers.up = buffers.down = nullptr;
      buffers.gate_scales = buffers.up_scales = buffers.down_scales = nullptr;
      buffers.prepared_gate_up = &views[0];
      buffers.prepared_down = &views[1];
    }
    buffers.stream = stream;
    return mlp.run(buffers, workspace.data(), workspace.size());
  }
};

void expect_within_bound(MlpCase& data, const GatedMlp& mlp) {
  const auto report =
      verify::check_mlp(data.problem, data.buffers(), mlp.gate_up().isa, mlp.down().isa);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->failed, 0) << "of " << report->compared << ", worst (" << report->worst_row
                               << ", " << report->worst_col << "): " << report->actual
                               << ", expected " << report->expected << ", accepted "
                               << report->lowest << " .. " << report->highest << "\n"
                               << report->picture();
}

void expect_right(MlpCase& data, bool prepared) {
  SCOPED_TRACE(data.describe() + (prepared ? ", prepared" : ""));
  auto plan = MlpRun::plan(data.problem, prepared);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  MlpOnGpu on_gpu(data);
  MlpRun run(*std::move(plan), on_gpu.buffers());
  const Status status = run.enqueue(on_gpu.buffers(), nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  run.workspace.check_margins();
  on_gpu.download_y();
  expect_within_bound(data, run.mlp);
}

// Rows for the kernels of few rows and for tiles; columns that fill no tile.
MlpProblem gpu_problem(Rng& rng, int64_t turn, Grouping grouping) {
  constexpr int64_t kRows[] = {1, 7, 16, 33, 130, 200};
  MlpProblem p = random_mlp_problem(rng, turn);
  p.grouping = grouping;
  p.m = rng.pick(kRows);
  p.l = grouping == Grouping::kNone ? rng.integer(1, 2) : rng.integer(2, 6);
  p.hidden = 16 * rng.integer(4, 30);
  p.intermediate = 16 * rng.integer(4, 30);
  if (p.x_transform.any()) p.x_transform = random_transform(rng, p.hidden);
  if (p.h_transform.any()) p.h_transform = random_transform(rng, p.intermediate);
  for (Matrix* matrix : {&p.x, &p.y}) matrix->ld = 0;
  return p;
}

MlpProblem routed_on_gpu(Rng& rng, int64_t turn) {
  const MlpProblem router = random_routed_problem(rng, turn);
  MlpProblem p = gpu_problem(rng, turn, Grouping::kNone);
  p.l = rng.integer(1, 40);
  p.top_k = router.top_k;
  p.named_experts = router.named_experts;
  p.wide_ids = router.wide_ids;
  p.weights_type = router.weights_type;
  p.weights_on_input = router.weights_on_input;
  p.x_scaling = router.x_scaling;
  return p;
}

class GatedMlpOnGpu : public ::testing::TestWithParam<Grouping> {
 protected:
  void SetUp() override { DUALGEMM_NEEDS_GPU(); }
};

TEST_P(GatedMlpOnGpu, EveryWayToQuantize) {
  Rng rng;
  for (int64_t turn = 0; turn < 48; ++turn) {
    MlpCase data(gpu_problem(rng, turn, GetParam()), rng);
    if (GetParam() == Grouping::kContiguous && turn % 3 == 2) data.name_experts(rng);
    expect_right(data, turn / 4 % 2 == 1);
    if (HasFailure()) return;
  }
}

TEST_P(GatedMlpOnGpu, ALayerOfOrdinarySize) {
  Rng rng;
  for (int64_t turn = 0; turn < 4; ++turn) {
    MlpProblem p{.m = 64, .hidden = 2048, .intermediate = 1024};
    p.l = GetParam() == Grouping::kNone ? 1 : 8;
    p.grouping = GetParam();
    p.quantize_x = turn % 2 == 1;
    p.quantize_h = turn / 2 == 1;
    MlpCase data(p, rng);
    expect_right(data, true);
  }
}

// A router's ids make the groups.
class RoutedExpertsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override { DUALGEMM_NEEDS_GPU(); }
};

TEST_F(RoutedExpertsOnGpu, OfFewTokensAndOfMany) {
  Rng rng;
  for (int64_t turn = 0; turn < 48; ++turn) {
    MlpCase data(routed_on_gpu(rng, turn), rng);
    expect_right(data, turn / 4 % 2 == 1);
    if (HasFailure()) return;
  }
}

// With batch_invariant a token's bits depend on no other token, of few and of many: a layer of
// Qwen3-30B-A3B's size.
TEST_F(RoutedExpertsOnGpu, TokensKeepTheirBits) {
  Rng rng;
  MlpProblem p{.m = 700, .hidden = 2048, .intermediate = 768, .l = 32, .batch_invariant = true};
  p.top_k = 8;
  MlpCase data(p, rng);
  MlpOnGpu on_gpu(data);
  const auto y_of = [&](int64_t tokens) {
    MlpProblem part = p;
    part.m = tokens;
    auto plan = MlpRun::plan(part, true);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    MlpRun run(*std::move(plan), on_gpu.buffers());
    on_gpu.poison_y();
    const Status status = run.enqueue(on_gpu.buffers(), nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    on_gpu.download_y();
    return std::vector<uint8_t>(data.y.data.begin(), data.y.data.begin() + tokens * p.hidden * 2);
  };
  const std::vector<uint8_t> all = y_of(p.m);
  for (const int64_t tokens : {1, 2, 7, 8, 9, 16, 31, 64, 129, 300, 513}) {
    const std::vector<uint8_t> some = y_of(tokens);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << tokens << " tokens";
  }
}

// Recorded once and replayed with other counts, in a workspace and a Y that are poison each time.
TEST_P(GatedMlpOnGpu, ARecordedGraphFollowsTheCounts) {
  Rng rng;
  for (int64_t turn = 0; turn < 8; ++turn) {
    if (turn >= 4 && GetParam() != Grouping::kNone) break;
    MlpProblem p = turn < 4 ? gpu_problem(rng, turn, GetParam()) : routed_on_gpu(rng, turn);
    p.m = 24;
    MlpCase data(p, rng);
    if (p.grouping == Grouping::kContiguous && turn >= 2) data.name_experts(rng);
    SCOPED_TRACE(data.describe());
    auto plan = MlpRun::plan(p, turn % 2 == 0);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    MlpOnGpu on_gpu(data);
    MlpRun run(*std::move(plan), on_gpu.buffers());
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const Status status = run.enqueue(on_gpu.buffers(), stream);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_TRUE(status.ok()) << status.message();
    cudaGraphExec_t recorded = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&recorded, graph, 0), cudaSuccess);
    for (int round = 0; round < 6; ++round) {
      if (p.top_k > 0) data.reroute(rng);
      if (!data.expert_offsets.empty()) data.expert_offsets = random_expert_offsets(rng, p.l, p.m);
      if (!data.expert_rows.empty()) data.expert_rows = random_expert_rows(rng, p.l, p.m);
      if (!data.row_experts.empty()) data.name_experts(rng);
      on_gpu.upload_experts();
      on_gpu.poison_y();
      MlpOnGpu::fill(run.workspace);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(cudaGraphLaunch(recorded, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      run.workspace.check_margins();
      on_gpu.download_y();
      expect_within_bound(data, run.mlp);
    }
    EXPECT_EQ(cudaGraphExecDestroy(recorded), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

// The steps overlap the ends of those before them, in one call and from call to call: with one
// workspace behind each other they give what they give alone.
TEST_P(GatedMlpOnGpu, CallsBehindEachOther) {
  Rng rng;
  for (int64_t turn = 0; turn < 4; ++turn) {
    MlpProblem p = gpu_problem(rng, turn, GetParam());
    p.residual = false;
    MlpCase data(p, rng);
    SCOPED_TRACE(data.describe());
    auto plan = MlpRun::plan(p, true);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    MlpOnGpu on_gpu(data);
    MlpRun run(*std::move(plan), on_gpu.buffers());
    for (int call = 0; call < 20; ++call) {
      const Status status = run.enqueue(on_gpu.buffers(), nullptr);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    on_gpu.download_y();
    expect_within_bound(data, run.mlp);
  }
}

TEST_P(GatedMlpOnGpu, MemoryOfTheHostIsRefused) {
  Rng rng;
  MlpProblem p{.m = 4, .hidden = 64, .intermediate = 64, .l = 2, .grouping = GetParam()};
  p.quantize_x = true;
  MlpCase data(p, rng);
  auto plan = MlpRun::plan(p, false);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  MlpOnGpu on_gpu(data);
  MlpRun run(*std::move(plan), on_gpu.buffers());
  const MlpBuffers host = data.buffers();
  MlpBuffers x = on_gpu.buffers(), down = x, y = x;
  x.x = host.x;
  down.down_scales = host.down_scales;
  y.y = host.y;
  EXPECT_EQ(run.enqueue(x, nullptr).argument(), "x");
  EXPECT_EQ(run.enqueue(down, nullptr).argument(), "down_scales");
  EXPECT_EQ(run.enqueue(y, nullptr).argument(), "y");
}

INSTANTIATE_TEST_SUITE_P(, GatedMlpOnGpu,
                         ::testing::Values(Grouping::kNone, Grouping::kContiguous,
                                           Grouping::kMasked),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace dualgemm::test
