// The strategies that are two plain GEMMs with something before and after them: two_pass, cached,
// graph, streams and fp8. They differ in a recipe.
#include <bit>
#include <string>

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/graph_cache.hpp"
#include "cuda/runtime/limits.hpp"
#include "cuda/runtime/stream_pool.hpp"
#include "cuda/strategies/gemm_work.hpp"
#include "cuda/strategies/prepared_parts.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {
namespace {

struct Recipe {
  StrategyId id;
  const char* how_it_works;
  bool fp8 = false;
  Preparation preparation = Preparation::kNone;  // weights converted once, by prepare()
  bool two_streams = false;                      // Gate and Up at the same time
  bool replayed = false;  // recorded at the first call with the same arguments
};

Status needs_type(const char* argument, DataType type, const char* rule) {
  return Status::unsupported(argument, name_of(type), rule);
}

// Everything that decides what a call on the weights of one handle enqueues.
GraphCache::Key key_of(const Plan& plan, const Buffers& b, const void* workspace) {
  const Problem& p = plan.problem;
  GraphCache::Key key;
  const auto add = [&](auto value) { key.push_back(static_cast<uint64_t>(value)); };
  const auto add_float = [&](float value) { key.push_back(std::bit_cast<uint32_t>(value)); };
  for (const int64_t extent : {p.m, p.n, p.k, p.l}) add(extent);
  for (const Matrix* matrix : {&p.a, &p.d}) {
    add(matrix->type), add(matrix->ld), add(matrix->batch_stride);
    add(matrix->scale_layout), add(matrix->scale_ld), add(matrix->scale_batch_stride);
  }
  const core::ResolvedActivation act = p.act;
  add(act.kind);
  for (const float value : {act.alpha, act.beta, act.limit, b.alpha_gate, b.alpha_up}) {
    add_float(value);
  }
  add(plan.unaligned);
  add(p.bias);
  for (const void* pointer :
       {b.a, static_cast<const void*>(b.a_scales), static_cast<const void*>(b.a_row_scale),
        static_cast<const void*>(b.alpha_gate_per_batch),
        static_cast<const void*>(b.alpha_up_per_batch), b.bias_gate, b.bias_up,
        static_cast<const void*>(b.d), workspace}) {
    key.push_back(reinterpret_cast<uintptr_t>(pointer));
  }
  return key;
}

class GemmStrategy final : public Strategy {
 public:
  explicit GemmStrategy(const Recipe& recipe) : recipe_(recipe) {}
  StrategyId id() const noexcept override { return recipe_.id; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const char* how_it_works() const noexcept override { return recipe_.how_it_works; }
  const char* numerics(const Plan&) const noexcept override;
  Preparation preparation(const Plan&) const noexcept override { return recipe_.preparation; }

  Status supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const override;
  Status plan(Plan& plan, const DeviceCaps& caps) const override;
  int64_t workspace_bytes(const Plan& plan) const override;
  PreparedDescriptor prepared_descriptor(const Plan& plan) const override {
    if (recipe_.preparation == Preparation::kNone) return {};
    return prepared_gemm_weights(plan.problem, gemm_number(plan, recipe_.fp8));
  }
  Status prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                 uint8_t* memory) const override;
  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override;

 private:
  GemmWork lay_out_call(const Plan& plan, const core::ResolvedProblem& problem,
                        core::Arena& arena) const noexcept {
    return lay_out(plan, problem, recipe_.fp8, !plan.prepared, recipe_.two_streams, arena);
  }
  Status find_weights(const Plan& plan, const Buffers& buffers, GemmWork& work) const;
  Status enqueue_all(const Plan& plan, const GemmWork& work, cudaStream_t stream) const;
  Status enqueue_products(const Plan& plan, const GemmWork& work, cudaStream_t stream) const;

  Recipe recipe_;
};

Status GemmStrategy::supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const {
  const Problem& p = problem.problem();
  if (caps.kind != DeviceKind::kCuda) {
    return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
  }
  if (recipe_.fp8 && caps.compute_capability < 89) {
    return Status::unsupported("device", caps.name, "FP8 needs compute capability 8.9");
  }
  if (p.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", name_of(p.grouping), "cuBLASLt's GEMMs take none");
  }
  if (p.a.type == DataType::kF32)
    return needs_type("a.type", p.a.type, "must be e2m1, f16 or bf16");
  if (p.d.type == DataType::kE2M1)
    return needs_type("d.type", p.d.type, "must be f16, bf16 or f32");
  if (p.batch_invariant) {
    return Status::unsupported("batch_invariant", "true",
                               "cuBLASLt's order of addition depends on m");
  }
  DUALGEMM_TRY(check_combine(p));
  return check_extents(p);
}

const char* GemmStrategy::numerics(const Plan&) const noexcept {
  if (recipe_.fp8) return "not exact: operands lose bits to FP8";
  return "operands exact, products added in FP32 in an order of cuBLASLt's choice: the same bits "
         "in "
         "every run on one GPU, others for another m";
}

Status GemmStrategy::plan(Plan& plan, const DeviceCaps&) const {
  // Which kernels run is cuBLASLt's choice. sm100a: NVFP4 is multiplied as it is; else decoded.
  const bool native = plan.isa == Isa::kSm100a && !recipe_.fp8 && is_native(plan.problem);
  plan.isa = native ? Isa::kSm100a : Isa::kSm80;
  plan.threads = 1;  // of the host
  plan.regime = Regime::kTile;
  plan::set_kernel(plan, KernelId::kCublasLt);
  plan.prepared_bytes = prepared_descriptor(plan).bytes;
  plan.workspace_bytes = workspace_bytes(plan);
  return {};
}

int64_t GemmStrategy::workspace_bytes(const Plan& plan) const {
  core::Arena counting(nullptr, kGemmAlignment);
  static_cast<void>(lay_out_call(plan, core::resolve(plan.problem), counting));
  return counting.used() + kGemmAlignment;  // its start may be moved up
}

Status GemmStrategy::prepare(const Plan& plan, const core::CheckedProblem& problem,
                             const Buffers& buffers, uint8_t* memory) const {
  const PreparedDescriptor descriptor = prepared_descriptor(plan);
  GemmWork work{.problem = problem.resolved(),
                .number = gemm_number(plan, recipe_.fp8),
                .copies_a = false,
                .buffers = &buffers};
  take_prepared(descriptor, work.number, memory + kPreparedHeaderBytes, work.weights);
  const auto stream = static_cast<cudaStream_t>(buffers.stream);
  DUALGEMM_TRY(clear_parts(descriptor, memory, stream));
  for (const GemmOperand operand : {GemmOperand::kGate, GemmOperand::kUp}) {
    DUALGEMM_TRY(convert_weights(work, operand, stream));
  }
  return finish_parts(descriptor, memory, stream);
}

Status GemmStrategy::find_weights(const Plan& plan, const Buffers& buffers, GemmWork& work) const {
  if (!plan.prepared) {
    if (recipe_.preparation != Preparation::kRequired) return {};
    return Status::invalid("plan.prepared", "false",
                           std::string(name()) + " runs on weights from prepare()");
  }
  const uint8_t* const first_part = first_part_of(buffers);
  if (first_part == nullptr) {
    return Status::invalid("prepared", "null", "the plan was made for prepared weights");
  }
  // Only read from here on.
  take_prepared(prepared_descriptor(plan), work.number, const_cast<uint8_t*>(first_part),
                work.weights);
  return {};
}

Status GemmStrategy::enqueue_products(const Plan& plan, const GemmWork& work,
                                      cudaStream_t stream) const {
  const auto product = [&](GemmOperand operand, cudaStream_t on) -> Status {
    if (!plan.prepared) DUALGEMM_TRY(convert_weights(work, operand, on));
    return multiply(work, operand, on);
  };
  if (!recipe_.two_streams) {
    DUALGEMM_TRY(product(GemmOperand::kGate, stream));
    return product(GemmOperand::kUp, stream);
  }
  Expected<BorrowedStream> other = BorrowedStream::take();
  if (!other) return other.status();
  DUALGEMM_TRY(other->fork_from(stream));
  const Status up = product(GemmOperand::kUp, other->stream());
  const Status gate = product(GemmOperand::kGate, stream);
  DUALGEMM_TRY(other->join_to(stream));  // after an error too: a recording must not fall apart
  DUALGEMM_TRY(up);
  return gate;
}

Status GemmStrategy::enqueue_all(const Plan& plan, const GemmWork& work,
                                 cudaStream_t stream) const {
  DUALGEMM_TRY(convert_activation(work, stream));
  DUALGEMM_TRY(enqueue_products(plan, work, stream));
  return join(work, stream);
}

Status GemmStrategy::run(const Plan& plan, const core::CheckedProblem& problem,
                         const Buffers& buffers, void* workspace, RunInfo* info) const {
  core::Arena arena(workspace, kGemmAlignment);
  GemmWork work = lay_out_call(plan, problem.resolved(), arena);
  work.buffers = &buffers;
  DUALGEMM_TRY(find_weights(plan, buffers, work));
  DUALGEMM_TRY(check_call(work));
  const auto stream = static_cast<cudaStream_t>(buffers.stream);
  if (recipe_.replayed && buffers.prepared != nullptr) {  // a view has nowhere to keep recordings
    auto& graphs = buffers.prepared->impl()->state<GraphCache>();
    DUALGEMM_TRY(graphs.replay(key_of(plan, buffers, workspace), stream,
                               [&](cudaStream_t on) { return enqueue_all(plan, work, on); }));
  } else {
    DUALGEMM_TRY(enqueue_all(plan, work, stream));
  }
  if (info != nullptr) {
    const int64_t gemm_workspaces = (recipe_.two_streams ? 2 : 1) * kGemmWorkspaceBytes;
    // Also where NVFP4 is multiplied as it is, nothing is known of the order of its sums.
    *info = {Isa::kSm80, plan.regime, plan.threads, 2 * (arena.used() - gemm_workspaces)};
  }
  return {};
}

}  // namespace

const Strategy& two_pass_strategy() noexcept {
  static const GemmStrategy strategy(
      {.id = StrategyId::kTwoPass,
       .how_it_works = "Gate product to memory, Up product to memory, then the activation joins "
                       "them; weights are converted on every call"});
  return strategy;
}
const Strategy& cached_strategy() noexcept {
  static const GemmStrategy strategy(
      {.id = StrategyId::kCached,
       .how_it_works = "as two_pass, but the weights were converted once by prepare()",
       .preparation = Preparation::kRequired});
  return strategy;
}
const Strategy& graph_strategy() noexcept {
  static const GemmStrategy strategy(
      {.id = StrategyId::kGraph,
       .how_it_works = "as cached, recorded at the first call with the same arguments and replayed",
       .preparation = Preparation::kRequired,
       .replayed = true});
  return strategy;
}
const Strategy& streams_strategy() noexcept {
  static const GemmStrategy strategy(
      {.id = StrategyId::kStreams,
       .how_it_works = "both products at the same time, each on a stream of its own, then the "
                       "activation",
       .preparation = Preparation::kOptional,
       .two_streams = true});
  return strategy;
}
const Strategy& fp8_strategy() noexcept {
  static const GemmStrategy strategy(
      {.id = StrategyId::kFp8,
       .how_it_works = "operands re-quantised to FP8 E4M3: for comparison only, its results differ",
       .fp8 = true,
       .preparation = Preparation::kOptional});
  return strategy;
}

}  // namespace dualgemm::cuda
